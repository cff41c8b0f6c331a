// Dead code: nodes whose outputs nobody reads, outputs that nobody reads (dropped from their node when
// they are optional), in one backward sweep.
#include <algorithm>

#include "ops/op.h"
#include "passes/pass.h"

namespace ge::passes {

Result<bool> dce(ir::Graph& g, PassContext&) {
  bool changed = false;
  auto order = g.order();
  for (size_t k = order.size(); k-- > 0;) {
    auto& n = g.node(order[k]);
    bool read = std::any_of(n.outputs.begin(), n.outputs.end(), [&](auto v) { return v && g.reader_count(v) > 0; });
    if (!read) {
      g.erase(order[k]);
      changed = true;
      continue;
    }
    auto* def = ops::find(n.op);
    for (size_t i = n.outputs.size(); i-- > 0;) {
      if (!n.outputs[i] || g.reader_count(n.outputs[i]) > 0 || !def || static_cast<int>(i) < def->min_outputs) continue;
      if (def->max_outputs < 0 || n.op.starts_with("ge.")) continue;
      g.set_output(order[k], static_cast<int>(i), {});
      changed = true;
    }
  }
  return changed;
}

}  // namespace ge::passes
