// The order of nodes where edges leave it open: that of the model, or one whose peak of memory is lower.
#pragma once

#include <vector>

#include "passes/pass.h"

namespace ge::passes {

// Sets the nodes' ranks. Changes nothing but the order in which they run.
Result<bool> order(ir::Graph& g, PassContext& c);

// Bytes alive at the peak when the nodes run in this order, as far as is known before lowering: with views, parts of
// a Concat and elementwise nodes in place, without scratch. A size that may change counts as a guess.
int64_t memory_peak(const ir::Graph& g, const std::vector<ir::NodeId>& order);

}  // namespace ge::passes
