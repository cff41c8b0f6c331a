// Typed inner loops of "elementwise.typed": one function for each operator and dtype over one row of
// strided elements. Broadcasting and cutting are elementwise_typed.cc's; vector programs are faster
// where they apply (f32, f16, bf16, i32 and smaller).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/reference/elementwise.h"
#include "tensor/half.h"

namespace ge::kernels::reference {

// Strides in elements. Of a clip, a is x; b and c point at the bounds or are null.
struct Row {
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  const std::byte* c = nullptr;
  std::byte* o = nullptr;
  int64_t sa = 0, sb = 0, so = 0, n = 0;
  double p0 = 0, p1 = 0;
};
using RowFn = void (*)(const Row&);

// Null where the operator does not take the type. Ew::mean is the last step: a / p0.
RowFn float_row(Ew op, DType t);
RowFn int_row(Ew op, DType t);

// The 16-bit floats as types that compute in float.
struct F16 {
  uint16_t bits_of;
  F16() = default;
  F16(float f) : bits_of(f32_to_f16(f)) {}
  operator float() const { return f16_to_f32(bits_of); }
};
struct Bf16 {
  uint16_t bits_of;
  Bf16() = default;
  Bf16(float f) : bits_of(f32_to_bf16(f)) {}
  operator float() const { return bf16_to_f32(bits_of); }
};

template <class A, class O, class F>
inline void unary_row(const Row& r, F f) {
  const A* a = reinterpret_cast<const A*>(r.a);
  O* o = reinterpret_cast<O*>(r.o);
  if (r.sa == 1 && r.so == 1)
    for (int64_t i = 0; i < r.n; ++i) o[i] = static_cast<O>(f(a[i]));
  else
    for (int64_t i = 0; i < r.n; ++i) o[i * r.so] = static_cast<O>(f(a[i * r.sa]));
}

template <class A, class O, class F>
inline void binary_row(const Row& r, F f) {
  const A* a = reinterpret_cast<const A*>(r.a);
  const A* b = reinterpret_cast<const A*>(r.b);
  O* o = reinterpret_cast<O*>(r.o);
  if (r.so == 1 && r.sa == 1 && r.sb == 1) {
    for (int64_t i = 0; i < r.n; ++i) o[i] = static_cast<O>(f(a[i], b[i]));
  } else if (r.so == 1 && r.sa == 1 && r.sb == 0) {
    const A y = *b;
    for (int64_t i = 0; i < r.n; ++i) o[i] = static_cast<O>(f(a[i], y));
  } else if (r.so == 1 && r.sa == 0 && r.sb == 1) {
    const A x = *a;
    for (int64_t i = 0; i < r.n; ++i) o[i] = static_cast<O>(f(x, b[i]));
  } else {
    for (int64_t i = 0; i < r.n; ++i) o[i * r.so] = static_cast<O>(f(a[i * r.sa], b[i * r.sb]));
  }
}

// min(max(x, low), high) for any type; NaN stays.
template <class A, class C>
inline void clip_row(const Row& r) {
  C low{}, high{};
  if (r.b) low = static_cast<C>(*reinterpret_cast<const A*>(r.b));
  if (r.c) high = static_cast<C>(*reinterpret_cast<const A*>(r.c));
  if (r.b && r.c) unary_row<A, A>(r, [=](C x) { C y = x < low ? low : x; return y > high ? high : y; });
  else if (r.b) unary_row<A, A>(r, [=](C x) { return x < low ? low : x; });
  else if (r.c) unary_row<A, A>(r, [=](C x) { return x > high ? high : x; });
  else unary_row<A, A>(r, [](C x) { return x; });
}

}  // namespace ge::kernels::reference
