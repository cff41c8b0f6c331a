// Inference over a whole graph: types, symbolic sizes and known elements of every value, nested graphs included.
#pragma once

#include "ir/graph.h"

namespace ge::ops {

// Inputs that decide sizes or parameters (OpDef::sizes, OpDef::parameters) and have no known elements are
// computed if all behind them is constant; else they get a ge.Read.
Status infer(ir::Graph& g);

}  // namespace ge::ops
