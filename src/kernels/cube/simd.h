// Short vectors of f32 for the Cube kernels: one struct of static functions for each instruction set,
// V512, V256 and V128, with the same members, so that a kernel body is a template over V.
//
// V512 and V256 exist only between GE_TARGET_BEGIN and GE_TARGET_END (a whole file never gets -m
// flags, and inline functions must not leak code of a larger set). No lambdas there: they do not
// inherit the target. Not a general SIMD library.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "tensor/half.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define GE_PRAGMA(x) _Pragma(#x)
#if defined(__clang__)
#define GE_TARGET_BEGIN(t) \
  GE_PRAGMA(clang attribute push(__attribute__((target(t))), apply_to = function))
#define GE_TARGET_END GE_PRAGMA(clang attribute pop)
#else
#define GE_TARGET_BEGIN(t) GE_PRAGMA(GCC push_options) GE_PRAGMA(GCC target(t))
#define GE_TARGET_END GE_PRAGMA(GCC pop_options)
#endif
#define GE_AVX512 "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2,popcnt"
#define GE_AVX2 "avx2,fma,f16c,bmi,bmi2,popcnt"
// Added to these where register tiles leave few integer registers: gcc would keep integers in vector registers, and
// reading them waits behind the multiply-adds in flight. Functions of other tunings are not inlined unless GE_INLINE.
#define GE_TILES ",tune=haswell"
#define GE_INLINE [[gnu::always_inline]] static inline
// Loops over arrays that must live in registers carry this, all of them.
#if defined(__clang__)
#define GE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define GE_UNROLL _Pragma("GCC unroll 32")
#endif

