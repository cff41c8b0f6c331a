// What reference kernels share: reading and writing one element of any numeric dtype, walking several
// strided views in step, and the checks that every prepare() makes. Clear before fast: a kernel that
// matters for speed has a family of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/text.h"
#include "kernels/kernel.h"
#include "tensor/half.h"

namespace ge::kernels::reference {

inline bool present(const Call& c, size_t input) {
  return input < c.in.size() && c.in[input].dtype != DType::none;
}
inline bool wanted(const Call& c, size_t output) {
  return output < c.out.size() && c.out[output].dtype != DType::none;
}

// f16, bf16, f32 or f64.
inline bool plain_float(DType t) {
  return t == DType::f32 || t == DType::f64 || t == DType::f16 || t == DType::bf16;
}
// An integer of 8 to 64 bits.
inline bool plain_integer(DType t) { return is_integer(t) && bits(t) >= 8; }
inline bool plain_numeric(DType t) {
  return plain_float(t) || plain_integer(t) || t == DType::boolean;
}

// --- elements: plain_numeric dtypes only ---

inline double load(const View& v, int64_t i) {
  switch (v.dtype) {
    case DType::f32: return v.as<float>()[i];
    case DType::f64: return v.as<double>()[i];
    case DType::f16: return f16_to_f32(v.as<uint16_t>()[i]);
    case DType::bf16: return bf16_to_f32(v.as<uint16_t>()[i]);
    case DType::i8: return v.as<int8_t>()[i];
    case DType::u8: return v.as<uint8_t>()[i];
    case DType::i16: return v.as<int16_t>()[i];
    case DType::u16: return v.as<uint16_t>()[i];
    case DType::i32: return v.as<int32_t>()[i];
    case DType::u32: return v.as<uint32_t>()[i];
    case DType::i64: return static_cast<double>(v.as<int64_t>()[i]);
    case DType::u64: return static_cast<double>(v.as<uint64_t>()[i]);
    case DType::boolean: return v.as<uint8_t>()[i] != 0;
    default: return 0;
  }
}

// A number as an integer: toward zero, wrapping when out of range, 0 for NaN. Never undefined.
inline int64_t to_int(double x) {
  if (x != x) return 0;
  if (x >= -0x1p63 && x < 0x1p63) return static_cast<int64_t>(x);
  if (x >= 0x1p63 && x < 0x1p64) return static_cast<int64_t>(static_cast<uint64_t>(x));
  return x < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

// Integers and bool; u64 keeps its bits.
inline int64_t load_int(const View& v, int64_t i) {
  switch (v.dtype) {
    case DType::i8: return v.as<int8_t>()[i];
    case DType::u8: return v.as<uint8_t>()[i];
    case DType::i16: return v.as<int16_t>()[i];
    case DType::u16: return v.as<uint16_t>()[i];
    case DType::i32: return v.as<int32_t>()[i];
    case DType::u32: return v.as<uint32_t>()[i];
    case DType::i64: case DType::u64: return v.as<int64_t>()[i];
    case DType::boolean: return v.as<uint8_t>()[i] != 0;
    default: return to_int(load(v, i));
  }
}

// Keeps the low bits.
inline void store_int(const View& v, int64_t i, int64_t x) {
  switch (v.dtype) {
    case DType::i8: case DType::u8: v.as<uint8_t>()[i] = static_cast<uint8_t>(x); break;
    case DType::i16: case DType::u16: v.as<uint16_t>()[i] = static_cast<uint16_t>(x); break;
    case DType::i32: case DType::u32: v.as<uint32_t>()[i] = static_cast<uint32_t>(x); break;
    case DType::i64: case DType::u64: v.as<int64_t>()[i] = x; break;
    case DType::boolean: v.as<uint8_t>()[i] = x != 0; break;
    case DType::f32: v.as<float>()[i] = static_cast<float>(x); break;
    case DType::f64: v.as<double>()[i] = static_cast<double>(x); break;
    case DType::f16: v.as<uint16_t>()[i] = f32_to_f16(static_cast<float>(x)); break;
    case DType::bf16: v.as<uint16_t>()[i] = f32_to_bf16(static_cast<float>(x)); break;
    default: break;
  }
}

// Rounds to nearest even into the float types; 16-bit floats by way of f32, as if computed there.
inline void store(const View& v, int64_t i, double x) {
  switch (v.dtype) {
    case DType::f32: v.as<float>()[i] = static_cast<float>(x); break;
    case DType::f64: v.as<double>()[i] = x; break;
    case DType::f16: v.as<uint16_t>()[i] = f32_to_f16(static_cast<float>(x)); break;
    case DType::bf16: v.as<uint16_t>()[i] = f32_to_bf16(static_cast<float>(x)); break;
    case DType::boolean: v.as<uint8_t>()[i] = x != 0; break;
    default: store_int(v, i, to_int(x)); break;
  }
}

// --- walking ---

// Steps through an index space in row-major order, keeping an element offset for each of N views.
template <int N>
struct Walker {
  int rank = 0;
  int64_t dims[kMaxRank] = {}, index[kMaxRank] = {};
  int64_t strides[N][kMaxRank] = {};
  int64_t offset[N] = {};

  explicit Walker(const View& space) : rank(space.rank) {
    std::copy(space.dims, space.dims + rank, dims);
  }
  Walker() = default;
  // The view's axes are the last ones of the space; its axes of size 1 are repeated.
  void follow(int n, const View& v) {
    for (int a = 0; a < v.rank; ++a)
      strides[n][rank - v.rank + a] = v.dims[a] == 1 ? 0 : v.strides[a];
  }
  int64_t count() const {
    int64_t n = 1;
    for (int a = 0; a < rank; ++a) n *= dims[a];
    return n;
  }
  void seek(int64_t linear) {
    for (int n = 0; n < N; ++n) offset[n] = 0;
    for (int a = rank; a-- > 0;) {
      index[a] = dims[a] ? linear % dims[a] : 0;
      linear = dims[a] ? linear / dims[a] : 0;
      for (int n = 0; n < N; ++n) offset[n] += index[a] * strides[n][a];
    }
  }
  void next() {
    for (int a = rank; a-- > 0;) {
      for (int n = 0; n < N; ++n) offset[n] += strides[n][a];
      if (++index[a] < dims[a]) return;
      for (int n = 0; n < N; ++n) offset[n] -= dims[a] * strides[n][a];
      index[a] = 0;
    }
  }
};

// --- checks ---

inline Error bad(std::string_view kernel, std::string_view what) {
  return error(code::kBadOp, format("{}: {}", kernel, what));
}

inline constexpr int64_t kMaxCount = int64_t{1} << 46;

// Sizes and strides are there, not negative, and their products stay far from overflow.
inline Status check_view(const View& v, std::string_view kernel, std::string_view what) {
  if (v.rank < 0 || v.rank > kMaxRank || (v.rank && (!v.dims || !v.strides)))
    return bad(kernel, format("{} has a bad rank", what));
  int64_t n = 1;
  for (int a = 0; a < v.rank; ++a) {
    if (v.dims[a] < 0 || v.dims[a] > kMaxCount)
      return bad(kernel, format("size {} of {} is out of range", v.dims[a], what));
    if (v.strides[a] > kMaxCount || v.strides[a] < -kMaxCount)
      return bad(kernel, format("stride {} of {} is out of range", v.strides[a], what));
    if (v.dims[a] > 1 && n > kMaxCount / v.dims[a]) return bad(kernel, format("{} is too large", what));
    if (v.dims[a] > 1) n *= v.dims[a];
  }
  return ok();
}

// All operands present have good views; at least `inputs` and `outputs` of them are there.
inline Status check_call(const Call& c, std::string_view kernel, size_t inputs, size_t outputs,
                         size_t ints = 0, size_t floats = 0) {
  if (c.in.size() < inputs || c.out.size() < outputs || c.ints.size() < ints || c.floats.size() < floats)
    return bad(kernel, "too few operands or parameters");
  for (size_t i = 0; i < c.in.size(); ++i) {
    if (!present(c, i)) {
      if (i < inputs) return bad(kernel, format("input {} is missing", i));
      continue;
    }
    GE_RETURN_IF_ERROR(check_view(c.in[i], kernel, format("input {}", i)));
  }
  for (size_t i = 0; i < c.out.size(); ++i) {
    if (!wanted(c, i)) {
      if (i < outputs) return bad(kernel, format("output {} is missing", i));
      continue;
    }
    GE_RETURN_IF_ERROR(check_view(c.out[i], kernel, format("output {}", i)));
  }
  return ok();
}

inline bool same_dims(const View& a, const View& b) {
  return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims);
}

// v can be repeated to the shape of `to` without growing it.
inline bool broadcasts_to(const View& v, const View& to) {
  if (v.rank > to.rank) return false;
  for (int a = 0; a < v.rank; ++a)
    if (v.dims[a] != 1 && v.dims[a] != to.dims[to.rank - v.rank + a]) return false;
  return true;
}

// --- cutting ---

// Into how many chunks to cut `units` equal pieces of about `cost` cycles: depends on sizes alone.
inline int64_t cut(int64_t units, double cost) {
  if (units <= 0) return 0;
  double chunks = static_cast<double>(units) * cost / 20000.0;
  return std::clamp<int64_t>(static_cast<int64_t>(std::min(chunks, 128.0)), 1, std::min<int64_t>(units, 128));
}
struct Span {
  int64_t begin, end;
};
inline Span slice(int64_t units, int64_t i, int64_t n) {
  int64_t q = units / n, r = units % n, begin = q * i + std::min(i, r);
  return {begin, begin + q + (i < r ? 1 : 0)};
}

}  // namespace ge::kernels::reference
