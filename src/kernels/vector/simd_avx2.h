// The SIMD vocabulary for AVX2 with FMA and F16C: 8 lanes of 32 bits. See simd.h.
#pragma once

#include "kernels/vector/simd.h"
#include "tensor/half.h"

#if defined(__x86_64__)
GE_TARGET_AVX2_BEGIN
namespace ge::kernels::vector::avx2 {

typedef float V __attribute__((vector_size(32)));
typedef int32_t I __attribute__((vector_size(32)));
typedef uint32_t U __attribute__((vector_size(32)));
struct M {  // all bits of a lane
  I v;
};
typedef I Tail;  // lanes that exist in the last, partial vector: -1
inline constexpr int kLanes = 8;
inline constexpr bool kHasFma = true;

GE_SIMD __m256i raw(I a) { return (__m256i)a; }
GE_SIMD V as_f(I a) { return (V)a; }
GE_SIMD I as_i(V a) { return (I)a; }
GE_SIMD V set(float x) { return (V)_mm256_set1_ps(x); }
GE_SIMD I iset(int32_t x) { return (I)_mm256_set1_epi32(x); }
GE_SIMD V load(const void* p) { return (V)_mm256_loadu_ps(static_cast<const float*>(p)); }
GE_SIMD void store(void* p, V a) { _mm256_storeu_ps(static_cast<float*>(p), a); }
GE_SIMD void stream(void* p, V a) { _mm256_stream_ps(static_cast<float*>(p), a); }
GE_SIMD Tail tail(int n) { return (I)_mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)); }
GE_SIMD M lanes_of(Tail t) { return {t}; }
GE_SIMD V load_tail(const void* p, Tail t) { return (V)_mm256_maskload_ps(static_cast<const float*>(p), raw(t)); }
GE_SIMD void store_tail(void* p, Tail t, V a) { _mm256_maskstore_ps(static_cast<float*>(p), raw(t), a); }
GE_SIMD void leave() { _mm256_zeroupper(); }  // see simd_avx512.h
GE_SIMD float first(V a) { return _mm256_cvtss_f32(a); }
GE_SIMD V shuffle(V a, I index) { return (V)_mm256_permutevar8x32_ps(a, raw(index)); }

