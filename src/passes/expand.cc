// Operators that say how they are written as others (OpDef::expand), now that types are known.
#include "passes/expand.h"

#include "ops/op.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

std::vector<std::shared_ptr<ir::Graph>> nested_graphs(const ir::Node& n) {
  std::vector<std::shared_ptr<ir::Graph>> out;
  for (auto& [key, attr] : n.attrs)
    if (auto* g = std::get_if<std::shared_ptr<ir::Graph>>(&attr)) out.push_back(*g);
  return out;
}

constexpr int kRounds = 4;   // one that becomes another that becomes a third

Result<bool> expand_some(ir::Graph& g, bool with_reference) {
  bool changed = false;
  for (ir::NodeId id : g.order()) {
    auto* def = ops::find(g.node(id).op);
    if (!def || !def->expand || (def->reference && !with_reference)) continue;
    ops::UpgradeContext context{g, id, def->newest};
    GE_TRY(bool done, def->expand(context));
    changed |= done;
  }
  return changed;
}

}  // namespace

Status spell_out(ir::Graph& g) {
  GE_RETURN_IF_ERROR(infer(g));
  for (int round = 0; round < kRounds; ++round) {
    GE_TRY(bool changed, expand_some(g, false));
    if (!changed) break;
    GE_RETURN_IF_ERROR(infer(g));
  }
  for (ir::NodeId id : g.order())
    for (auto& body : nested_graphs(g.node(id))) GE_RETURN_IF_ERROR(spell_out(*body));
  return ok();
}

Result<bool> expand(ir::Graph& g, PassContext& c) {
  bool any = false;
  for (int round = 0; round < kRounds; ++round) {
    GE_TRY(bool changed, expand_some(g, true));
    if (!changed) break;
    any = true;
    GE_RETURN_IF_ERROR(infer(g));
  }
  // What was put in place of a node may have left its old inputs unread.
  if (any) {
    auto swept = dce(g, c);
    if (!swept.ok()) return swept;
  }
  return any;
}

}  // namespace ge::passes