namespace ge::kernels::cube {

// An element of IEEE 754 binary16; bf16s are plain uint16_t.
struct Float16 {
  uint16_t bits;
};

// max(a, b) and min(a, b) give b when either is NaN: the value that may be NaN goes second.
#if defined(__x86_64__)

GE_TARGET_BEGIN(GE_AVX512)
struct V512 {
  using F = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kRegisters = 32;
  GE_INLINE F zero() { return _mm512_setzero_ps(); }
  GE_INLINE F set1(float x) { return _mm512_set1_ps(x); }
  GE_INLINE F load(const float* p) { return _mm512_loadu_ps(p); }
  GE_INLINE void store(float* p, F x) { _mm512_storeu_ps(p, x); }
  GE_INLINE __mmask16 mask(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
  // The first n lanes, 0 <= n <= kLanes; the other lanes are 0, and memory there is not touched.
  GE_INLINE F load_n(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(mask(n), p); }
  GE_INLINE void store_n(float* p, F x, int64_t n) { _mm512_mask_storeu_ps(p, mask(n), x); }
  GE_INLINE F add(F a, F b) { return _mm512_add_ps(a, b); }
  GE_INLINE F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  GE_INLINE F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  GE_INLINE F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }  // a * b + c
  // maskz: the plain intrinsics draw false warnings from gcc 12.
  GE_INLINE F max(F a, F b) { return _mm512_maskz_max_ps(0xffff, a, b); }
  GE_INLINE F min(F a, F b) { return _mm512_maskz_min_ps(0xffff, a, b); }
  GE_INLINE F div(F a, F b) { return a / b; }
  GE_INLINE F sqrt(F x) { return _mm512_maskz_sqrt_ps(0xffff, x); }
  // For permute(): lane i takes lane i / q * q + j, where q is a power of two below kLanes.
  using I = __m512i;
  GE_INLINE I group_index(int q, int j) {
    const I lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_add_epi32(_mm512_and_epi32(lanes, _mm512_set1_epi32(-q)), _mm512_set1_epi32(j));
  }
  GE_INLINE F permute(F x, I index) { return _mm512_maskz_permutexvar_ps(0xffff, index, x); }
  // The larger; NaN if either is NaN.
  GE_INLINE F max_nan(F a, F b) { return _mm512_mask_max_ps(a, _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), a, b); }
  // x where x >= 0 or NaN, else y.
  GE_INLINE F if_negative(F x, F y) {
    return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ), y);
  }
  // The first n lanes of x, then those of fill; 0 <= n <= kLanes.
  GE_INLINE F keep_n(F x, int64_t n, F fill) { return _mm512_mask_mov_ps(fill, mask(n), x); }
  // The float whose bits are those of x shifted left by 23: a power of two from its exponent.
  GE_INLINE F shift_left_23(F x) { return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, _mm512_castps_si512(x), 23)); }
  // bf16s as f32, and f32 to them: to nearest even, NaN stays NaN. As many as lanes, or the first n.
  GE_INLINE F widen(__m256i h) { return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, h), 16)); }
  GE_INLINE F widen(const uint16_t* p) { return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  GE_INLINE F widen_n(const uint16_t* p, int64_t n) { return widen(_mm256_maskz_loadu_epi16(mask(n), p)); }
  GE_INLINE F widen(const Float16* p) { return _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  GE_INLINE F widen_n(const Float16* p, int64_t n) { return _mm512_maskz_cvtph_ps(0xffff, _mm256_maskz_loadu_epi16(mask(n), p)); }
  // Bytes as f32.
  GE_INLINE F widen_bytes(__m128i b) { return _mm512_maskz_cvtepi32_ps(0xffff, _mm512_maskz_cvtepi8_epi32(0xffff, b)); }
  GE_INLINE F widen(const int8_t* p) { return widen_bytes(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  GE_INLINE F widen_n(const int8_t* p, int64_t n) { return widen_bytes(_mm_maskz_loadu_epi8(mask(n), p)); }
  GE_INLINE __m256i halves(F x) {
    const __m512i bits = _mm512_castps_si512(x), high = _mm512_maskz_srli_epi32(0xffff, bits, 16);
    const __m512i odd = _mm512_and_epi32(high, _mm512_set1_epi32(1));
    const __m512i up = _mm512_maskz_srli_epi32(0xffff, _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff)), 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_maskz_cvtepi32_epi16(0xffff, _mm512_mask_or_epi32(up, nan, high, _mm512_set1_epi32(0x40)));
  }
  GE_INLINE void narrow(uint16_t* p, F x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), halves(x)); }
  GE_INLINE void narrow_n(uint16_t* p, F x, int64_t n) { _mm256_mask_storeu_epi16(p, mask(n), halves(x)); }
};
GE_TARGET_END

