// Checks that prepare() of the matrix kernels share: a damaged file must get an error, so sizes and strides
// are bounded far below overflow of what the kernels compute from them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text.h"
#include "kernels/kernel.h"

namespace ge::kernels::cube {

inline constexpr int64_t kMaxElements = int64_t{1} << 46;

// Type, rank, and that no index of the view overflows.
inline Status check_view(const View& v, DType type, int min_rank, int max_rank, std::string_view what) {
  if (v.dtype != type) return error(code::kBadOp, format("{} must be {}, not {}", what, name(type), name(v.dtype)));
  if (v.rank < min_rank || v.rank > max_rank || v.rank > kMaxRank)
    return error(code::kBadOp, format("{} has rank {}, not {} to {}", what, v.rank, min_rank, max_rank));
  if (v.rank > 0 && (!v.dims || !v.strides)) return error(code::kInternal, format("{} has no sizes", what));
  int64_t product = 1, reach = 0, step = 0;
  for (int i = 0; i < v.rank; ++i) {
    const int64_t d = v.dims[i], s = v.strides[i];
    if (d < 0 || (d > 0 && __builtin_mul_overflow(product, d, &product)) || product > kMaxElements || d > kMaxElements)
      return error(code::kBadOp, format("{} has a size out of range", what));
    if (s == INT64_MIN || __builtin_mul_overflow(d, s < 0 ? -s : s, &step) ||
        __builtin_add_overflow(reach, step, &reach) || reach > kMaxElements * 64)
      return error(code::kBadOp, format("{} has a stride out of range", what));
  }
  return ok();
}

inline bool has_input(const Call& call, size_t i) {
  return i < call.in.size() && call.in[i].dtype != DType::none;
}

}  // namespace ge::kernels::cube
