// The branch of an If whose condition is a constant, or is decided by sizes for all of their range or gears, takes
// the place of the If.
#include "ops/size_condition.h"
#include "ops/subgraph.h"
#include "passes/pass.h"

namespace ge::passes {

void take_branch(ir::Graph& g, ir::NodeId id, bool condition, PassContext& c) {
  const char* name = condition ? "then_branch" : "else_branch";
  c.trace.branch(g, id, name);
  auto branch = ops::nested(g.node(id), name);
  std::vector<ir::ValueId> inputs(g.node(id).inputs.begin() + 1, g.node(id).inputs.end());
  auto outputs = ops::put_in(g, *branch, inputs, id);
  auto old = g.node(id).outputs;
  for (size_t i = 0; i < old.size(); ++i)
    if (old[i]) g.replace_uses(old[i], outputs[i]);
  g.erase(id);
}

Result<bool> inline_branches(ir::Graph& g, PassContext& c) {
  bool changed = false;
  for (ir::NodeId id : g.order()) {
    if (g.node(id).op != "If") continue;
    auto condition = g.elements(g.node(id).inputs[0]);
    if (!condition || condition->size() != 1) continue;
    auto taken = ops::decided(g, (*condition)[0]);
    if (!taken) continue;
    take_branch(g, id, *taken, c);
    changed = true;
  }
  return changed;
}

}  // namespace ge::passes
