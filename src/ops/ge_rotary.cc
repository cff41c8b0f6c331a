// ge.Rotary: rotary position embedding of halves, or of neighbours (interleaved=1). Inputs x [..., D] f32 of rank 1 to 4, cos and sin that
// broadcast to it, their last axis D, or D/2 for both halves (when
// interleaved always).
#include "ops/fused_tail.h"
#include "ops/op.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  if (!c.ranked(0)) c.set_unranked(0, c.dtype(0));
  else c.set(0, c.dtype(0), c.dims(0));
  return ok();
}

Strided rank4(Strided v) {
  while (v.dims.size() < 4) v = with_axis(std::move(v), 0);
  return v;
}

Status lower(LowerContext& c) {
  if (c.out_type().dtype != DType::f32 || c.out_type().rank() > 4) return c.fail("only f32 of rank 1 to 4");
  c.call("vector.rotary", {c.in_as(0, rank4(c.view(0))), c.in_as(1, rank4(c.view(1))), c.in_as(2, rank4(c.view(2)))},
         {c.out_as(0, rank4(c.out_view()))}, {ir::attr_int(c.node, "interleaved", 0)});
  return ok();
}

const Register r(OpDef{.name = "ge.Rotary",
                       .min_inputs = 3,
                       .max_inputs = 3,
                       .attrs = {{"interleaved", "1: x[2i] is turned with x[2i + 1], not with x[i + D/2]"}},
                       .unit = kernels::Unit::vector,
                       .doc = "rotary position embedding",
                       .infer = infer,
                       .lower = lower});

}  // namespace
}  // namespace ge::ops
