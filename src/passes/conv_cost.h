// Costs that passes share, in cycles of one core with two 16-wide units of f32. Fitted to timings; what counts
// are their ratios.
#pragma once

#include <functional>
#include <optional>

#include "ir/graph.h"

namespace ge::passes {

// Of a convolution that runs by minimal filtering ("winograd"), with what transforming its weights takes. size: what a size
// counts as that is not known; else a guess.
std::optional<double> winograd_cost(const ir::Graph& g, const ir::Node& n, const std::function<double(const Dim&)>& size = {});

}  // namespace ge::passes
