// A loop nest over several operands of one index space, simplified: axes ordered by how far apart their
// elements lie in the first operand, axes of size 1 dropped, neighbours merged where every operand
// allows it. The innermost axis is then as long and as contiguous as the layouts permit.
#pragma once

#include <span>
#include <vector>

#include "kernels/reference/access.h"

namespace ge::kernels::reference {

struct Nest {
  int rank = 0;                       // at least 1; the last axis is the inner one
  int64_t dims[kMaxRank] = {};
  int64_t count = 1;
  std::vector<int64_t> strides;       // [operand][kMaxRank], elements

  int64_t stride(size_t operand, int axis) const {
    return strides[operand * kMaxRank + static_cast<size_t>(axis)];
  }
  int64_t inner() const { return dims[rank - 1]; }
  int64_t offset(size_t operand, const int64_t* index) const {
    int64_t o = 0;
    for (int a = 0; a < rank; ++a) o += index[a] * stride(operand, a);
    return o;
  }
};

// operands[0] gives the index space; the others broadcast to it (checked before).
inline Nest collapse(std::span<const View> operands) {
  const View& space = operands[0];
  int order[kMaxRank], n = 0;
  for (int a = 0; a < space.rank; ++a)
    if (space.dims[a] != 1) order[n++] = a;
  std::stable_sort(order, order + n, [&](int x, int y) {
    return magnitude(space.strides[x]) > magnitude(space.strides[y]);
  });
  Nest nest;
  nest.count = space.count();
  nest.strides.assign(operands.size() * kMaxRank, 0);
  auto stride_of = [&](size_t k, int axis) {
    const View& v = operands[k];
    int a = axis - (space.rank - v.rank);
    return a < 0 || v.dims[a] == 1 ? int64_t{0} : v.strides[a];
  };
  for (int i = 0; i < n; ++i) {
    int64_t d = space.dims[order[i]];
    bool merge = nest.rank > 0;
    for (size_t k = 0; merge && k < operands.size(); ++k)
      merge = nest.stride(k, nest.rank - 1) == stride_of(k, order[i]) * d;
    if (!merge) nest.dims[nest.rank++] = 1;
    nest.dims[nest.rank - 1] *= d;
    for (size_t k = 0; k < operands.size(); ++k)
      nest.strides[k * kMaxRank + static_cast<size_t>(nest.rank - 1)] = stride_of(k, order[i]);
  }
  if (!nest.rank) nest.dims[nest.rank++] = 1;
  return nest;
}

}  // namespace ge::kernels::reference
