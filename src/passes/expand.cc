// Operators that say how they are written as others (OpDef::expand), now that types are known.
#include "ops/op.h"
#include "passes/pass.h"

namespace ge::passes {

Result<bool> expand(ir::Graph& g, PassContext& c) {
  bool changed = false;
  for (ir::NodeId id : g.order()) {
    auto* def = ops::find(g.node(id).op);
    if (!def || !def->expand) continue;
    ops::UpgradeContext context{g, id, def->newest};
    GE_TRY(bool done, def->expand(context));
    changed |= done;
  }
  // What was put in place of a node may have left its old inputs unread.
  if (changed) {
    auto swept = dce(g, c);
    if (!swept.ok()) return swept;
  }
  return changed;
}

}  // namespace ge::passes
