// Unique: the different entries of a tensor, or of its slices along an axis.
#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  Dim count = c.fresh("count");
  c.set(1, DType::i64, {count});
  c.set(3, DType::i64, {count});
  bool flat = !has_attr(c.node, "axis");
  if (!c.ranked(0)) {
    if (flat) c.set(0, c.dtype(0), {count});
    else c.set_unranked(0, c.dtype(0));
    c.set(2, DType::i64, {c.fresh("inverse")});
    return ok();
  }
  if (flat) {
    c.set(0, c.dtype(0), {count});
    c.set(2, DType::i64, {product(c.dims(0))});
    return ok();
  }
  GE_TRY(int axis, normalize_axis(c, attr_int(c.node, "axis", 0), c.rank(0)));
  auto dims = c.dims(0);
  c.set(2, DType::i64, {dims[static_cast<size_t>(axis)]});
  dims[static_cast<size_t>(axis)] = count;
  c.set(0, c.dtype(0), std::move(dims));
  return ok();
}

Status lower(LowerContext& c) {
  bool along = has_attr(c.node, "axis");
  if (along && !c.type(0).ranked) return c.fail("the number of axes of its input is not known");
  int64_t axis = along ? wrap_axis(attr_int(c.node, "axis", 0), c.type(0).rank()) : 0;
  c.call("select.unique", {c.in(0)}, {c.out(0), c.out(1), c.out(2), c.out(3)}, {along, axis, attr_int(c.node, "sorted", 1) != 0});
  return ok();
}

const Register r(OpDef{.name = "Unique",
                       .min_inputs = 1,
                       .max_inputs = 1,
                       .max_outputs = 4,
                       .since = 11,
                       .attrs = {{"axis", "Along which; absent: the flat input."}, {"sorted", "In order (1) or as they come."}},
                       .unit = kernels::Unit::host,
                       .doc = "The different entries, and where they are.",
                       .infer = infer,
                       .reference = lower,
                       .executor = true,
                       .foldable = false});

}  // namespace
}  // namespace ge::ops
