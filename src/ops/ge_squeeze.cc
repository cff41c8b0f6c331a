// ge.SqueezeOnes: drops the axes that turn out to be of size 1, so that only running tells how many are left. A
// Squeeze without axes becomes one where that is what the caller gets.
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  c.set_unranked(0, c.dtype(0));
  return ok();
}

Status lower(LowerContext& c) {
  c.call("value.squeeze", {c.in(0)}, {c.out()});
  return ok();
}

const Register r(OpDef{.name = "ge.SqueezeOnes",
                       .min_inputs = 1,
                       .max_inputs = 1,
                       .unit = kernels::Unit::host,
                       .doc = "drops axes that turn out to be of size 1",
                       .infer = infer,
                       .lower = lower,
                       .executor = true,
                       .foldable = false});

}  // namespace
}  // namespace ge::ops
