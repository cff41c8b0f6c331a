// ge.Layout: the same tensor in another physical order of its axes (attribute `layout`, empty: row-major).
#include "ops/op.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  c.out[0] = c.type(0);
  if (auto e = c.elements(0)) c.set_elements(0, *e);
  return ok();
}

Status lower(LowerContext& c) {
  c.call("move.copy", {c.in(0)}, {c.out()});
  return ok();
}

std::vector<int> layout(const Graph&, const Node& n) {
  auto p = ir::attr_ints(n, "layout");
  return {p.begin(), p.end()};
}

const Register r(OpDef{.name = "ge.Layout",
                       .min_inputs = 1,
                       .max_inputs = 1,
                       .doc = "a copy in another physical order",
                       .infer = infer,
                       .lower = lower,
                       .layout = layout});

}  // namespace
}  // namespace ge::ops
