// Input shapes from options onto a graph's inputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace ge {

// Sizes: "3", "-1" (any), "1~8" (a range), or a name (equal names are equal sizes). Unknown input names
// and sizes that contradict the model are errors.
Status set_input_shapes(ir::Graph& g, const std::map<std::string, std::vector<std::string>>& shapes);

}  // namespace ge
