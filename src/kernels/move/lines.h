// Lines: what kernels of ops along one axis work on. Operand 0 and the others have the same
// sizes but for the axis; a chunk does a range of lines.
#pragma once

#include <algorithm>

#include "kernels/move/check.h"
#include "kernels/move/element.h"
#include "kernels/move/element_size.h"
#include "kernels/move/nest.h"

namespace ge::kernels::move {

struct LineSet {
  Nest nest;                            // the other axes
  int64_t count = 0;                    // lines
  int64_t length[kNestOperands] = {};   // along the axis
  int64_t step[kNestOperands] = {};     // bytes
  int64_t chunks = 0;

  // An operand of one axis less has none along the axis (length 1).
  static LineSet of(std::span<const View> views, int axis) {
    LineSet s;
    const View& x = views[0];
    s.nest.operands = static_cast<int>(views.size());
    for (int i = 0; i < x.rank; ++i) {
      int r = s.nest.rank;
      bool along = i == axis;
      if (!along) s.nest.dims[s.nest.rank++] = x.dims[i];
      for (size_t k = 0; k < views.size(); ++k) {
        const View& v = views[k];
        bool shorter = v.rank < x.rank;
        int64_t stride = along && shorter ? 0 : v.strides[shorter && i > axis ? i - 1 : i] * size_of(v.dtype);
        if (along) s.length[k] = shorter ? 1 : v.dims[i], s.step[k] = stride;
        else s.nest.steps[k][r] = stride;
      }
    }
    s.count = s.nest.count();
    s.chunks = chunks_for(s.count, s.length[0] * size_of(x.dtype) * 4);
    return s;
  }
};

// Every operand has the sizes of x but for the axis, or lacks the axis where `may_lack` says so.
inline bool fits_but_for(const View& x, const View& v, int axis, bool may_lack) {
  bool shorter = may_lack && v.rank == x.rank - 1;
  if (!shorter && v.rank != x.rank) return false;
  for (int i = 0; i < x.rank; ++i)
    if (i != axis && x.dims[i] != v.dims[shorter && i > axis ? i - 1 : i]) return false;
  return true;
}

// A number of any type as a 64-bit integer of the same order. Zeros are equal; NaN is above all.
inline int64_t order_key(DType t, const std::byte* p) {
  if (is_float(t)) {
    double d = load_f64(t, p);
    if (d != d) return INT64_MAX;
    if (d == 0) d = 0;
    int64_t b;
    std::memcpy(&b, &d, 8);
    return b < 0 ? INT64_MIN - b : b;
  }
  int64_t v = load_i64(t, p);
  return t == DType::u64 ? static_cast<int64_t>(static_cast<uint64_t>(v) ^ (uint64_t{1} << 63)) : v;
}

}  // namespace ge::kernels::move
