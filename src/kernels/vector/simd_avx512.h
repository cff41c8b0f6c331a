// The SIMD vocabulary for AVX-512 (F, BW, CD, DQ, VL): 16 lanes of 32 bits. See simd.h.
#pragma once

#include "kernels/vector/simd.h"
#include "tensor/half.h"

#if defined(__x86_64__)
GE_TARGET_AVX512_BEGIN
namespace ge::kernels::vector::avx512 {

typedef float V __attribute__((vector_size(64)));
typedef int32_t I __attribute__((vector_size(64)));
typedef uint32_t U __attribute__((vector_size(64)));
typedef __mmask16 M;      // one bit a lane
typedef __mmask16 Tail;   // lanes that exist in the last, partial vector
inline constexpr int kLanes = 16;
inline constexpr bool kHasFma = true;

GE_SIMD __m512i raw(I a) { return (__m512i)a; }
GE_SIMD V as_f(I a) { return (V)a; }
GE_SIMD I as_i(V a) { return (I)a; }
GE_SIMD V set(float x) { return (V)_mm512_set1_ps(x); }
GE_SIMD I iset(int32_t x) { return (I)_mm512_set1_epi32(x); }
GE_SIMD V load(const void* p) { return (V)_mm512_loadu_ps(p); }
GE_SIMD void store(void* p, V a) { _mm512_storeu_ps(p, a); }
GE_SIMD void stream(void* p, V a) { _mm512_stream_ps(static_cast<float*>(p), a); }
GE_SIMD Tail tail(int n) { return static_cast<Tail>(n >= 16 ? 0xffff : n <= 0 ? 0 : (1 << n) - 1); }
GE_SIMD M lanes_of(Tail t) { return t; }
GE_SIMD V load_tail(const void* p, Tail t) { return (V)_mm512_maskz_loadu_ps(t, p); }
GE_SIMD void store_tail(void* p, Tail t, V a) { _mm512_mask_storeu_ps(p, t, a); }
// Back to code for smaller CPUs: legacy SSE instructions wait for dirty upper halves (measured: 100 ns).
GE_SIMD void leave() { _mm256_zeroupper(); }
GE_SIMD float first(V a) { return _mm512_cvtss_f32(a); }
GE_SIMD V shuffle(V a, I index) { return (V)_mm512_permutexvar_ps(raw(index), a); }

GE_SIMD V fma(V a, V b, V c) { return (V)_mm512_fmadd_ps(a, b, c); }
GE_SIMD V fnma(V a, V b, V c) { return (V)_mm512_fnmadd_ps(a, b, c); }  // c - a*b
GE_SIMD V vsqrt(V a) { return (V)_mm512_sqrt_ps(a); }
// The second operand when either is NaN.
GE_SIMD V hw_min(V a, V b) { return (V)_mm512_min_ps(a, b); }
GE_SIMD V hw_max(V a, V b) { return (V)_mm512_max_ps(a, b); }
GE_SIMD V vfloor(V a) { return (V)_mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
GE_SIMD V vceil(V a) { return (V)_mm512_roundscale_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
GE_SIMD V vtrunc(V a) { return (V)_mm512_roundscale_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
GE_SIMD V vround(V a) { return (V)_mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
GE_SIMD I cvt_trunc(V a) { return (I)_mm512_cvttps_epi32(a); }
GE_SIMD V cvt_f(I a) { return (V)_mm512_cvtepi32_ps(raw(a)); }

GE_SIMD M lt(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
GE_SIMD M le(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
GE_SIMD M eq(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
GE_SIMD M ne(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ); }
GE_SIMD M nan(V a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
GE_SIMD M ilt(I a, I b) { return _mm512_cmplt_epi32_mask(raw(a), raw(b)); }
GE_SIMD M ile(I a, I b) { return _mm512_cmple_epi32_mask(raw(a), raw(b)); }
GE_SIMD M ieq(I a, I b) { return _mm512_cmpeq_epi32_mask(raw(a), raw(b)); }
GE_SIMD M ine(I a, I b) { return _mm512_cmpneq_epi32_mask(raw(a), raw(b)); }
GE_SIMD M nonzero(I a) { return _mm512_test_epi32_mask(raw(a), raw(a)); }
GE_SIMD I ones(M m) { return (I)_mm512_maskz_set1_epi32(m, 1); }
GE_SIMD V sel(M m, V t, V f) { return (V)_mm512_mask_blend_ps(m, f, t); }
GE_SIMD I isel(M m, I t, I f) { return (I)_mm512_mask_blend_epi32(m, raw(f), raw(t)); }
GE_SIMD bool any(M m) { return m != 0; }

GE_SIMD I shl(I a, I n) { return (I)_mm512_sllv_epi32(raw(a), raw(n)); }  // 0 from 32 on
GE_SIMD I shr(I a, I n) { return (I)_mm512_srlv_epi32(raw(a), raw(n)); }
GE_SIMD I imin(I a, I b) { return (I)_mm512_min_epi32(raw(a), raw(b)); }
GE_SIMD I imax(I a, I b) { return (I)_mm512_max_epi32(raw(a), raw(b)); }
// Truncated quotient, exact in double; 0 where b is 0, wrapping for INT_MIN / -1.
GE_SIMD __m256i idiv_half(__m256i a, __m256i b) {
  return _mm512_cvttpd_epi32(_mm512_div_pd(_mm512_cvtepi32_pd(a), _mm512_cvtepi32_pd(b)));
}
GE_SIMD I idiv(I a, I b) {
  __m512i x = raw(a), y = raw(b);
  __m256i lo = idiv_half(_mm512_castsi512_si256(x), _mm512_castsi512_si256(y));
  __m256i hi = idiv_half(_mm512_extracti64x4_epi64(x, 1), _mm512_extracti64x4_epi64(y, 1));
  return (I)_mm512_maskz_mov_epi32(nonzero(b), _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1));
}
// a * 2^n for integral |n| <= 300, one rounding.
GE_SIMD V scale2(V a, V n) { return (V)_mm512_scalef_ps(a, n); }

// Storage conversions: full vectors, and the lanes of a tail. count is the tail's number of lanes.
struct F16 {
  GE_SIMD V get(__m256i x) { return (V)_mm512_cvtph_ps(x); }
  GE_SIMD V load(const void* p) { return get(_mm256_loadu_si256(static_cast<const __m256i*>(p))); }
  GE_SIMD V load_tail(const void* p, Tail t, int) { return get(_mm256_maskz_loadu_epi16(t, p)); }
  GE_SIMD __m256i put(V a) { return _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  GE_SIMD void store(void* p, V a) { _mm256_storeu_si256(static_cast<__m256i*>(p), put(a)); }
  GE_SIMD void store_tail(void* p, Tail t, int, V a) { _mm256_mask_storeu_epi16(p, t, put(a)); }
};
struct BF16 {
  GE_SIMD V get(__m256i x) { return (V)_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16); }
  GE_SIMD V load(const void* p) { return get(_mm256_loadu_si256(static_cast<const __m256i*>(p))); }
  GE_SIMD V load_tail(const void* p, Tail t, int) { return get(_mm256_maskz_loadu_epi16(t, p)); }
  GE_SIMD __m256i put(V a) {
    __m512i x = raw(as_i(a)), odd = _mm512_and_si512(_mm512_srli_epi32(x, 16), _mm512_set1_epi32(1));
    __m512i r = _mm512_add_epi32(x, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    r = _mm512_mask_or_epi32(r, nan(a), x, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(r, 16));
  }
  GE_SIMD void store(void* p, V a) { _mm256_storeu_si256(static_cast<__m256i*>(p), put(a)); }
  GE_SIMD void store_tail(void* p, Tail t, int, V a) { _mm256_mask_storeu_epi16(p, t, put(a)); }
};
template <bool kSigned>
struct Int16 {
  GE_SIMD I get(__m256i x) { return (I)(kSigned ? _mm512_cvtepi16_epi32(x) : _mm512_cvtepu16_epi32(x)); }
  GE_SIMD I load(const void* p) { return get(_mm256_loadu_si256(static_cast<const __m256i*>(p))); }
  GE_SIMD I load_tail(const void* p, Tail t, int) { return get(_mm256_maskz_loadu_epi16(t, p)); }
  GE_SIMD void store(void* p, I a) { _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtepi32_epi16(raw(a))); }
  GE_SIMD void store_tail(void* p, Tail t, int, I a) { _mm512_mask_cvtepi32_storeu_epi16(p, t, raw(a)); }
};
template <bool kSigned>
struct Int8 {
  GE_SIMD I get(__m128i x) { return (I)(kSigned ? _mm512_cvtepi8_epi32(x) : _mm512_cvtepu8_epi32(x)); }
  GE_SIMD I load(const void* p) { return get(_mm_loadu_si128(static_cast<const __m128i*>(p))); }
  GE_SIMD I load_tail(const void* p, Tail t, int) { return get(_mm_maskz_loadu_epi8(t, p)); }
  GE_SIMD void store(void* p, I a) { _mm_storeu_si128(static_cast<__m128i*>(p), _mm512_cvtepi32_epi8(raw(a))); }
  GE_SIMD void store_tail(void* p, Tail t, int, I a) { _mm512_mask_cvtepi32_storeu_epi8(p, t, raw(a)); }
};
struct Int64 {
  GE_SIMD V get(__m512i lo, __m512i hi) {
    return (V)_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtepi64_ps(lo)), _mm512_cvtepi64_ps(hi), 1);
  }
  GE_SIMD V load_f(const void* p) {
    const char* q = static_cast<const char*>(p);
    return get(_mm512_loadu_si512(q), _mm512_loadu_si512(q + 64));
  }
  GE_SIMD V load_f_tail(const void* p, Tail t, int) {
    const char* q = static_cast<const char*>(p);
    return get(_mm512_maskz_loadu_epi64(static_cast<__mmask8>(t), q),
               _mm512_maskz_loadu_epi64(static_cast<__mmask8>(t >> 8), q + 64));
  }
  GE_SIMD __m512i low(I a) { return _mm512_cvtepi32_epi64(_mm512_castsi512_si256(raw(a))); }
  GE_SIMD __m512i high(I a) { return _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(raw(a), 1)); }
  GE_SIMD void store(void* p, I a) {
    char* q = static_cast<char*>(p);
    _mm512_storeu_si512(q, low(a));
    _mm512_storeu_si512(q + 64, high(a));
  }
  GE_SIMD void store_tail(void* p, Tail t, int, I a) {
    char* q = static_cast<char*>(p);
    _mm512_mask_storeu_epi64(q, static_cast<__mmask8>(t), low(a));
    _mm512_mask_storeu_epi64(q + 64, static_cast<__mmask8>(t >> 8), high(a));
  }
};

#include "kernels/vector/math-inl.h"

}  // namespace ge::kernels::vector::avx512
GE_TARGET_END
#endif
