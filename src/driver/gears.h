// Gears: the only sets of sizes that a model takes (ATC's --dynamic_batch_size, --dynamic_image_size and
// --dynamic_dims). One program serves them all; each has its memory planned while compiling.
#pragma once

#include "driver/options.h"
#include "ir/graph.h"

namespace ge {

struct GearedShapes {
  std::map<std::string, std::vector<std::string>> shapes;  // input_shape with a name for each -1 that gears give
  ir::Gears gears;                                         // none if no gear option is given
};
// Errors: gears without a -1, numbers that do not fit the -1s, options that exclude each other.
Result<GearedShapes> geared_shapes(const Options& o);
// Onto a graph that has the shapes.
void set_gears(ir::Graph& g, ir::Gears gears);

// Sizes of the inputs, by number, of --input_hint_shape "0:[3];1:[2,4]"; what it leaves out is empty.
Result<std::vector<std::vector<int64_t>>> hinted_shapes(const std::string& text, size_t inputs);

}  // namespace ge
