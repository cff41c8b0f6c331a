// ge.Fail: what stands in a branch that cannot run. Its outputs have the types of the other branch's.
// types: of each output its kind, element type, number of axes (-1: not known) and sizes (-1: not known).
#include "base/text.h"
#include "ops/op.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  auto types = ir::attr_ints(c.node, "types");
  size_t at = 0;
  for (size_t i = 0; i < c.out.size(); ++i) {
    GE_CHECK(at + 3 <= types.size(), "ge.Fail without types");
    Type& t = c.out[i];
    t.kind = static_cast<ir::TypeKind>(types[at]);
    t.dtype = static_cast<DType>(types[at + 1]);
    int64_t rank = types[at + 2];
    t.ranked = rank >= 0;
    at += 3;
    for (int64_t k = 0; k < rank; ++k, ++at) t.dims.push_back(types[at] >= 0 ? Dim(types[at]) : c.fresh(format("o{}.d{}", i, k)));
  }
  return ok();
}

Status lower(LowerContext& c) {
  auto message = ir::attr_string(c.node, "message", "");
  std::vector<Arg> out;
  for (size_t i = 0; i < c.node.outputs.size(); ++i) out.push_back(c.out(static_cast<int>(i)));
  auto* bytes = reinterpret_cast<const std::byte*>(message.data());
  c.call("flow.fail", {}, std::move(out), {}, {}, {bytes, bytes + message.size()});
  return ok();
}

const Register r(OpDef{.name = "ge.Fail",
                       .max_outputs = -1,
                       .attrs = {{"types", "of its outputs"}, {"message", "why"}},
                       .unit = kernels::Unit::host,
                       .doc = "a branch that cannot run",
                       .infer = infer,
                       .lower = lower,
                       .executor = true,
                       .deterministic = false,
                       .foldable = false});

}  // namespace
}  // namespace ge::ops
