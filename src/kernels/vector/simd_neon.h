// The SIMD vocabulary for NEON, the baseline of AArch64: 4 lanes of 32 bits. See simd.h.
#pragma once

#include "kernels/vector/simd.h"
#include "tensor/half.h"

#if defined(__aarch64__)
#include <arm_neon.h>

namespace ge::kernels::vector::neon {

typedef float V __attribute__((vector_size(16)));
typedef int32_t I __attribute__((vector_size(16)));
typedef uint32_t U __attribute__((vector_size(16)));
struct M {  // all bits of a lane
  I v;
};
typedef I Tail;  // lanes that exist in the last, partial vector: -1
inline constexpr int kLanes = 4;
inline constexpr bool kHasFma = true;

GE_SIMD float32x4_t raw(V a) { return (float32x4_t)a; }
GE_SIMD V as_f(I a) { return (V)a; }
GE_SIMD I as_i(V a) { return (I)a; }
GE_SIMD V set(float x) { return V{x, x, x, x}; }
GE_SIMD I iset(int32_t x) { return I{x, x, x, x}; }
template <class T>
GE_SIMD T read(const void* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
template <class T>
GE_SIMD void write(void* p, T x) {
  std::memcpy(p, &x, sizeof x);
}
GE_SIMD V load(const void* p) { return read<V>(p); }
GE_SIMD void store(void* p, V a) { write(p, a); }
GE_SIMD void stream(void* p, V a) { write(p, a); }
GE_SIMD Tail tail(int n) { return I{0, 1, 2, 3} < iset(n); }
GE_SIMD M lanes_of(Tail t) { return {t}; }
// Not inlined: partial vectors are rare, and there is no masked load to make them short.
#define GE_FAR static __attribute__((noinline, unused))
GE_FAR V load_tail(const void* p, Tail t) {
  V v{};
  for (int i = 0; i < kLanes; ++i)
    if (t[i]) v[i] = read<float>(static_cast<const char*>(p) + 4 * i);
  return v;
}
GE_FAR void store_tail(void* p, Tail t, V a) {
  for (int i = 0; i < kLanes; ++i)
    if (t[i]) write(static_cast<char*>(p) + 4 * i, a[i]);
}
GE_SIMD void leave() {}
GE_SIMD float first(V a) { return a[0]; }
GE_SIMD V shuffle(V a, I index) {
  return (V)vqtbl1q_u8((uint8x16_t)a, (uint8x16_t)(index * 0x04040404 + 0x03020100));
}

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
GE_SIMD bool any(M m) { return vmaxvq_u32((uint32x4_t)m.v) != 0; }
GE_SIMD V sel(M m, V t, V f) { return (V)vbslq_f32((uint32x4_t)m.v, raw(t), raw(f)); }
GE_SIMD I isel(M m, I t, I f) { return as_i(sel(m, as_f(t), as_f(f))); }

GE_SIMD V fma(V a, V b, V c) { return (V)vfmaq_f32(raw(c), raw(a), raw(b)); }
GE_SIMD V fnma(V a, V b, V c) { return (V)vfmsq_f32(raw(c), raw(a), raw(b)); }  // c - a*b
GE_SIMD V vsqrt(V a) { return (V)vsqrtq_f32(raw(a)); }
// The second operand when either is NaN, which fmin and fmax do not give.
GE_SIMD V hw_min(V a, V b) { return sel(lt(a, b), a, b); }
GE_SIMD V hw_max(V a, V b) { return sel(lt(b, a), a, b); }
GE_SIMD V vfloor(V a) { return (V)vrndmq_f32(raw(a)); }
GE_SIMD V vceil(V a) { return (V)vrndpq_f32(raw(a)); }
GE_SIMD V vtrunc(V a) { return (V)vrndq_f32(raw(a)); }
GE_SIMD V vround(V a) { return (V)vrndnq_f32(raw(a)); }
// NaN and out of range give INT32_MIN, as on x86; the instruction saturates and makes NaN 0.
GE_SIMD I cvt_trunc(V a) {
  return isel(lt(a, set(0x1p31f)), (I)vcvtq_s32_f32(raw(a)), iset(INT32_MIN));
}
GE_SIMD V cvt_f(I a) { return (V)vcvtq_f32_s32((int32x4_t)a); }

GE_SIMD I shl(I a, I n) { return (a << (n & 31)) & (I)((U)n < 32u); }
GE_SIMD I shr(I a, I n) { return (I)((U)a >> (U)(n & 31)) & (I)((U)n < 32u); }
GE_SIMD I imin(I a, I b) { return (I)vminq_s32((int32x4_t)a, (int32x4_t)b); }
GE_SIMD I imax(I a, I b) { return (I)vmaxq_s32((int32x4_t)a, (int32x4_t)b); }
GE_SIMD I idiv(I a, I b) {
  I r;
  for (int i = 0; i < kLanes; ++i)
    r[i] = b[i] ? static_cast<int32_t>(static_cast<int64_t>(a[i]) / b[i]) : 0;
  return r;
}
// In two factors, so that neither over- nor underflows by itself; the second product rounds.
GE_SIMD V scale2(V a, V n) {
  I k = (I)vcvtq_s32_f32(raw(n)), half = k >> 1, rest = k - half;
  return a * as_f((half + 127) << 23) * as_f((rest + 127) << 23);
}

// Storage types: S::load and S::store convert whole vectors; tails convert lane by lane through
// get() and put().
template <class S, class T, class R>
struct ByLane {
  GE_FAR R load_tail(const void* p, Tail, int count) {
    R r{};
    for (int i = 0; i < kLanes && i < count; ++i)
      r[i] = S::get(read<T>(static_cast<const char*>(p) + sizeof(T) * i));
    return r;
  }
  GE_FAR void store_tail(void* p, Tail, int count, R a) {
    for (int i = 0; i < kLanes && i < count; ++i)
      write<T>(static_cast<char*>(p) + sizeof(T) * i, S::put(a[i]));
  }
};
struct F16 : ByLane<F16, uint16_t, V> {
  GE_SIMD float get(uint16_t x) { return f16_to_f32(x); }
  GE_SIMD uint16_t put(float x) { return f32_to_f16(x); }
  GE_SIMD V load(const void* p) { return (V)vcvt_f32_f16(read<float16x4_t>(p)); }
  GE_SIMD void store(void* p, V a) { write(p, vcvt_f16_f32(raw(a))); }
};
struct BF16 : ByLane<BF16, uint16_t, V> {
  GE_SIMD float get(uint16_t x) { return bf16_to_f32(x); }
  GE_SIMD uint16_t put(float x) { return f32_to_bf16(x); }
  GE_SIMD V load(const void* p) { return (V)vshll_n_u16(read<uint16x4_t>(p), 16); }
  GE_SIMD void store(void* p, V a) {
    I x = as_i(a), odd = (x >> 16) & 1;
    write(p, vshrn_n_u32((uint32x4_t)isel(nan(a), x | 0x400000, x + odd + 0x7fff), 16));
  }
};
template <class T>
struct Narrow : ByLane<Narrow<T>, T, I> {
  GE_SIMD int32_t get(T x) { return x; }
  GE_SIMD T put(int32_t x) { return static_cast<T>(x); }
};
template <bool kSigned>
struct Int16 : Narrow<std::conditional_t<kSigned, int16_t, uint16_t>> {
  GE_SIMD I load(const void* p) {
    if constexpr (kSigned)
      return (I)vmovl_s16(read<int16x4_t>(p));
    else
      return (I)vmovl_u16(read<uint16x4_t>(p));
  }
  GE_SIMD void store(void* p, I a) { write(p, vmovn_u32((uint32x4_t)a)); }
};
template <bool kSigned>
struct Int8 : Narrow<std::conditional_t<kSigned, int8_t, uint8_t>> {
  GE_SIMD I load(const void* p) {
    uint8x8_t x = vreinterpret_u8_u32(vdup_n_u32(read<uint32_t>(p)));
    if constexpr (kSigned)
      return (I)vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(x))));
    else
      return (I)vmovl_u16(vget_low_u16(vmovl_u8(x)));
  }
  GE_SIMD void store(void* p, I a) {
    uint16x4_t half = vmovn_u32((uint32x4_t)a);
    write(p, vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(half, half))), 0));
  }
};
struct WideFloat : ByLane<WideFloat, int64_t, V> {  // one rounding: not by way of double
  GE_SIMD float get(int64_t x) { return static_cast<float>(x); }
  GE_SIMD int64_t put(float) { return 0; }
};
struct Int64 : ByLane<Int64, int64_t, I> {
  GE_SIMD int32_t get(int64_t x) { return static_cast<int32_t>(x); }
  GE_SIMD int64_t put(int32_t x) { return x; }
  GE_SIMD V load_f(const void* p) { return WideFloat::load_tail(p, Tail{}, kLanes); }
  GE_SIMD V load_f_tail(const void* p, Tail t, int count) {
    return WideFloat::load_tail(p, t, count);
  }
  GE_SIMD void store(void* p, I a) {
    write(p, vmovl_s32(vget_low_s32((int32x4_t)a)));
    write(static_cast<char*>(p) + 16, vmovl_s32(vget_high_s32((int32x4_t)a)));
  }
};

#include "kernels/vector/math-inl.h"

}  // namespace ge::kernels::vector::neon
#endif
