// Offsets of elements by their index, for reference kernels.
#pragma once

#include "kernels/reference/access.h"

namespace ge::kernels::reference {

// place(v, n, c, h): the offset of that element; trailing axes that are left out count as 0.
template <class... I>
int64_t place(const View& v, I... index) {
  const int64_t at[] = {static_cast<int64_t>(index)...};
  int64_t sum = 0;
  for (size_t a = 0; a < sizeof...(I); ++a) sum += at[a] * v.strides[a];
  return sum;
}

// The offset of element `linear` in row-major order over the axes [first, end).
inline int64_t place_linear(const View& v, int first, int end, int64_t linear) {
  int64_t sum = 0;
  for (int a = end; a-- > first; linear /= v.dims[a]) sum += linear % v.dims[a] * v.strides[a];
  return sum;
}

inline int64_t count_axes(const View& v, int first, int end) {
  int64_t n = 1;
  for (int a = first; a < end; ++a) n *= v.dims[a];
  return n;
}

// The real (0) or imaginary (1) parts of complex numbers as numbers of their own.
struct Part {
  Part(const View& v, int part) : view(v) {
    view.dtype = v.dtype == DType::c64 ? DType::f32 : DType::f64;
    if (v.data) view.data = v.data + part * size_of(view.dtype);
    for (int a = 0; a < v.rank; ++a) strides[a] = 2 * v.strides[a];
    view.strides = strides;
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  int64_t strides[kMaxRank];
  View view;
};
inline bool is_complex(DType t) { return t == DType::c64 || t == DType::c128; }

// A number as an integer within [low, high]; NaN gives low.
inline int64_t clamp_int(double x, int64_t low, int64_t high) {
  if (!(x > static_cast<double>(low))) return low;
  return x < static_cast<double>(high) ? static_cast<int64_t>(x) : high;
}

}  // namespace ge::kernels::reference
