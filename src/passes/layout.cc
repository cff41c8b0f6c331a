// Physical layout: each op says in which order of axes it likes its output (channels-last after a
// convolution); elementwise ops follow their input; outputs of the graph are row-major. Every kernel takes
// any strides, so a layout is never wrong, only slow.
#include <algorithm>
#include <numeric>

#include "ops/op.h"
#include "ops/physical.h"
#include "passes/pass.h"

namespace ge::passes {

namespace {

// A copy may lie in any order: in that which a reader gives its own result, as convolutions like it.
std::vector<int> readers_wish(const ir::Graph& g, ir::ValueId v) {
  for (auto& u : g.value(v).uses) {
    auto& reader = g.node(u.node);
    auto* def = ops::find(reader.op);
    auto wish = u.index == 0 && def && def->layout ? def->layout(g, reader) : std::vector<int>{};
    if (!wish.empty() && wish.size() == g.value(v).type.dims.size()) return wish;
  }
  return {};
}

}  // namespace

Result<bool> layout(ir::Graph& g, PassContext&) {
  bool changed = false;
  for (ir::NodeId id : g.order()) {
    auto& n = g.node(id);
    auto* def = ops::find(n.op);
    std::vector<int> wish = def && def->layout ? def->layout(g, n) : std::vector<int>{};
    std::vector<int> row_major(wish.size());
    std::iota(row_major.begin(), row_major.end(), 0);
    if (wish == row_major) wish.clear();
    // A view lies as its input does: what follows works on memory as it is.
    if (def && def->view && !n.inputs.empty() && n.inputs[0] && n.outputs.size() == 1 && g.value(n.inputs[0]).type.ranked) {
      auto seen = ops::seen_through(*def, g, n, 0, ops::storage_view(g.value(n.inputs[0])));
      wish = seen ? ops::physical_order(*seen) : readers_wish(g, n.outputs[0]);
    }
    for (ir::ValueId v : n.outputs) {
      if (!v) continue;
      auto& value = g.value(v);
      std::vector<int> order = g.is_output(v) || wish.size() != value.type.dims.size() ? std::vector<int>{} : wish;
      changed |= value.layout != order;
      value.layout = std::move(order);
    }
  }
  return changed;
}

}  // namespace ge::passes
