// The normal form: what changes nothing is removed, chains that move data become one step, so that rules
// see the operators that compute next to one another.
#include <algorithm>
#include <numeric>

#include "ops/op.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

std::vector<int64_t> transpose_perm(const ir::Graph& g, const ir::Node& n) {
  auto p = ir::attr_ints(n, "perm");
  if (p.empty()) {
    p.resize(g.value(n.inputs[0]).type.dims.size());
    std::iota(p.rbegin(), p.rend(), 0);
  }
  return p;
}

bool does_nothing(const ir::Graph& g, const ir::Node& n) {
  if (n.inputs.empty() || !n.inputs[0] || !n.outputs[0]) return false;
  auto &in = g.value(n.inputs[0]).type, &out = g.value(n.outputs[0]).type;
  if (n.op == "Identity") return true;
  if (n.op == "Dropout") return n.outputs.size() < 2 || !n.outputs[1];
  if (in.dtype != out.dtype || in.kind != ir::TypeKind::tensor) return false;
  bool same = in.ranked && out.ranked && in.dims == out.dims;
  if (n.op == "Cast" || n.op == "CastLike") return true;
  if (n.op == "Reshape" || n.op == "Expand" || n.op == "Flatten" || n.op == "Squeeze" || n.op == "Unsqueeze") return same;
  if (n.op == "Transpose") {
    auto p = transpose_perm(g, n);
    return in.ranked && std::is_sorted(p.begin(), p.end());
  }
  if (n.op == "Concat") return n.inputs.size() == 1;
  return false;
}

bool merge_transposes(ir::Graph& g, NodeId id) {
  auto& n = g.node(id);
  NodeId up = g.value(n.inputs[0]).producer;
  if (n.op != "Transpose" || !up || g.node(up).op != "Transpose" || !g.value(n.inputs[0]).type.ranked) return false;
  auto first = transpose_perm(g, g.node(up)), second = transpose_perm(g, n);
  std::vector<int64_t> both;
  for (int64_t p : second) both.push_back(first[static_cast<size_t>(p)]);
  n.attrs["perm"] = both;
  g.set_input(id, 0, g.node(up).inputs[0]);
  return true;
}

// A Reshape of a Reshape: the first shape does not matter. The second's target is spelt out where its
// zeros refer to the first.
bool merge_reshapes(ir::Graph& g, NodeId id) {
  auto& n = g.node(id);
  auto is_reshape = [](const ir::Node& x) { return x.op == "Reshape" || x.op == "Flatten" || x.op == "Squeeze" || x.op == "Unsqueeze"; };
  if (n.op != "Reshape") return false;
  NodeId up = g.value(n.inputs[0]).producer;
  if (!up || !is_reshape(g.node(up)) || n.inputs.size() < 2) return false;
  auto target = g.elements(n.inputs[1]);
  auto& out = g.value(n.outputs[0]).type;
  if (!target || !out.ranked) return false;
  bool zeros = std::any_of(target->begin(), target->end(), [](auto& d) { return d.is(0); });
  if (zeros) {
    int unknown = static_cast<int>(std::count_if(out.dims.begin(), out.dims.end(), [](auto& d) { return !d.known(); }));
    if (unknown > 1 || std::any_of(out.dims.begin(), out.dims.end(), [](auto& d) { return d.is(0); })) return false;
    std::vector<int64_t> sizes;
    for (auto& d : out.dims) sizes.push_back(d.known() ? d.value() : -1);
    g.set_input(id, 1, g.add_constant(Tensor::vector_i64(sizes), "shape"));
  }
  g.set_input(id, 0, g.node(up).inputs[0]);
  return true;
}

}  // namespace

Result<bool> normal_form(ir::Graph& g, PassContext& c) {
  bool changed = false;
  for (NodeId id : g.order()) {
    auto& n = g.node(id);
    if (does_nothing(g, n)) {
      ValueId in = n.inputs[0], out = n.outputs[0];
      // The name that a user gave an output stays with the graph (output_names).
      g.replace_uses(out, in);
      g.erase(id);
      changed = true;
      continue;
    }
    if (n.inputs.empty() || !n.inputs[0]) continue;
    changed |= merge_transposes(g, id) || merge_reshapes(g, id);
  }
  if (changed) {
    auto swept = dce(g, c);
    if (!swept.ok()) return swept;
  }
  return changed;
}

}  // namespace ge::passes
