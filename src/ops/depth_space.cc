// DepthToSpace, SpaceToDepth: one strided copy, both sides seen with six axes.
#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

Status check(const InferContext& c, int64_t block) {
  if (block <= 0 || block > (1 << 20)) return c.fail(format("attribute blocksize is {}; it must be 1 to {}", block, 1 << 20));
  std::string mode = attr_string(c.node, "mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return c.fail(format("mode '{}' is not known; it is 'DCR' or 'CRD'", mode));
  if (c.ranked(0) && c.rank(0) != 4) return c.fail(format("{} does not have 4 axes", text(c.dims(0))));
  return ok();
}
Status divides(const InferContext& c, const Dim& d, int64_t by, const char* what) {
  if (d.known() && d.value() % by != 0) return c.fail(format("the {} of {} cannot be divided by {}", what, text(c.dims(0)), by));
  return ok();
}

Status infer_depth_to_space(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  int64_t b = attr_int(c.node, "blocksize", 0);
  GE_RETURN_IF_ERROR(check(c, b));
  if (!c.ranked(0)) {
    c.set(0, c.dtype(0), fresh_dims(c, 4));
    return ok();
  }
  auto& d = c.dims(0);
  GE_RETURN_IF_ERROR(divides(c, d[1], b * b, "channels"));
  c.set(0, c.dtype(0), {d[0], floordiv(d[1], b * b), d[2] * Dim(b), d[3] * Dim(b)});
  return ok();
}

Status infer_space_to_depth(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  int64_t b = attr_int(c.node, "blocksize", 0);
  GE_RETURN_IF_ERROR(check(c, b));
  if (!c.ranked(0)) {
    c.set(0, c.dtype(0), fresh_dims(c, 4));
    return ok();
  }
  auto& d = c.dims(0);
  GE_RETURN_IF_ERROR(divides(c, d[2], b, "rows"));
  GE_RETURN_IF_ERROR(divides(c, d[3], b, "columns"));
  c.set(0, c.dtype(0), {d[0], d[1] * Dim(b * b), floordiv(d[2], b), floordiv(d[3], b)});
  return ok();
}

// The wide side [n, c, h*b, w*b] as [n, c, h, row in block, w, column in block], and the deep side
// [n, c*b*b, h, w] in the same order of axes.
struct Sides {
  Strided wide, deep;
};
Sides sides(const Strided& wide, const Strided& deep, int64_t block, bool crd) {
  Dim b(block), channels = wide.dims[1];
  Sides s;
  s.wide = {wide.offset,
            {wide.dims[0], channels, deep.dims[2], b, deep.dims[3], b},
            {wide.strides[0], wide.strides[1], wide.strides[2] * b, wide.strides[2], wide.strides[3] * b, wide.strides[3]}};
  // Depth is (channel, row, column) for CRD, (row, column, channel) for DCR.
  const Dim& step = deep.strides[1];
  Dim row = crd ? step * b : step * channels * b, column = crd ? step : step * channels, channel = crd ? step * b * b : step;
  s.deep = {deep.offset,
            s.wide.dims,
            {deep.strides[0], channel, deep.strides[2], row, deep.strides[3], column}};
  return s;
}

Status emit(LowerContext& c, bool reference) {
  bool to_space = c.node.op == "DepthToSpace";
  int64_t b = attr_int(c.node, "blocksize", 1);
  bool crd = attr_string(c.node, "mode", "DCR") == "CRD";
  Sides s = to_space ? sides(c.out_view(), c.view(0), b, crd) : sides(c.view(0), c.out_view(), b, crd);
  c.call(reference ? "ref.Reshape" : "move.copy", {c.in_as(0, to_space ? s.deep : s.wide)},
         {c.out_as(0, to_space ? s.wide : s.deep)});
  return ok();
}
Status lower(LowerContext& c) { return emit(c, false); }
Status reference(LowerContext& c) { return emit(c, true); }

Status upgrade_mode(UpgradeContext& c) {
  if (c.version < (c.node().op == "DepthToSpace" ? 11 : 28)) c.node().attrs.erase("mode");
  return ok();
}

const Register to_space(OpDef{.name = "DepthToSpace",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .attrs = {{"blocksize", "Side of a block."}, {"mode", "DCR or CRD."}},
                              .doc = "Moves channels into blocks of rows and columns.",
                              .infer = infer_depth_to_space,
                              .upgrade = upgrade_mode,
                              .reference = reference,
                              .lower = lower,
                              .layout = layout_of_input});
const Register to_depth(OpDef{.name = "SpaceToDepth",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .attrs = {{"blocksize", "Side of a block."}, {"mode", "DCR or CRD."}},
                              .doc = "Moves blocks of rows and columns into channels.",
                              .infer = infer_space_to_depth,
                              .upgrade = upgrade_mode,
                              .reference = reference,
                              .lower = lower,
                              .layout = layout_of_input});

}  // namespace
}  // namespace ge::ops
