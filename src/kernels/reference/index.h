// Plain loops for reference kernels that move data: every index of an index space in row-major order,
// and addresses of elements in views of any strides.
#pragma once

#include <cstring>

#include "kernels/move/check.h"
#include "kernels/move/element.h"

namespace ge::kernels::move {

inline std::byte* address(const View& v, const int64_t* index) {
  int64_t at = 0;
  for (int i = 0; i < v.rank; ++i) at += index[i] * v.strides[i];
  return v.data + at * size_of(v.dtype);
}

// f(index) for every index below dims; f gives false to stop.
template <class F>
bool each_index(const View& space, F f) {
  int64_t index[kMaxRank] = {};
  for (int i = 0; i < space.rank; ++i)
    if (space.dims[i] == 0) return true;
  for (;;) {
    if (!f(static_cast<const int64_t*>(index))) return false;
    int i = space.rank - 1;
    while (i >= 0 && ++index[i] == space.dims[i]) index[i--] = 0;
    if (i < 0) return true;
  }
}

inline void copy_element(std::byte* to, const std::byte* from, DType t) {
  std::memcpy(to, from, static_cast<size_t>(size_of(t)));
}

// Fills out from the element that source(index) points at.
template <class F>
void fill_from(const View& out, F source) {
  each_index(out, [&](const int64_t* index) {
    copy_element(address(out, index), source(index), out.dtype);
    return true;
  });
}

inline Work one_chunk(const Call& c) {
  Work w;
  for (auto& v : c.out)
    if (v.dtype != DType::none && v.count() > 0) return w;
  w.chunks = 0;
  return w;
}

}  // namespace ge::kernels::move
