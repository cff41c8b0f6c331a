#include "driver/closed_regions.h"

#include <map>
#include <optional>

#include "base/text.h"
#include "tensor/dtype.h"

namespace ge {
namespace {

// Why no rule takes the node, or a yes. A node that a rule made has been entered.
Verdict open(const ir::Graph& g, const passes::PassOptions& options, ir::NodeId id) {
  auto& n = g.node(id);
  if (n.op.starts_with("ge.")) return yes();
  Verdict scope = passes::in_scope(options, g, id);
  if (!scope) return no("not in --enable_op_scope_list", scope.help);
  for (auto* list : {&n.inputs, &n.outputs})
    for (ir::ValueId v : *list) {
      if (!v) continue;
      DType t = g.value(v).type.dtype;
      if (t == DType::f64 || t == DType::c64 || t == DType::c128 || t == DType::string)
        return no(format("rules compute no {}", name(t)), is_float(t) ? "export the model in float32" : "");
    }
  return yes();
}

}  // namespace

std::vector<ClosedRegion> closed_regions(const ir::Graph& g, const passes::PassOptions& options) {
  std::vector<ClosedRegion> out;
  std::map<int, size_t> region;   // of a node
  for (ir::NodeId id : g.order()) {
    Verdict v = open(g, options, id);
    if (v) continue;
    // It joins the first of its producers that is closed for the same reason.
    std::optional<size_t> at;
    for (ir::ValueId in : g.node(id).inputs) {
      if (!in || !g.value(in).producer) continue;
      auto it = region.find(g.value(in).producer.v);
      if (it != region.end() && out[it->second].why == v.why) {
        at = it->second;
        break;
      }
    }
    if (!at) {
      at = out.size();
      out.push_back({{}, v.why, {}});
    }
    region[id.v] = *at;
    auto& r = out[*at];
    r.nodes.push_back(g.node(id).name);
    if (!v.help.empty() && r.help.find(v.help) == std::string::npos) r.help += (r.help.empty() ? "" : ", ") + v.help;
  }
  return out;
}

}  // namespace ge