GE_TARGET_BEGIN(GE_AVX2)
struct V256 {
  using F = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kRegisters = 16;
  GE_INLINE F zero() { return _mm256_setzero_ps(); }
  GE_INLINE F set1(float x) { return _mm256_set1_ps(x); }
  GE_INLINE F load(const float* p) { return _mm256_loadu_ps(p); }
  GE_INLINE void store(float* p, F x) { _mm256_storeu_ps(p, x); }
  GE_INLINE __m256i mask(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  GE_INLINE F load_n(const float* p, int64_t n) { return _mm256_maskload_ps(p, mask(n)); }
  GE_INLINE void store_n(float* p, F x, int64_t n) { _mm256_maskstore_ps(p, mask(n), x); }
  GE_INLINE F add(F a, F b) { return _mm256_add_ps(a, b); }
  GE_INLINE F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  GE_INLINE F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  GE_INLINE F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  GE_INLINE F max(F a, F b) { return _mm256_max_ps(a, b); }
  GE_INLINE F min(F a, F b) { return _mm256_min_ps(a, b); }
  GE_INLINE F div(F a, F b) { return a / b; }
  GE_INLINE F sqrt(F x) { return _mm256_sqrt_ps(x); }
  using I = __m256i;
  GE_INLINE I group_index(int q, int j) {
    const I lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_add_epi32(_mm256_and_si256(lanes, _mm256_set1_epi32(-q)), _mm256_set1_epi32(j));
  }
  GE_INLINE F permute(F x, I index) { return _mm256_permutevar8x32_ps(x, index); }
  GE_INLINE F max_nan(F a, F b) {
    return _mm256_blendv_ps(_mm256_max_ps(a, b), a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  }
  GE_INLINE F if_negative(F x, F y) {
    return _mm256_blendv_ps(x, y, _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ));
  }
  GE_INLINE F keep_n(F x, int64_t n, F fill) { return _mm256_blendv_ps(fill, x, _mm256_castsi256_ps(mask(n))); }
  GE_INLINE F shift_left_23(F x) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(x), 23)); }
  GE_INLINE F widen(const uint16_t* p) {
    const __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
  }
  GE_INLINE F widen_n(const uint16_t* p, int64_t n) {
    uint16_t h[kLanes] = {};
    std::memcpy(h, p, static_cast<size_t>(n) * 2);
    return widen(h);
  }
  GE_INLINE F widen(const Float16* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  GE_INLINE F widen_n(const Float16* p, int64_t n) {
    Float16 h[kLanes] = {};
    std::memcpy(h, p, static_cast<size_t>(n) * 2);
    return widen(h);
  }
  GE_INLINE F widen(const int8_t* p) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))); }
  GE_INLINE F widen_n(const int8_t* p, int64_t n) {
    int8_t b[kLanes] = {};
    std::memcpy(b, p, static_cast<size_t>(n));
    return widen(b);
  }
  GE_INLINE void narrow(uint16_t* p, F x) {
    const __m256i bits = _mm256_castps_si256(x), high = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i up = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7fff)), 16);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m256i h = _mm256_blendv_epi8(up, _mm256_or_si256(high, _mm256_set1_epi32(0x40)), nan);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_packus_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1)));
  }
  GE_INLINE void narrow_n(uint16_t* p, F x, int64_t n) {
    uint16_t h[kLanes];
    narrow(h, x);
    std::memcpy(p, h, static_cast<size_t>(n) * 2);
  }
};
GE_TARGET_END

#endif  // __x86_64__

