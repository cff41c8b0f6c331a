// TensorScatter: a cache with new entries written along its sequence axis.
#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  GE_RETURN_IF_ERROR(require_index(c, 2));
  std::string mode = attr_string(c.node, "mode", "linear");
  if (mode != "linear" && mode != "circular") return c.fail(format("mode '{}' is not known; it is 'linear' or 'circular'", mode));
  if (c.dtype(0) != c.dtype(1)) return c.fail(format("the update is {}, but the cache is {}; they need one type", name(c.dtype(1)), name(c.dtype(0))));
  c.out[0] = c.type(0);
  if (!c.ranked(0)) return ok();
  GE_TRY(int axis, normalize_axis(c, attr_int(c.node, "axis", -2), c.rank(0)));
  if (axis == 0) return c.fail("the sequence axis cannot be that of the batch");
  if (c.ranked(1) && c.rank(1) != c.rank(0)) return c.fail(format("update {} does not fit the cache {}", text(c.dims(1)), text(c.dims(0))));
  return ok();
}

Status reference(LowerContext& c) {
  std::vector<Arg> in{c.in(0), c.in(1)};
  if (c.has(2)) in.push_back(c.in(2));
  c.call("ref.TensorScatter", std::move(in), {c.out()},
         {wrap_axis(attr_int(c.node, "axis", -2), c.type(0).rank()), attr_string(c.node, "mode", "linear") == "circular"});
  return ok();
}

const Register r(OpDef{.name = "TensorScatter", .min_inputs = 2, .max_inputs = 3, .since = 24,
                       .attrs = {{"mode", "linear or circular."}, {"axis", "Of the sequence."}},
                       .doc = "A cache with an update put in.", .infer = infer, .reference = reference, .updates = true});

}  // namespace
}  // namespace ge::ops
