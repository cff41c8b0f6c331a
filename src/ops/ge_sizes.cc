// ge.Sizes: a vector of size expressions (attribute "sizes", texts). What Shape of a value says, without
// reading the value: so that asking for a shape keeps nothing alive and blocks no fusion.
#include "ops/op.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  std::vector<Dim> sizes;
  for (auto& text : ir::attr_strings(c.node, "sizes")) {
    GE_TRY(Dim d, Dim::parse(text));
    sizes.push_back(d);
  }
  c.set(0, DType::i64, {static_cast<int64_t>(sizes.size())});
  c.set_elements(0, std::move(sizes));
  return ok();
}

Status lower(LowerContext& c) {
  std::vector<Dim> sizes;
  for (auto& text : ir::attr_strings(c.node, "sizes")) {
    GE_TRY(Dim d, Dim::parse(text));
    sizes.push_back(d);
  }
  c.call("move.elements", {}, {c.out()}, std::move(sizes));
  return ok();
}

const Register r(OpDef{.name = "ge.Sizes",
                       .min_inputs = 0,
                       .max_inputs = 0,
                       .attrs = {{"sizes", "one expression an element"}},
                       .unit = kernels::Unit::host,
                       .doc = "sizes as a tensor",
                       .infer = infer,
                       .lower = lower});

}  // namespace
}  // namespace ge::ops
