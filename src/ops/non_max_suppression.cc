// NonMaxSuppression: which boxes remain when those that overlap better ones are left out.
#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  for (int i = 0; i < 2; ++i) {
    if (c.dtype(i) != DType::f32) return c.fail(format("input {} is {}, not f32", i, name(c.dtype(i))));
    if (c.ranked(i) && c.rank(i) != 3) return c.fail(format("input {} has {} axes, not 3", i, c.rank(i)));
  }
  if (c.has(2) && c.dtype(2) != DType::i64) return c.fail(format("the number of boxes is {}, not i64", name(c.dtype(2))));
  for (int i = 3; i < 5; ++i)
    if (c.has(i) && c.dtype(i) != DType::f32) return c.fail(format("input {} is {}, not f32", i, name(c.dtype(i))));
  if (c.ranked(0) && c.dims(0)[2].known() && !c.dims(0)[2].is(4)) return c.fail(format("boxes {} have not 4 numbers each", text(c.dims(0))));
  if (c.ranked(0) && c.ranked(1)) {
    GE_TRY(Dim batch, unify(c, c.dims(0)[0], c.dims(1)[0], "batches of boxes and scores"));
    GE_TRY(Dim boxes, unify(c, c.dims(0)[1], c.dims(1)[2], "numbers of boxes and scores"));
  }
  c.set(0, DType::i64, {c.fresh("count"), 3});
  return ok();
}

Status lower(LowerContext& c) {
  std::vector<Arg> in;
  for (int i = 0; i < 5; ++i) in.push_back(c.in(i));
  c.call("select.non_max_suppression", std::move(in), {c.out()}, {attr_int(c.node, "center_point_box", 0) != 0});
  return ok();
}

const Register r(OpDef{.name = "NonMaxSuppression",
                       .min_inputs = 2,
                       .max_inputs = 5,
                       .since = 10,
                       .attrs = {{"center_point_box", "1: boxes are centre and size, else two corners."}},
                       .unit = kernels::Unit::host,
                       .doc = "The boxes that do not overlap better ones.",
                       .types = {DType::f32},
                       .infer = infer,
                       .reference = lower,
                       .executor = true,
                       .foldable = false});

}  // namespace
}  // namespace ge::ops
