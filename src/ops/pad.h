// The padding that a Pad node means, for its own lowering and for fusions that take it over.
#pragma once

#include <optional>
#include <vector>

#include "ops/op.h"

namespace ge::ops {

struct Pads {
  std::vector<Dim> begins, ends;  // for each axis of the input; negative ones crop
};

// Nullopt while they are known only at run time.
std::optional<Pads> pads_of(const Graph& g, const Node& n);

}  // namespace ge::ops
