//   k -> Unsqueeze -> Expand -> Reshape -> [Transpose] -> ge.Attention   becomes   k -> [Transpose] -> ge.Attention
// Grouped queries: heads of keys and values that several heads of queries share are read where they are, not
// repeated. Only repetition head by head (0 0 0 1 1 1): the order in which heads of a group lie side by side.
#include "base/text.h"
#include "passes/fusions/cube_group.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

struct Repeated {
  ValueId source;               // [B, heads / g, T, D]
  std::vector<NodeId> nodes;    // that repeat it, last first
};

// The nodes behind v = [B, heads, T, D] when they repeat each head; why not, where it came close.
std::optional<Repeated> repeated(const ir::Graph& g, ValueId v, std::string& why, NodeId& blocker) {
  auto made_by = [&](ValueId x, std::initializer_list<const char*> ops) -> NodeId {
    NodeId id = g.value(x).producer;
    for (auto* op : ops)
      if (id && g.node(id).op == op) return id;
    return NodeId{};
  };
  NodeId merge = made_by(v, {"Reshape"});
  NodeId expand = merge ? made_by(g.node(merge).inputs[0], {"Expand", "Tile"}) : NodeId{};
  NodeId split = expand ? made_by(g.node(expand).inputs[0], {"Unsqueeze", "Reshape"}) : NodeId{};
  if (!split) return std::nullopt;
  ValueId source = g.node(split).inputs[0];
  auto dims = [&](ValueId x) -> const std::vector<Dim>& { return g.value(x).type.dims; };
  auto &to = dims(v), &wide = dims(g.node(merge).inputs[0]), &thin = dims(g.node(expand).inputs[0]), &from = dims(source);
  if (to.size() != 4 || wide.size() != 5 || thin.size() != 5 || from.size() != 4) return std::nullopt;
  blocker = expand;
  if (thin[1].is(1) && thin[2] == from[1] && !from[1].is(1)) {
    why = "the heads are repeated as a whole, not each by itself";
    return std::nullopt;
  }
  for (size_t i : {0, 1}) {
    if (!(thin[i] == from[i]) || !(wide[i] == from[i])) return std::nullopt;
    if (!(thin[i + 3] == from[i + 2]) || !(wide[i + 3] == from[i + 2]) || !(to[i + 2] == from[i + 2])) return std::nullopt;
  }
  if (!thin[2].is(1) || !(to[0] == from[0]) || !(to[1] == from[1] * wide[2])) return std::nullopt;
  return Repeated{source, {merge, expand, split}};
}

// Takes the repetition out of operand `index`; the operand is [B, heads, D, T] behind a Transpose, or the heads
// themselves.
std::optional<Repeated> operand(const ir::Graph& g, NodeId attention, int index, NodeId& transpose, std::string& why, NodeId& blocker) {
  ValueId v = g.node(attention).inputs[static_cast<size_t>(index)];
  NodeId up = g.value(v).producer;
  if (up && g.node(up).op == "Transpose") {
    auto perm = ir::attr_ints(g.node(up), "perm");
    if (perm != std::vector<int64_t>{0, 1, 3, 2}) return std::nullopt;
    transpose = up;
    v = g.node(up).inputs[0];
  }
  return repeated(g, v, why, blocker);
}

Result<bool> search(ir::Graph& g, PassContext& c) {
  bool changed = false;
  for (NodeId id : g.order()) {
    auto& n = g.node(id);
    if (n.dead || n.op != "ge.Attention" || g.value(n.inputs[0]).type.rank() != 4) continue;
    std::string anchor = n.name, why, help = "repeat each head with Unsqueeze, Expand and Reshape, or pass the heads as they are";
    NodeId transpose, value_transpose, blocker;
    auto k = operand(g, id, 1, transpose, why, blocker), v = operand(g, id, 2, value_transpose, why, blocker);
    if (k && v && !value_transpose && !(g.value(k->source).type.dims[1] == g.value(v->source).type.dims[1])) {
      why = "keys and values have different numbers of heads";
      v.reset();
    } else if (bool(k) != bool(v) && why.empty()) {
      why = k ? "the keys are repeated, the values are not" : "the values are repeated, the keys are not";
    }
    if (k && v && !value_transpose) {
      Verdict scope = c.options.disabled_at.count({"attention_groups", anchor}) ? beyond_eps() : yes();
      if (scope) {
        ValueId key = k->source;
        if (transpose) {
          auto type = g.value(key).type;
          std::swap(type.dims[2], type.dims[3]);
          key = g.node(g.insert("Transpose", {key}, {type}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}}, transpose)).outputs[0];
        }
        g.set_input(id, 1, key);
        g.set_input(id, 2, v->source);
        c.trace.fused("attention_groups", g, id, anchor);
        c.trace.drop_near_misses_at(anchor, "attention_groups");
        changed = true;
        continue;
      }
      why = scope.why, help = scope.help;
    }
    if (!why.empty()) c.trace.near_miss({"attention_groups", anchor, 3, 4, blocker ? g.node(blocker).name : anchor, why, help});
  }
  if (changed) {
    GE_TRY(bool swept, dce(g, c));
    (void)swept;
  }
  return changed;
}

const RegisterFusion r(Fusion{.name = "attention_groups", .doc = "grouped queries: shared heads of keys and values are read without a copy", .order = 1, .search = search});

}  // namespace
}  // namespace ge::passes
