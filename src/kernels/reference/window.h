// The numbers of a convolution or pooling task of any number of spatial axes, for reference kernels.
#pragma once

#include "kernels/reference/access.h"

namespace ge::kernels::reference {

inline constexpr int kMaxSpatial = kMaxRank - 2;
inline constexpr int64_t kMaxWindowNumber = (int64_t{1} << 31) - 1;

struct Window {
  int rank = 0;  // spatial axes
  const int64_t *k = nullptr, *stride = nullptr, *dilation = nullptr, *pad = nullptr, *pad_end = nullptr;

  // The input index of tap `tap` of window `o` along an axis; may lie outside.
  int64_t at(int axis, int64_t o, int64_t tap) const {
    return o * stride[axis] - pad[axis] + tap * dilation[axis];
  }
  int64_t taps() const {
    int64_t n = 1;
    for (int a = 0; a < rank; ++a) n *= k[a];
    return n;
  }
};

// Checks `count` groups of `rank` numbers at ints[first]; all at least `least[i]`.
inline Status check_numbers(const Call& c, std::string_view kernel, size_t first, int rank,
                            std::initializer_list<int64_t> least) {
  if (rank < 0 || rank > kMaxSpatial || c.ints.size() < first + least.size() * static_cast<size_t>(rank))
    return bad(kernel, "too few parameters");
  size_t i = first;
  for (int64_t low : least)
    for (int a = 0; a < rank; ++a, ++i)
      if (c.ints[i] < low || c.ints[i] > kMaxWindowNumber)
        return bad(kernel, format("parameter {} is out of range", c.ints[i]));
  return ok();
}

// Odometer over `rank` digits; false after the last.
inline bool advance(int64_t* index, const int64_t* dims, int rank) {
  for (int a = rank; a-- > 0;) {
    if (++index[a] < dims[a]) return true;
    index[a] = 0;
  }
  return false;
}

}  // namespace ge::kernels::reference
