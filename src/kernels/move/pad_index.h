// Padding along one axis: where the element at a position outside the input comes from. Shared by the
// reference and the fast kernel of Pad, with the check of their parameters.
#pragma once

#include "kernels/move/check.h"

namespace ge::kernels::move {

enum class PadMode : int64_t { constant = 0, reflect = 1, edge = 2, wrap = 3 };

// Index into an axis of size n for position i, which counts from the input's first element and may lie
// outside 0..n-1; -1: the constant.
inline int64_t pad_source(PadMode mode, int64_t i, int64_t n) {
  if (i >= 0 && i < n) return i;
  switch (mode) {
    case PadMode::constant: return -1;
    case PadMode::edge: return i < 0 ? 0 : n - 1;
    case PadMode::wrap: {
      int64_t r = i % n;
      return r < 0 ? r + n : r;
    }
    case PadMode::reflect: {
      if (n == 1) return 0;
      int64_t period = 2 * (n - 1), r = i % period;
      if (r < 0) r += period;
      return r < n ? r : period - r;
    }
  }
  return -1;
}

// ints: mode, then begin for each axis. in: data, and the constant or nothing.
inline Status check_pad(const Call& c, std::string_view kernel) {
  GE_RETURN_IF_ERROR(check_call(c, kernel, 1, 2, 1, 1));
  const View &x = c.in[0], &y = c.out[0];
  if (x.dtype != y.dtype || x.rank != y.rank) return bad_call(kernel, "input and output differ in type or rank");
  if (c.ints.size() != 1 + static_cast<size_t>(x.rank)) return bad_call(kernel, "has a wrong number of parameters");
  if (c.ints[0] < 0 || c.ints[0] > 3) return bad_call(kernel, format("unknown mode {}", c.ints[0]));
  constexpr int64_t kLimit = int64_t{1} << 52;
  for (int i = 0; i < x.rank; ++i) {
    int64_t begin = c.ints[static_cast<size_t>(1 + i)];
    if (begin > kLimit || begin < -kLimit) return bad_call(kernel, "a pad is out of range");
    if (c.ints[0] != 0 && x.dims[i] == 0 && y.count() != 0)
      return bad_call(kernel, format("{} has no elements that it could be padded with", dims_text(x)));
  }
  if (has_input(c, 1) && (c.in[1].dtype != x.dtype || c.in[1].count() != 1))
    return bad_call(kernel, "the constant must be one element of the input's type");
  return ok();
}

}  // namespace ge::kernels::move
