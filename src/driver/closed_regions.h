// Regions that no fusion rule may enter: connected nodes that --enable_op_scope_list or their types keep out of
// every rule.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/pass.h"

namespace ge {

struct ClosedRegion {
  std::vector<std::string> nodes;   // in the graph's order
  std::string why, help;
};

// Of a graph that was optimised with these options.
std::vector<ClosedRegion> closed_regions(const ir::Graph& g, const passes::PassOptions& options);

}  // namespace ge
