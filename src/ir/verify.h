// Verification: edges, producers, uses and names of a Graph are consistent, and there is no cycle.
// Run after every pass in tests; a failure is a bug of the pass that ran last.
#pragma once

#include "ir/graph.h"

namespace ge::ir {

Status verify(const Graph& g);

}  // namespace ge::ir
