// The text form of a Graph, for dumps, goldens and .ir files.
//
//   graph main(%x: f32[n,4]) -> (%y) {
//     symbol n 1..8
//     equal "2*floordiv(n, 2)" "n" "who asks"   sizes that are taken for the same
//     %w: f32[4,2] = [1, 2, 3, 4, 5, 6, 7, 8]
//     %k: f32[1000] = random(7)              seeded standard normal; splat(0.5) repeats one value
//     %t: f32[n,2] = MatMul(%x, %w) {a=1, s="x", l=[1, 2]} @node.name
//     %y: f32[n,2] = Relu(%t) layout [0, 1]
//   }
//
// "-" is an absent input or output. Long constants print as data(hash), which does not read back.
#pragma once

#include <string>

#include "ir/graph.h"

namespace ge::ir {

std::string print(const Graph& g);

}  // namespace ge::ir
