// Costs that passes share, in cycles of one core with two 16-wide units of f32. Fitted to timings; what counts
// are their ratios.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace ge::passes {

// Of a convolution that runs by minimal filtering ("winograd"), with what transforming its weights takes.
std::optional<double> winograd_cost(const ir::Graph& g, const ir::Node& n);

}  // namespace ge::passes
