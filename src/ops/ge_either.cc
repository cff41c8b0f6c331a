// ge.Either: input 1 in runs of sizes for which the expression of attribute "second" is not 0, else input 0. What makes
// the other one has no part in such a run, as its nodes say by their attribute "when" (an expression, not 0 where they have). Both are made where the output lies.
#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  auto &a = c.type(0), &b = c.type(1);
  if (a.dtype != b.dtype || !a.ranked || !b.ranked || a.rank() != b.rank()) return c.fail(format("its inputs are {} and {}", text(a), text(b)));
  for (size_t k = 0; k < a.dims.size(); ++k) {
    GE_TRY(Dim same, unify(c, a.dims[k], b.dims[k], "sizes of both ways"));
    (void)same;
  }
  c.set(0, a.dtype, a.dims);
  return ok();
}

Status lower(LowerContext& c) {
  GE_TRY(Dim second, Dim::parse(ir::attr_string(c.node, "second", "0")));
  GE_TRY(Dim when, Dim::parse(ir::attr_string(c.node, "when", "1")));
  for (int i = 0; i < 2; ++i) {
    c.call("move.copy", {c.in(i)}, {c.out()});
    c.calls.back().when = ((i == 1 ? second : equal(second, Dim(0))) * when).text();
  }
  return ok();
}

std::optional<Strided> place(const Graph&, const Node&, int, const Strided& out) { return out; }

const Register r(OpDef{.name = "ge.Either",
                       .min_inputs = 2,
                       .max_inputs = 2,
                       .attrs = {{"second", "an expression: not 0 where input 1 is the output"}},
                       .doc = "one of two ways to make the same, by the sizes of the run",
                       .infer = infer,
                       .lower = lower,
                       .place = place,
                       .foldable = false});

}  // namespace

}  // namespace ge::ops
