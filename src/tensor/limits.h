// What no run exceeds.
#pragma once

#include <cstdint>

namespace ge {

inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 46;  // of one tensor

}  // namespace ge
