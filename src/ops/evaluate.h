// Computing a node while compiling: its reference kernel on constants.
#pragma once

#include "ops/op.h"

namespace ge::ops {

// One tensor for each output (empty for absent ones). All inputs must be constants and all output types
// static. Errors where the op has no reference kernel or the kernel refuses.
Result<std::vector<Tensor>> evaluate(const Graph& g, const Node& n);
// Runs one kernel call on tensors: for tests, folding and weight preparation.
Status run_kernel(std::string_view kernel, std::span<const View> in, std::span<const View> out,
                  std::span<const int64_t> ints = {}, std::span<const double> floats = {},
                  std::span<const std::byte> blob = {});

}  // namespace ge::ops
