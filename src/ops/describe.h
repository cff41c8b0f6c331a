// What a node is given, for errors that it leads to.
#pragma once

#include <string>

#include "ir/graph.h"

namespace ge::ops {

// "TopK of x f32[2,4], k i64[1] = [5]; axis=1": inputs with types, numbers where few are known, and short attributes.
std::string describe(const ir::Graph& g, const ir::Node& n);

}  // namespace ge::ops
