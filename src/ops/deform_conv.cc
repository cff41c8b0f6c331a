// DeformConv of two spatial axes.
#include "base/text.h"
#include "ops/shape_util.h"
#include "ops/spatial.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 3));
  if (!c.ranked(0) || !c.ranked(1)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  if (c.rank(0) != 4 || c.rank(1) != 4) return c.fail(format("only two spatial axes are supported, not those of {}", text(c.dims(0))));
  if (attr_int(c.node, "group", 1) < 1 || attr_int(c.node, "offset_group", 1) < 1) return c.fail("groups must be positive");
  std::vector<Dim> in(c.dims(0).begin() + 2, c.dims(0).end()), kernel(c.dims(1).begin() + 2, c.dims(1).end());
  GE_TRY(Spatial s, read_spatial(c.node, in, &kernel));
  std::vector<Dim> out{c.dims(0)[0], c.dims(1)[0], s.out[0], s.out[1]};
  c.set(0, c.dtype(0), std::move(out));
  return ok();
}

Status reference(LowerContext& c) {
  auto &x = c.type(0).dims, &w = c.type(1).dims;
  std::vector<Dim> in(x.begin() + 2, x.end()), kernel(w.begin() + 2, w.end());
  GE_TRY(Spatial s, read_spatial(c.node, in, &kernel));
  std::vector<Dim> ints{attr_int(c.node, "group", 1), attr_int(c.node, "offset_group", 1)};
  append(ints, s.pad_begin);
  append(ints, s.strides);
  append(ints, s.dilations);
  std::vector<Arg> args;
  for (int i = 0; i < 5; ++i) args.push_back(c.in(i));
  c.call("ref.DeformConv", std::move(args), {c.out()}, std::move(ints));
  return ok();
}

const Register r(OpDef{.name = "DeformConv", .min_inputs = 3, .max_inputs = 5, .since = 19,
                       .attrs = {{"group", "Groups of channels."}, {"offset_group", "Groups of channels that share offsets."},
                                 {"kernel_shape", "Sizes of the kernel."}, {"strides", "Steps of the kernel."},
                                 {"dilations", "Steps between taps."}, {"pads", "Around the input."}},
                       .unit = kernels::Unit::cube, .doc = "Convolution with moved taps.", .types = types::floats, .infer = infer, .reference = reference});

}  // namespace
}  // namespace ge::ops
