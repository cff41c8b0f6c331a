// Conv.
#include "ops/conv_lowering.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  if (!c.ranked(0) || !c.ranked(1)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  GE_TRY(auto dims, conv_dims(c));
  c.set(0, c.dtype(0), std::move(dims));
  return ok();
}

Status reference(LowerContext& c) {
  GE_TRY(Spatial s, conv_spatial(c.graph, c.node));
  std::vector<Dim> ints{Dim(ir::attr_int(c.node, "group", 1))};
  append(ints, s.strides);
  append(ints, s.dilations);
  append(ints, s.pad_begin);
  std::vector<Arg> in{c.in(0), c.in(1)};
  if (c.has(2)) in.push_back(c.in(2));
  c.call("ref.Conv", std::move(in), {c.out()}, std::move(ints));
  return ok();
}

Status lower(LowerContext& c) {
  FusedTail tail;
  if (c.has(2)) tail.bias = 2;
  return lower_conv(c, tail);
}

const Register r(OpDef{.name = "Conv",
                       .min_inputs = 2,
                       .max_inputs = 3,
                       .attrs = {{"auto_pad", "NOTSET, SAME_UPPER, SAME_LOWER or VALID"},
                                 {"dilations", "distance of the taps"},
                                 {"group", "groups of channels"},
                                 {"kernel_shape", "spatial size of the weights"},
                                 {"pads", "begins, then ends"},
                                 {"strides", "steps of the window"}},
                       .unit = kernels::Unit::cube,
                       .doc = "convolution",
                       .types = types::numbers,
                       .infer = infer,
                       .reference = reference,
                       .lower = lower,
                       .layout = channels_last_layout,
                       .window = conv_rows,
                       .cut_rows = cut_conv_rows});

}  // namespace
}  // namespace ge::ops
