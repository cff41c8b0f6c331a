// How convolutions reach the cube.conv and cube.depthwise kernels: shared by Conv and ge.Conv. Packs
// constant weights while compiling. Knows the kernels' parameters; the window comes from spatial.h.
#pragma once

#include "ops/fused_tail.h"
#include "ops/spatial.h"

namespace ge::ops {

// The output's dims for input 0 (x) and the input `weights`.
Result<std::vector<Dim>> conv_dims(const InferContext& c, int weights = 1);
// The window of the node for its inputs x and w.
Result<Spatial> conv_spatial(const Graph& g, const Node& n, int weights = 1);

// OpDef::window and OpDef::cut_rows.
std::optional<RowWindow> conv_rows(const Graph& g, const Node& n, int input, int axis);
void cut_conv_rows(const Graph& g, const Node& from, Node& to, int axis, const RowRange& out, const RowRange& in);

// Emits the convolution of inputs 0 and 1 into output 0. Leaves c.calls empty where the kernels do not
// apply (f64, four spatial axes or more).
Status lower_conv(LowerContext& c, FusedTail tail);

}  // namespace ge::ops
