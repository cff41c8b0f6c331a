// Activations that a cube kernel applies in registers: Relu, Clip with constant bounds, LeakyRelu.
#pragma once

#include "passes/fusions/cube_group.h"

namespace ge::passes {

Verdict group_takes_activation(const Match& m);   // of node %t, for node %y
Result<ir::NodeId> build_activation(ir::Graph& g, const Match& m);

}  // namespace ge::passes
