// ge.Conv: a convolution with what follows it in one kernel. Inputs x, w, bias [M], residual, extras...;
// the attributes of Conv, and act and program as in fused_tail.h.
#include "ops/conv_lowering.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  GE_TRY(auto tail, read_tail(c.node, 2));
  (void)tail;
  if (!c.ranked(0) || !c.ranked(1)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  GE_TRY(auto dims, conv_dims(c));
  set_fused_outputs(c, dims, c.dtype(0));
  return ok();
}

Status lower(LowerContext& c) {
  GE_TRY(auto tail, read_tail(c.node, 2));
  return lower_conv(c, std::move(tail));
}

std::vector<AttrDef> attrs() {
  auto a = tail_attrs();
  for (auto* name : {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}) a.push_back({name, "as of Conv"});
  a.push_back({"winograd", "2 or 4: by minimal filtering with such tiles; absent or 0: a direct sum"});
  a.push_back({"winograd_stored", "1: the file holds the transformed weights; 0: each run makes them"});
  a.push_back({"winograd_kept", "1: with open sizes, made by the first run that wants them and kept in the arena"});
  a.push_back({"winograd_rows", "size of axis 2 of the map that this is a piece of, for which it is chosen: an expression"});
  a.push_back({"compute", "bf16: input and weights are rounded to it; absent: f32"});
  return a;
}

const Register r(OpDef{.name = "ge.Conv",
                       .min_inputs = 2,
                       .max_inputs = -1,
                       .attrs = attrs(),
                       .unit = kernels::Unit::cube,
                       .doc = "a convolution with bias, residual, activation and a vector program",
                       .infer = infer,
                       .lower = lower,
                       .layout = channels_last_layout,
                       .window = conv_rows,
                       .cut_rows = cut_conv_rows});

}  // namespace
}  // namespace ge::ops
