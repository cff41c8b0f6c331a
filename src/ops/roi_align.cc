// RoiAlign.
#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 3));
  GE_RETURN_IF_ERROR(require_index(c, 2));
  std::string mode = attr_string(c.node, "mode", "avg"), pixel = attr_string(c.node, "coordinate_transformation_mode", "half_pixel");
  if (mode != "avg" && mode != "max") return c.fail(format("mode '{}' is not known; it is 'avg' or 'max'", mode));
  if (pixel != "half_pixel" && pixel != "output_half_pixel") return c.fail(format("coordinate_transformation_mode '{}' is not known; it is 'half_pixel' or 'output_half_pixel'", pixel));
  int64_t h = attr_int(c.node, "output_height", 1), w = attr_int(c.node, "output_width", 1);
  if (h < 0 || w < 0) return c.fail(format("output_height is {} and output_width {}; none may be negative", h, w));
  if ((c.ranked(0) && c.rank(0) != 4) || (c.ranked(1) && c.rank(1) != 2)) return c.fail("its inputs must have 4 axes (images) and 2 axes (regions)");
  Dim rois = c.ranked(1) ? c.dims(1)[0] : c.fresh("rois");
  if (c.ranked(1) && c.ranked(2) && c.rank(2) == 1) {
    GE_TRY(rois, unify(c, rois, c.dims(2)[0], "the number of regions"));
  }
  c.set(0, c.dtype(0), {rois, c.ranked(0) ? c.dims(0)[1] : c.fresh("c"), Dim(h), Dim(w)});
  return ok();
}

Status reference(LowerContext& c) {
  c.call("ref.RoiAlign", {c.in(0), c.in(1), c.in(2)}, {c.out()},
         {attr_string(c.node, "mode", "avg") == "max", attr_int(c.node, "sampling_ratio", 0),
          attr_string(c.node, "coordinate_transformation_mode", "half_pixel") == "half_pixel"},
         {ir::attr_float(c.node, "spatial_scale", 1)});
  return ok();
}

// Opset 10 had no shift by half a pixel.
Status upgrade(UpgradeContext& c) {
  if (c.version < 16) c.node().attrs["coordinate_transformation_mode"] = std::string("output_half_pixel");
  return ok();
}

const Register r(OpDef{.name = "RoiAlign", .min_inputs = 3, .max_inputs = 3, .since = 10,
                       .attrs = {{"mode", "avg or max."}, {"output_height", "Bins down."}, {"output_width", "Bins across."},
                                 {"sampling_ratio", "Samples of a bin along an axis; 0: by its size."},
                                 {"spatial_scale", "From the regions' coordinates to the input's."},
                                 {"coordinate_transformation_mode", "half_pixel or output_half_pixel."}},
                       .doc = "Regions of the input, pooled to one size.", .types = types::floats, .infer = infer, .upgrade = upgrade, .reference = reference});

}  // namespace
}  // namespace ge::ops
