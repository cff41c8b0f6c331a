// Adding a tensor of the output's shape to a Conv's or MatMul's sums.
#pragma once

#include "passes/fusions/cube_group.h"

namespace ge::passes {

Verdict group_takes_residual(const Match& m);     // of node %t, for value %r
Result<ir::NodeId> build_residual(ir::Graph& g, const Match& m);

}  // namespace ge::passes
