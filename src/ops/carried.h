// Values that a nested graph hands from one iteration to the next: their types hold for the first value and
// for every later one.
#pragma once

#include "ops/subgraph.h"

namespace ge::ops {

// Inner inputs [first, first + count) begin as the node's inputs [from, ...) and go on as the inner graph's outputs
// [first_out, ...). Finds types that hold for all of them and infers the graph. types: for each carried value its
// outer type after any number of iterations.
Status infer_carried(InferContext& c, Border& border, Graph& inner, size_t count, size_t first, size_t from,
                     size_t first_out, std::vector<Type>& types);

}  // namespace ge::ops
