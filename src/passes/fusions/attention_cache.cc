//   ge.Attention(q, Transpose(Cast(k)), Cast(v))   becomes   ge.Attention(q, Transpose(k), v)      k, v in f16 or bf16
// Keys and values that are stored in 16 bits (a state) are widened where attention reads them, not as a whole before.
// Exact: only the place of the widening changes.
#include "base/text.h"
#include "ops/op.h"
#include "passes/fusion.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

// An input of the graph, or one with more entries or replaced ones.
bool is_cache(const ir::Graph& g, ValueId v) {
  if (g.is_input(v)) return true;
  NodeId id = g.value(v).producer;
  if (!id || g.node(id).inputs.empty() || !g.node(id).inputs[0] || !g.is_input(g.node(id).inputs[0])) return false;
  auto* op = ops::find(g.node(id).op);
  return op && (op->place || op->updates);
}

// The cache of 16 bits behind a Cast to f32.
ValueId stored(const ir::Graph& g, ValueId v) {
  NodeId id = g.value(v).producer;
  if (!id || g.node(id).op != "Cast") return {};
  ValueId from = g.node(id).inputs[0];
  DType t = g.value(from).type.dtype;
  return is_cache(g, from) && (t == DType::bf16 || t == DType::f16) && g.value(v).type.dtype == DType::f32 ? from : ValueId{};
}

// Operand `index` as it is stored, itself or behind a Transpose; none when it is not stored so.
ValueId operand(ir::Graph& g, NodeId id, size_t index, bool build) {
  ValueId v = g.node(id).inputs[index];
  if (ValueId s = stored(g, v)) return s;
  NodeId turn = g.value(v).producer;
  if (!turn || g.node(turn).op != "Transpose") return {};
  ValueId s = stored(g, g.node(turn).inputs[0]);
  if (!s || !build) return s;
  auto type = g.value(v).type;
  type.dtype = g.value(s).type.dtype;
  ir::Attrs attrs = g.node(turn).attrs;
  return g.node(g.insert("Transpose", {s}, {type}, std::move(attrs), turn)).outputs[0];
}

Result<bool> search(ir::Graph& g, PassContext& c) {
  bool changed = false;
  for (NodeId id : g.order()) {
    if (g.node(id).dead || g.node(id).op != "ge.Attention") continue;
    std::string anchor = g.node(id).name;
    if (c.options.disabled_at.count({"attention_cache", anchor})) continue;
    if (!operand(g, id, 1, false) && !operand(g, id, 2, false)) continue;
    for (size_t i : {1u, 2u})
      if (ValueId v = operand(g, id, i, true)) g.set_input(id, static_cast<int>(i), v);
    c.trace.fused("attention_cache", g, id, anchor);
    changed = true;
  }
  if (changed) {
    GE_TRY(bool swept, dce(g, c));
    (void)swept;
  }
  return changed;
}

const RegisterFusion r(Fusion{.name = "attention_cache", .doc = "keys and values that are stored in 16 bits are read as they lie", .order = 2, .search = search});

}  // namespace
}  // namespace ge::passes
