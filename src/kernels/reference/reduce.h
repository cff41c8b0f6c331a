// Codes of the reductions in the parameters of "ref.Reduce" and "reduce.axes". They stand in .om files:
// append only.
#pragma once

#include <cstdint>

namespace ge::kernels::reference {

enum class Reduction : int64_t { sum = 0, mean, max, min, prod, sum_square, l1, l2, log_sum, log_sum_exp };
inline constexpr int64_t kReductions = 10;

}  // namespace ge::kernels::reference
