// What the models of ai.onnx.ml share: their post transforms and class labels, as steps of an upgrade.
#pragma once

#include "ops/rewrite.h"

namespace ge::ops {

// NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT of scores [N, E].
Result<ValueId> post_transform(UpgradeContext& c, ValueId scores);
// The node's labels; of strings their places.
std::vector<int64_t> class_labels(const UpgradeContext& c, std::string_view numbers);
// c's node gives the label of the largest of the scores [N, E] of each row, and the scores as its output 1.
Status become_labels(UpgradeContext& c, const std::vector<int64_t>& labels, ValueId scores);
// The kernel (kernel_type, kernel_params) of x [N, features] with the vectors [count, features]: [N, count].
Result<ValueId> svm_kernel(UpgradeContext& c, ValueId x, const std::vector<double>& vectors, int64_t count);
ValueId constant_floats(UpgradeContext& c, const std::vector<double>& v, std::vector<int64_t> dims);
ValueId cast_f32(UpgradeContext& c, ValueId x);

}  // namespace ge::ops
