// ge.UnpackBits: bytes that hold several unsigned numbers of `bits` (2 or 4) bits each, lowest first, as one
// number an element; the last axis grows.
#include "base/text.h"
#include "ops/op.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  const int64_t bits = ir::attr_int(c.node, "bits", 4);
  if (bits != 2 && bits != 4) return c.fail(format("{} bits", bits));
  if (c.dtype(0) != DType::u8) return c.fail(format("the input is {}, not u8", name(c.dtype(0))));
  c.out[0] = c.type(0);
  c.out[0].dtype = bits == 2 ? DType::u2 : DType::u4;
  if (!c.ranked(0)) return ok();
  if (c.rank(0) == 0) return c.fail("the input is a scalar");
  c.out[0].dims.back() = c.out[0].dims.back() * Dim(8 / bits);
  return ok();
}

Status lower(LowerContext& c) {
  c.call("move.unpack_bits", {c.in(0)}, {c.out()}, {Dim(ir::attr_int(c.node, "bits", 4))});
  return ok();
}

const Register r(OpDef{.name = "ge.UnpackBits",
                       .min_inputs = 1,
                       .max_inputs = 1,
                       .attrs = {{"bits", "of a number: 2 or 4"}},
                       .doc = "one element for each number of a byte",
                       .infer = infer,
                       .reference = lower,
                       .lower = lower});

}  // namespace
}  // namespace ge::ops