GE_SIMD V fma(V a, V b, V c) { return (V)_mm256_fmadd_ps(a, b, c); }
GE_SIMD V fnma(V a, V b, V c) { return (V)_mm256_fnmadd_ps(a, b, c); }
GE_SIMD V vsqrt(V a) { return (V)_mm256_sqrt_ps(a); }
GE_SIMD V hw_min(V a, V b) { return (V)_mm256_min_ps(a, b); }
GE_SIMD V hw_max(V a, V b) { return (V)_mm256_max_ps(a, b); }
GE_SIMD V vfloor(V a) { return (V)_mm256_floor_ps(a); }
GE_SIMD V vceil(V a) { return (V)_mm256_ceil_ps(a); }
GE_SIMD V vtrunc(V a) { return (V)_mm256_round_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
GE_SIMD V vround(V a) { return (V)_mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
GE_SIMD I cvt_trunc(V a) { return (I)_mm256_cvttps_epi32(a); }
GE_SIMD V cvt_f(I a) { return (V)_mm256_cvtepi32_ps(raw(a)); }

GE_SIMD M mask(__m256 a) { return {(I)a}; }
GE_SIMD M imask(__m256i a) { return {(I)a}; }
GE_SIMD M lt(V a, V b) { return mask(_mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
GE_SIMD M le(V a, V b) { return mask(_mm256_cmp_ps(a, b, _CMP_LE_OQ)); }
GE_SIMD M eq(V a, V b) { return mask(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)); }
GE_SIMD M ne(V a, V b) { return mask(_mm256_cmp_ps(a, b, _CMP_NEQ_UQ)); }
GE_SIMD M nan(V a) { return mask(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)); }
GE_SIMD M ilt(I a, I b) { return imask(_mm256_cmpgt_epi32(raw(b), raw(a))); }
GE_SIMD M ile(I a, I b) { return {~ilt(b, a).v}; }
GE_SIMD M ieq(I a, I b) { return imask(_mm256_cmpeq_epi32(raw(a), raw(b))); }
GE_SIMD M ine(I a, I b) { return {~ieq(a, b).v}; }
GE_SIMD M nonzero(I a) { return ine(a, iset(0)); }
GE_SIMD I ones(M m) { return (I)_mm256_srli_epi32(raw(m.v), 31); }
GE_SIMD V sel(M m, V t, V f) { return (V)_mm256_blendv_ps(f, t, as_f(m.v)); }
GE_SIMD I isel(M m, I t, I f) { return as_i(sel(m, as_f(t), as_f(f))); }
GE_SIMD bool any(M m) { return _mm256_movemask_ps(as_f(m.v)) != 0; }

GE_SIMD I shl(I a, I n) { return (I)_mm256_sllv_epi32(raw(a), raw(n)); }
GE_SIMD I shr(I a, I n) { return (I)_mm256_srlv_epi32(raw(a), raw(n)); }
GE_SIMD I imin(I a, I b) { return (I)_mm256_min_epi32(raw(a), raw(b)); }
GE_SIMD I imax(I a, I b) { return (I)_mm256_max_epi32(raw(a), raw(b)); }
GE_SIMD __m128i idiv_half(__m128i a, __m128i b) {
  return _mm256_cvttpd_epi32(_mm256_div_pd(_mm256_cvtepi32_pd(a), _mm256_cvtepi32_pd(b)));
}
GE_SIMD I idiv(I a, I b) {
  __m256i x = raw(a), y = raw(b);
  __m128i lo = idiv_half(_mm256_castsi256_si128(x), _mm256_castsi256_si128(y));
  __m128i hi = idiv_half(_mm256_extracti128_si256(x, 1), _mm256_extracti128_si256(y, 1));
  return (I)_mm256_set_m128i(hi, lo) & nonzero(b).v;
}
// In two factors, so that neither over- nor underflows by itself; the second product rounds.
GE_SIMD V scale2(V a, V n) {
  I k = cvt_trunc(n), half = (I)_mm256_srai_epi32(raw(k), 1), rest = k - half;
  return a * as_f((half + 127) << 23) * as_f((rest + 127) << 23);
}

// Tails of narrow types go through a buffer: AVX2 masks only lanes of 32 bits and more.
template <int kBytes>
struct Partial {
  alignas(32) unsigned char b[kBytes * kLanes] = {};
  GE_SIMD void get(Partial& x, const void* p, int count) {
    if (count > 0) std::memcpy(x.b, p, static_cast<size_t>(count < kLanes ? count : kLanes) * kBytes);
  }
  GE_SIMD void put(const Partial& x, void* p, int count) {
    if (count > 0) std::memcpy(p, x.b, static_cast<size_t>(count < kLanes ? count : kLanes) * kBytes);
  }
};
template <class T, class R, int kBytes>
struct Buffered {
  GE_SIMD R load_tail(const void* p, Tail, int count) {
    Partial<kBytes> x;
    Partial<kBytes>::get(x, p, count);
    return T::load(x.b);
  }
  GE_SIMD void store_tail(void* p, Tail, int count, R a) {
    Partial<kBytes> x;
    T::store(x.b, a);
    Partial<kBytes>::put(x, p, count);
  }
};
struct F16 : Buffered<F16, V, 2> {
  GE_SIMD V load(const void* p) { return (V)_mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p))); }
  GE_SIMD void store(void* p, V a) {
    _mm_storeu_si128(static_cast<__m128i*>(p), _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
};
// The low halves of eight 32-bit lanes that hold 0..65535.
GE_SIMD __m128i pack16(__m256i x) {
  return _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
}
struct BF16 : Buffered<BF16, V, 2> {
  GE_SIMD V load(const void* p) {
    return (V)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p))), 16);
  }
  GE_SIMD void store(void* p, V a) {
    I x = as_i(a), odd = (I)_mm256_srli_epi32(raw(x), 16) & 1;
    I r = isel(nan(a), x | 0x400000, x + odd + 0x7fff);
    _mm_storeu_si128(static_cast<__m128i*>(p), pack16(_mm256_srli_epi32(raw(r), 16)));
  }
};
template <bool kSigned>
struct Int16 : Buffered<Int16<kSigned>, I, 2> {
  GE_SIMD I load(const void* p) {
    __m128i x = _mm_loadu_si128(static_cast<const __m128i*>(p));
    return (I)(kSigned ? _mm256_cvtepi16_epi32(x) : _mm256_cvtepu16_epi32(x));
  }
  GE_SIMD void store(void* p, I a) { _mm_storeu_si128(static_cast<__m128i*>(p), pack16(raw(a & 0xffff))); }
};
template <bool kSigned>
struct Int8 : Buffered<Int8<kSigned>, I, 1> {
  GE_SIMD I load(const void* p) {
    __m128i x = _mm_loadl_epi64(static_cast<const __m128i*>(p));
    return (I)(kSigned ? _mm256_cvtepi8_epi32(x) : _mm256_cvtepu8_epi32(x));
  }
  GE_SIMD void store(void* p, I a) {
    __m128i x = pack16(raw(a & 0xff));
    _mm_storel_epi64(static_cast<__m128i*>(p), _mm_packus_epi16(x, x));
  }
};
struct Int64 {
  GE_SIMD V load_f_tail(const void* p, Tail, int count) {
    alignas(32) float f[kLanes] = {};
    for (int i = 0; i < kLanes && i < count; ++i) {
      int64_t x;
      std::memcpy(&x, static_cast<const char*>(p) + 8 * i, 8);
      f[i] = static_cast<float>(x);
    }
    return vector::avx2::load(f);
  }
  GE_SIMD V load_f(const void* p) { return load_f_tail(p, Tail{}, kLanes); }
  GE_SIMD __m256i low(I a) { return _mm256_cvtepi32_epi64(_mm256_castsi256_si128(raw(a))); }
  GE_SIMD __m256i high(I a) { return _mm256_cvtepi32_epi64(_mm256_extracti128_si256(raw(a), 1)); }
  GE_SIMD void store(void* p, I a) {
    char* q = static_cast<char*>(p);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), low(a));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + 32), high(a));
  }
  GE_SIMD void store_tail(void* p, Tail t, int, I a) {
    long long* q = static_cast<long long*>(p);
    _mm256_maskstore_epi64(q, low(t), low(a));
    _mm256_maskstore_epi64(q + 4, high(t), high(a));
  }
};

#include "kernels/vector/math-inl.h"

}  // namespace ge::kernels::vector::avx2
GE_TARGET_END
#endif
