// MaxRoiPool.
#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  auto size = attr_ints(c.node, "pooled_shape");
  if (size.size() != 2 || size[0] < 1 || size[1] < 1) return c.fail("attribute pooled_shape must be two sizes of 1 or more");
  if ((c.ranked(0) && c.rank(0) != 4) || (c.ranked(1) && c.rank(1) != 2)) return c.fail("its inputs must have 4 axes (images) and 2 axes (regions)");
  if (c.ranked(1) && c.dims(1)[1].known() && c.dims(1)[1].value() != 5) return c.fail("a region is not five numbers");
  c.set(0, c.dtype(0), {c.ranked(1) ? c.dims(1)[0] : c.fresh("rois"), c.ranked(0) ? c.dims(0)[1] : c.fresh("c"), Dim(size[0]), Dim(size[1])});
  return ok();
}

Status reference(LowerContext& c) {
  c.call("ref.MaxRoiPool", {c.in(0), c.in(1)}, {c.out()}, {}, {ir::attr_float(c.node, "spatial_scale", 1)});
  return ok();
}

const Register r(OpDef{.name = "MaxRoiPool", .min_inputs = 2, .max_inputs = 2,
                       .attrs = {{"pooled_shape", "Bins down and across."}, {"spatial_scale", "From the regions' coordinates to the input's."}},
                       .doc = "The largest element in each bin of regions of the input.", .types = types::floats, .infer = infer, .reference = reference});

}  // namespace
}  // namespace ge::ops
