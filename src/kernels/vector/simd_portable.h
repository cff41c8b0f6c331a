// The SIMD vocabulary on the compiler's generic vectors: 4 lanes of 32 bits, for the baseline of the
// build (SSE2 on x86-64) where that has no header of its own. See simd.h.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/vector/simd.h"
#include "tensor/half.h"

namespace ge::kernels::vector::portable {

typedef float V __attribute__((vector_size(16)));
typedef int32_t I __attribute__((vector_size(16)));
typedef uint32_t U __attribute__((vector_size(16)));
struct M {
  I v;
};
typedef I Tail;
inline constexpr int kLanes = 4;
#if defined(__FMA__)
inline constexpr bool kHasFma = true;
#else
inline constexpr bool kHasFma = false;
#endif

GE_SIMD V as_f(I a) { return (V)a; }
GE_SIMD I as_i(V a) { return (I)a; }
GE_SIMD V set(float x) { return V{x, x, x, x}; }
GE_SIMD I iset(int32_t x) { return I{x, x, x, x}; }
GE_SIMD V load(const void* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
GE_SIMD void store(void* p, V a) { std::memcpy(p, &a, sizeof a); }
GE_SIMD void stream(void* p, V a) { store(p, a); }
GE_SIMD Tail tail(int n) { return I{0, 1, 2, 3} < iset(n); }
GE_SIMD M lanes_of(Tail t) { return {t}; }
// Not inlined: partial vectors are rare, and there is no masked load to make them short.
#define GE_FAR static __attribute__((noinline, unused))
GE_FAR V load_tail(const void* p, Tail t) {
  V v{};
  const char* q = static_cast<const char*>(p);
  for (int i = 0; i < kLanes; ++i)
    if (t[i]) {
      float f;
      std::memcpy(&f, q + 4 * i, 4);
      v[i] = f;
    }
  return v;
}
GE_FAR void store_tail(void* p, Tail t, V a) {
  char* q = static_cast<char*>(p);
  for (int i = 0; i < kLanes; ++i)
    if (t[i]) {
      float f = a[i];
      std::memcpy(q + 4 * i, &f, 4);
    }
}
GE_SIMD void leave() {}
GE_SIMD float first(V a) { return a[0]; }
GE_SIMD V shuffle(V a, I index) { return V{a[index[0]], a[index[1]], a[index[2]], a[index[3]]}; }

// A function of one lane on each lane.
template <class F>
GE_SIMD V each(V a, F f) {
  return V{f(a[0]), f(a[1]), f(a[2]), f(a[3])};
}
GE_SIMD V fma(V a, V b, V c) {
  if constexpr (kHasFma) {
    V r;
    for (int i = 0; i < kLanes; ++i) r[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return r;
  }
  return a * b + c;
}
GE_SIMD V fnma(V a, V b, V c) { return fma(-a, b, c); }
GE_SIMD V sel(M m, V t, V f) { return as_f((m.v & as_i(t)) | (~m.v & as_i(f))); }
GE_SIMD I isel(M m, I t, I f) { return (m.v & t) | (~m.v & f); }
GE_SIMD M lt(V a, V b) { return {a < b}; }
GE_SIMD M le(V a, V b) { return {a <= b}; }
GE_SIMD M eq(V a, V b) { return {a == b}; }
GE_SIMD M ne(V a, V b) { return {a != b}; }
GE_SIMD M nan(V a) { return {a != a}; }
GE_SIMD M ilt(I a, I b) { return {a < b}; }
GE_SIMD M ile(I a, I b) { return {a <= b}; }
GE_SIMD M ieq(I a, I b) { return {a == b}; }
GE_SIMD M ine(I a, I b) { return {a != b}; }
GE_SIMD M nonzero(I a) { return {a != 0}; }
GE_SIMD I ones(M m) { return m.v & 1; }
GE_SIMD bool any(M m) { return (m.v[0] | m.v[1] | m.v[2] | m.v[3]) != 0; }

GE_SIMD V vsqrt(V a) {
#if defined(__x86_64__)
  return (V)_mm_sqrt_ps((__m128)a);
#else
  return each(a, [](float x) { return __builtin_sqrtf(x); });
#endif
}
GE_SIMD V hw_min(V a, V b) { return sel(lt(a, b), a, b); }
GE_SIMD V hw_max(V a, V b) { return sel(lt(b, a), a, b); }
// NaN and out of range give INT32_MIN, as on x86.
GE_SIMD I cvt_trunc(V a) {
#if defined(__x86_64__)
  return (I)_mm_cvttps_epi32((__m128)a);
#else
  I r;
  for (int i = 0; i < kLanes; ++i)
    r[i] = a[i] >= -0x1p31f && a[i] < 0x1p31f ? static_cast<int32_t>(a[i]) : std::numeric_limits<int32_t>::min();
  return r;
#endif
}
GE_SIMD V cvt_f(I a) { return __builtin_convertvector(a, V); }
// Values from 2^23 on (and NaN) are integers already; the sign of zero is kept.
GE_SIMD V keep_large(V a, V rounded) {
  V magnitude = as_f(as_i(a) & 0x7fffffff), sign = as_f(as_i(a) & INT32_MIN);
  return sel(lt(magnitude, set(0x1p23f)), as_f(as_i(rounded) | as_i(sign)), a);
}
GE_SIMD V vtrunc(V a) { return keep_large(a, cvt_f(cvt_trunc(a))); }
GE_SIMD V vround(V a) {
  V magic = as_f((as_i(a) & INT32_MIN) | as_i(set(0x1p23f)));
  return keep_large(a, (a + magic) - magic);
}
GE_SIMD V vfloor(V a) {
  V t = vtrunc(a);
  return sel(lt(a, t), t - 1.0f, t);
}
GE_SIMD V vceil(V a) {
  V t = vtrunc(a);
  return keep_large(a, sel(lt(t, a), t + 1.0f, t));
}

GE_SIMD I shl(I a, I n) { return (a << (n & 31)) & (I)((U)n < 32u); }
GE_SIMD I shr(I a, I n) { return (I)((U)a >> (U)(n & 31)) & (I)((U)n < 32u); }
GE_SIMD I imin(I a, I b) { return isel(ilt(a, b), a, b); }
GE_SIMD I imax(I a, I b) { return isel(ilt(a, b), b, a); }
GE_SIMD I idiv(I a, I b) {
  I r;
  for (int i = 0; i < kLanes; ++i) r[i] = b[i] ? static_cast<int32_t>(static_cast<int64_t>(a[i]) / b[i]) : 0;
  return r;
}
GE_SIMD V scale2(V a, V n) {
  I k = cvt_trunc(n), half = k >> 1, rest = k - half;
  return a * as_f((half + 127) << 23) * as_f((rest + 127) << 23);
}

// A storage type whose lanes convert one by one through get() and put().
template <class S, class T, class R>
struct ByLane {
  GE_FAR R load_tail(const void* p, Tail, int count) {
    R r{};
    for (int i = 0; i < kLanes && i < count; ++i) {
      T x;
      std::memcpy(&x, static_cast<const char*>(p) + sizeof(T) * i, sizeof x);
      r[i] = S::get(x);
    }
    return r;
  }
  GE_FAR void store_tail(void* p, Tail, int count, R a) {
    for (int i = 0; i < kLanes && i < count; ++i) {
      T x = S::put(a[i]);
      std::memcpy(static_cast<char*>(p) + sizeof(T) * i, &x, sizeof x);
    }
  }
  GE_SIMD R load(const void* p) { return load_tail(p, Tail{}, kLanes); }
  GE_SIMD void store(void* p, R a) { store_tail(p, Tail{}, kLanes, a); }
};
struct F16 : ByLane<F16, uint16_t, V> {
  GE_SIMD float get(uint16_t x) { return f16_to_f32(x); }
  GE_SIMD uint16_t put(float x) { return f32_to_f16(x); }
};
struct BF16 : ByLane<BF16, uint16_t, V> {
  GE_SIMD float get(uint16_t x) { return bf16_to_f32(x); }
  GE_SIMD uint16_t put(float x) { return f32_to_bf16(x); }
};
template <class T>
struct Narrow : ByLane<Narrow<T>, T, I> {
  GE_SIMD int32_t get(T x) { return x; }
  GE_SIMD T put(int32_t x) { return static_cast<T>(x); }
};
template <bool kSigned>
using Int16 = Narrow<std::conditional_t<kSigned, int16_t, uint16_t>>;
template <bool kSigned>
using Int8 = Narrow<std::conditional_t<kSigned, int8_t, uint8_t>>;
struct WideFloat : ByLane<WideFloat, int64_t, V> {
  GE_SIMD float get(int64_t x) { return static_cast<float>(x); }
  GE_SIMD int64_t put(float) { return 0; }
};
struct WideInt : ByLane<WideInt, int64_t, I> {
  GE_SIMD int32_t get(int64_t x) { return static_cast<int32_t>(x); }
  GE_SIMD int64_t put(int32_t x) { return x; }
};
struct Int64 {
  GE_SIMD V load_f(const void* p) { return WideFloat::load(p); }
  GE_SIMD V load_f_tail(const void* p, Tail t, int count) { return WideFloat::load_tail(p, t, count); }
  GE_SIMD void store(void* p, I a) { WideInt::store(p, a); }
  GE_SIMD void store_tail(void* p, Tail t, int count, I a) { WideInt::store_tail(p, t, count, a); }
};

#include "kernels/vector/math-inl.h"

}  // namespace ge::kernels::vector::portable