// The baseline of the build through the compiler's vector extension, with NEON's own instructions where the
// extension has no word for them.
struct V128 {
  typedef float F __attribute__((vector_size(16)));
  typedef uint32_t U __attribute__((vector_size(16)));
  static constexpr int kLanes = 4;
#if defined(__aarch64__)
  static constexpr int kRegisters = 32;
#else
  static constexpr int kRegisters = 16;
#endif
  GE_INLINE F zero() { return F{}; }
  GE_INLINE F set1(float x) { return F{x, x, x, x}; }
  GE_INLINE F load(const float* p) {
    F x;
    std::memcpy(&x, p, sizeof x);
    return x;
  }
  GE_INLINE void store(float* p, F x) { std::memcpy(p, &x, sizeof x); }
  GE_INLINE F load_n(const float* p, int64_t n) {
    F x{};
    for (int i = 0; i < kLanes; ++i)
      if (i < n) x[i] = p[i];
    return x;
  }
  GE_INLINE void store_n(float* p, F x, int64_t n) {
    for (int i = 0; i < kLanes; ++i)
      if (i < n) p[i] = x[i];
  }
  GE_INLINE F add(F a, F b) { return a + b; }
  GE_INLINE F sub(F a, F b) { return a - b; }
  GE_INLINE F mul(F a, F b) { return a * b; }
  GE_INLINE F max(F a, F b) { return a > b ? a : b; }
  GE_INLINE F min(F a, F b) { return a < b ? a : b; }
  GE_INLINE F div(F a, F b) { return a / b; }
  GE_INLINE F sqrt(F x) {
    for (int i = 0; i < kLanes; ++i) x[i] = std::sqrt(x[i]);
    return x;
  }
#if defined(__aarch64__)
  // With set1(memory) as a, gcc makes it a scalar load and a multiplication by element.
  GE_INLINE F fma(F a, F b, F c) { return (F)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
  GE_INLINE F max_nan(F a, F b) { return (F)vmaxq_f32((float32x4_t)a, (float32x4_t)b); }
  typedef uint8x16_t I;  // the bytes to take
  GE_INLINE I group_index(int q, int j) {
    const U lane = (U{0, 1, 2, 3} & -static_cast<uint32_t>(q)) + static_cast<uint32_t>(j);
    return (I)(lane * 0x04040404u + 0x03020100u);
  }
  GE_INLINE F permute(F x, I index) { return (F)vqtbl1q_u8((uint8x16_t)x, index); }
#else
  GE_INLINE F fma(F a, F b, F c) { return a * b + c; }
  GE_INLINE F max_nan(F a, F b) { return a != a ? a : a > b ? a : b; }
  typedef int32_t I __attribute__((vector_size(16)));
  GE_INLINE I group_index(int q, int j) { return (I{0, 1, 2, 3} & -q) + j; }
  GE_INLINE F permute(F x, I index) { return F{x[index[0]], x[index[1]], x[index[2]], x[index[3]]}; }
#endif
  GE_INLINE F if_negative(F x, F y) { return x < zero() ? y : x; }
  GE_INLINE F keep_n(F x, int64_t n, F fill) {
    for (int i = 0; i < kLanes; ++i)
      if (i >= n) x[i] = fill[i];
    return x;
  }
  GE_INLINE F shift_left_23(F x) {
    typedef int S __attribute__((vector_size(16)));
    return (F)((S)x << 23);
  }
  GE_INLINE F widen_n(const uint16_t* p, int64_t n) {
    U u{};
    for (int i = 0; i < kLanes; ++i)
      if (i < n) u[i] = static_cast<uint32_t>(p[i]) << 16;
    return (F)u;
  }
  GE_INLINE F widen(const uint16_t* p) {
    U u{};
    for (int i = 0; i < kLanes; ++i) u[i] = static_cast<uint32_t>(p[i]) << 16;
    return (F)u;
  }
  GE_INLINE F widen_n(const Float16* p, int64_t n) {
    F x{};
    for (int i = 0; i < kLanes; ++i)
      if (i < n) x[i] = f16_to_f32(p[i].bits);
    return x;
  }
  GE_INLINE F widen(const Float16* p) { return widen_n(p, kLanes); }
  GE_INLINE F widen_n(const int8_t* p, int64_t n) {
    F x{};
    for (int i = 0; i < kLanes; ++i)
      if (i < n) x[i] = p[i];
    return x;
  }
  GE_INLINE F widen(const int8_t* p) {
#if defined(__x86_64__)
    int32_t four;
    std::memcpy(&four, p, sizeof four);
    __m128i b = _mm_cvtsi32_si128(four);
    b = _mm_unpacklo_epi8(b, b);
    b = _mm_unpacklo_epi16(b, b);
    return (F)_mm_cvtepi32_ps(_mm_srai_epi32(b, 24));
#elif defined(__aarch64__)
    uint32_t four;
    std::memcpy(&four, p, sizeof four);
    const int16x8_t wide = vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(four)));
    return (F)vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide)));
#else
    return widen_n(p, kLanes);
#endif
  }
  GE_INLINE void narrow_n(uint16_t* p, F x, int64_t n) {
    const U bits = (U)x, high = bits >> 16, up = (bits + (high & 1) + 0x7fff) >> 16, h = x != x ? high | 0x40 : up;
    for (int i = 0; i < kLanes; ++i)
      if (i < n) p[i] = static_cast<uint16_t>(h[i]);
  }
  GE_INLINE void narrow(uint16_t* p, F x) { narrow_n(p, x, kLanes); }
};

}  // namespace ge::kernels::cube
