// What no run exceeds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace ge {

inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 46;  // of one tensor

// Bytes of a dense tensor: 0 where a size is 0, whatever the others are; -1 where one is below 0, and above the limit.
inline int64_t dense_bytes(int64_t element, std::span<const int64_t> dims, int64_t limit = kMaxTensorBytes) {
  const int64_t least = dims.empty() ? 1 : *std::min_element(dims.begin(), dims.end());
  if (least <= 0) return least < 0 ? -1 : 0;
  for (int64_t d : dims)
    if (__builtin_mul_overflow(element, d, &element) || element > limit) return -1;
  return element;
}

}  // namespace ge
