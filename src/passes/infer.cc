#include "base/text.h"
#include "ops/op.h"
#include "passes/pass.h"

namespace ge::passes {

Status infer(ir::Graph& g) {
  for (ir::NodeId id : g.order()) {
    auto& n = g.node(id);
    auto* def = ops::find(n.op);
    if (!def)
      return node_error(code::kUnsupportedOp, n.name, format("Operator {} is not known.", n.op));
    if (!def->infer) continue;
    ops::InferContext c(g, n);
    Status s = def->infer(c);
    if (!s.ok()) {
      Error e = std::move(s).take();
      if (e.node.empty()) e.node = n.name;
      return e;
    }
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      if (!n.outputs[i]) continue;
      auto& v = g.value(n.outputs[i]);
      if (c.out[i].dtype != DType::none) v.type = std::move(c.out[i]);
      v.content = std::move(c.out_elements[i]);
    }
  }
  return ok();
}

}  // namespace ge::passes
