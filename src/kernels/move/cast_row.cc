#include "kernels/move/cast_row.h"

#include <bit>

#include "kernels/isa.h"
#include "kernels/move/element.h"
#include "tensor/half.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ge::kernels::move {
namespace {

// Tags whose storage differs from their C++ arithmetic type.
struct Bool {
  uint8_t v;
};
struct Bf16 {
  uint16_t v;
};

template <class To, class From>
inline __attribute__((always_inline)) To convert(From x) {
  if constexpr (std::is_same_v<From, Bool>) {
    if constexpr (std::is_same_v<To, Bool>) return Bool{static_cast<uint8_t>(x.v != 0)};
    else return static_cast<To>(x.v != 0);
  } else if constexpr (std::is_same_v<From, Bf16>) {
    return std::bit_cast<float>(static_cast<uint32_t>(x.v) << 16);
  } else if constexpr (std::is_same_v<To, Bool>) {
    return Bool{static_cast<uint8_t>(x != From(0))};
  } else if constexpr (std::is_same_v<To, Bf16>) {
    uint32_t u = std::bit_cast<uint32_t>(x), rounded = (u + 0x7fffu + (u >> 16 & 1)) >> 16;
    return Bf16{static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? u >> 16 | 0x40u : rounded)};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return float_to_int<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class From, class To>
inline __attribute__((always_inline)) void row(const std::byte* from, std::byte* to, int64_t n) {
  auto* __restrict p = reinterpret_cast<const From*>(from);
  auto* __restrict q = reinterpret_cast<To*>(to);
  for (int64_t i = 0; i < n; ++i) q[i] = convert<To>(p[i]);
}

template <class From, class To>
void row_portable(const std::byte* from, std::byte* to, int64_t n) {
  row<From, To>(from, to, n);
}

#if defined(__x86_64__)
template <class From, class To>
__attribute__((target("avx2,fma"))) void row_avx2(const std::byte* from, std::byte* to, int64_t n) {
  row<From, To>(from, to, n);
}
template <class From, class To>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))) void row_avx512(
    const std::byte* from, std::byte* to, int64_t n) {
  row<From, To>(from, to, n);
}

__attribute__((target("avx2,f16c"))) void f16_to_f32_avx2(const std::byte* from, std::byte* to, int64_t n) {
  auto* p = reinterpret_cast<const uint16_t*>(from);
  auto* q = reinterpret_cast<float*>(to);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(q + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i))));
  for (; i < n; ++i) q[i] = _cvtsh_ss(p[i]);
}
__attribute__((target("avx2,f16c"))) void f32_to_f16_avx2(const std::byte* from, std::byte* to, int64_t n) {
  auto* p = reinterpret_cast<const float*>(from);
  auto* q = reinterpret_cast<uint16_t*>(to);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q + i), _mm256_cvtps_ph(_mm256_loadu_ps(p + i), 0));
  for (; i < n; ++i) q[i] = static_cast<uint16_t>(_cvtss_sh(p[i], 0));
}
#endif

void f16_to_f32_portable(const std::byte* from, std::byte* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) reinterpret_cast<float*>(to)[i] = f16_to_f32(reinterpret_cast<const uint16_t*>(from)[i]);
}
void f32_to_f16_portable(const std::byte* from, std::byte* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) reinterpret_cast<uint16_t*>(to)[i] = f32_to_f16(reinterpret_cast<const float*>(from)[i]);
}

template <class From, class To>
CastRow pick() {
#if defined(__x86_64__)
  if (isa() == Isa::avx512) return row_avx512<From, To>;
  if (isa() == Isa::avx2) return row_avx2<From, To>;
#endif
  return row_portable<From, To>;
}

template <class From>
CastRow pick_to(DType to) {
  switch (to) {
    case DType::f32: return pick<From, float>();
    case DType::f64: return pick<From, double>();
    case DType::i32: return pick<From, int32_t>();
    case DType::i64: return pick<From, int64_t>();
    case DType::u8: return pick<From, uint8_t>();
    case DType::i8: return pick<From, int8_t>();
    case DType::boolean: return pick<From, Bool>();
    default: return nullptr;
  }
}

bool has_f16c() {
#if defined(__x86_64__)
  return isa() >= Isa::avx2 && __builtin_cpu_supports("f16c");
#else
  return false;
#endif
}

}  // namespace

CastRow cast_row(DType from, DType to) {
#if defined(__x86_64__)
  if (has_f16c() && from == DType::f16 && to == DType::f32) return f16_to_f32_avx2;
  if (has_f16c() && from == DType::f32 && to == DType::f16) return f32_to_f16_avx2;
#endif
  if (from == DType::f16 && to == DType::f32) return f16_to_f32_portable;
  if (from == DType::f32 && to == DType::f16) return f32_to_f16_portable;
  if (from == DType::bf16) return to == DType::f32 ? pick<Bf16, float>() : nullptr;
  if (to == DType::bf16) return from == DType::f32 ? pick<float, Bf16>() : nullptr;
  switch (from) {
    case DType::f32: return pick_to<float>(to);
    case DType::f64: return pick_to<double>(to);
    case DType::i32: return pick_to<int32_t>(to);
    case DType::i64: return pick_to<int64_t>(to);
    case DType::u8: return pick_to<uint8_t>(to);
    case DType::i8: return pick_to<int8_t>(to);
    case DType::boolean: return pick_to<Bool>(to);
    default: return nullptr;
  }
}

}  // namespace ge::kernels::move
