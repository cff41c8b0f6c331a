#include "kernels/move/element.h"

#include <bit>

#include "kernels/move/element_size.h"
#include "tensor/half.h"

namespace ge::kernels::move {
namespace {

// Calls f with a tag value of the plain C++ type of t; false for types that need a conversion.
template <class F>
bool with_plain(DType t, F&& f) {
  switch (t) {
    case DType::f32: f(float{}); return true;
    case DType::f64: f(double{}); return true;
    case DType::i8: case DType::i4: case DType::i2: f(int8_t{}); return true;
    case DType::u8: case DType::u4: case DType::u2: f(uint8_t{}); return true;
    case DType::i16: f(int16_t{}); return true;
    case DType::u16: f(uint16_t{}); return true;
    case DType::i32: f(int32_t{}); return true;
    case DType::u32: f(uint32_t{}); return true;
    case DType::i64: f(int64_t{}); return true;
    case DType::u64: f(uint64_t{}); return true;
    default: return false;
  }
}

template <class T, class V>
inline T to_plain(V v) {
  if constexpr (std::is_floating_point_v<V> && std::is_integral_v<T>) return float_to_int<T>(v);
  else return static_cast<T>(v);
}

// Types under 8 bits keep their value in the low bits; signed ones are extended.
inline uint8_t narrow(DType t, int64_t v) {
  switch (t) {
    case DType::u4: return v & 15;
    case DType::u2: return v & 3;
    case DType::i4: return static_cast<uint8_t>(static_cast<int8_t>(static_cast<uint64_t>(v) << 4) >> 4);
    default: return static_cast<uint8_t>(static_cast<int8_t>(static_cast<uint64_t>(v) << 6) >> 6);
  }
}
inline bool is_narrow(DType t) { return bits(t) < 8 && is_integer(t); }

template <class V>
void load_all(DType t, const std::byte* p, int64_t step, int64_t n, V* to) {
  if (with_plain(t, [&](auto tag) {
        using T = decltype(tag);
        for (int64_t i = 0; i < n; ++i) to[i] = to_plain<V>(load<T>(p + i * step));
      }))
    return;
  for (int64_t i = 0; i < n; ++i) {
    const std::byte* q = p + i * step;
    switch (t) {
      case DType::boolean: to[i] = static_cast<V>(load<uint8_t>(q) != 0); break;
      case DType::f16: to[i] = to_plain<V>(f16_to_f32(load<uint16_t>(q))); break;
      case DType::bf16: to[i] = to_plain<V>(bf16_to_f32(load<uint16_t>(q))); break;
      default: to[i] = is_small_float(t) ? to_plain<V>(small_float_value(t, load<uint8_t>(q))) : V(0);
    }
  }
}

template <class V>
double as_double(V v) {
  return static_cast<double>(v);
}

template <class V>
void store_all(DType t, std::byte* p, int64_t step, int64_t n, const V* from, CastMode mode) {
  if (is_narrow(t)) {
    for (int64_t i = 0; i < n; ++i) store(p + i * step, narrow(t, to_plain<int32_t>(from[i])));
    return;
  }
  if (with_plain(t, [&](auto tag) {
        using T = decltype(tag);
        for (int64_t i = 0; i < n; ++i) store(p + i * step, to_plain<T>(from[i]));
      }))
    return;
  for (int64_t i = 0; i < n; ++i) {
    std::byte* q = p + i * step;
    switch (t) {
      case DType::boolean: store(q, static_cast<uint8_t>(from[i] != V(0))); break;
      case DType::f16: store(q, f32_to_f16(f64_to_f32_odd(as_double(from[i])))); break;
      case DType::bf16: store(q, f32_to_bf16(f64_to_f32_odd(as_double(from[i])))); break;
      default: store(q, small_float_code(t, as_double(from[i]), mode.saturate, mode.round));
    }
  }
}

}  // namespace

float f64_to_f32_odd(double d) {
  float f = static_cast<float>(d);
  if (!(std::fabs(f) <= std::numeric_limits<float>::max())) {
    // Rounded up to infinity: the largest float, which is odd, still rounds to infinity in 16 bits.
    if (std::isinf(d) || std::isnan(d)) return f;
    return std::copysign(std::numeric_limits<float>::max(), f);
  }
  uint32_t x = std::bit_cast<uint32_t>(f);
  if (static_cast<double>(f) == d || (x & 1)) return f;
  return std::bit_cast<float>(std::fabs(static_cast<double>(f)) < std::fabs(d) ? x + 1 : x - 1);
}

bool is_number(DType t) {
  return is_integer(t) || is_float(t) || t == DType::boolean;
}

void load_run(DType t, const std::byte* p, int64_t step, int64_t n, double* to) { load_all(t, p, step, n, to); }
void load_run(DType t, const std::byte* p, int64_t step, int64_t n, int64_t* to) { load_all(t, p, step, n, to); }
void store_run(DType t, std::byte* p, int64_t step, int64_t n, const double* from, CastMode mode) {
  store_all(t, p, step, n, from, mode);
}
void store_run(DType t, std::byte* p, int64_t step, int64_t n, const int64_t* from, bool from_unsigned, CastMode mode) {
  if (from_unsigned) store_all(t, p, step, n, reinterpret_cast<const uint64_t*>(from), mode);
  else store_all(t, p, step, n, from, mode);
}

bool is_zero(DType t, const std::byte* p) {
  switch (t) {
    case DType::string: return *reinterpret_cast<const uint32_t*>(p) == 0;
    case DType::c64: return load_f64(DType::f32, p) == 0 && load_f64(DType::f32, p + 4) == 0;
    case DType::c128: return load_f64(DType::f64, p) == 0 && load_f64(DType::f64, p + 8) == 0;
    default: return is_float(t) ? load_f64(t, p) == 0 : load_i64(t, p) == 0;
  }
}

double load_f64(DType t, const std::byte* p) {
  double v;
  load_all(t, p, 0, 1, &v);
  return v;
}
int64_t load_i64(DType t, const std::byte* p) {
  int64_t v;
  load_all(t, p, 0, 1, &v);
  return v;
}
void store_f64(DType t, std::byte* p, double v, CastMode mode) { store_all(t, p, 0, 1, &v, mode); }
void store_i64(DType t, std::byte* p, int64_t v, CastMode mode) { store_all(t, p, 0, 1, &v, mode); }

}  // namespace ge::kernels::move
