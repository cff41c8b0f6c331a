//   ge.Attention(q, Transpose(Cast(k)), Cast(v))   becomes   ge.Attention(q, Transpose(k), v)      k, v in f16 or bf16
//   ge.Attention(q, Transpose(ge.DequantizeRows(k, s)), ge.DequantizeRows(v, t))
//                                             becomes   ge.Attention(q, Transpose(k), v, mask, Transpose(s), t)
// Keys and values that are stored in 16 or 8 bits (a state) are widened where attention reads them, not as a whole
// before. Exact but for the order of products with scales: only the place of the widening changes.
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

// A cache as it is stored, and the scales of its rows where it is bytes.
struct Stored {
  ValueId data, scale;
  explicit operator bool() const { return bool(data); }
};

// The cache behind what widens it to f32.
Stored stored(const ir::Graph& g, ValueId v) {
  NodeId id = g.value(v).producer;
  if (!id || g.value(v).type.dtype != DType::f32 || (g.node(id).op != "Cast" && g.node(id).op != "ge.DequantizeRows")) return {};
  auto& in = g.node(id).inputs;
  DType t = g.value(in[0]).type.dtype;
  if (!is_cache(g, in[0])) return {};
  if (g.node(id).op == "ge.DequantizeRows") return is_cache(g, in[1]) ? Stored{in[0], in[1]} : Stored{};
  return t == DType::bf16 || t == DType::f16 ? Stored{in[0], {}} : Stored{};
}

std::vector<int64_t> perm_of(const ir::Graph& g, NodeId transpose) {
  auto perm = ir::attr_ints(g.node(transpose), "perm");
  if (perm.empty())
    for (int a = g.value(g.node(transpose).inputs[0]).type.rank(); a-- > 0;) perm.push_back(a);
  return perm;
}

ValueId transposed(ir::Graph& g, ValueId v, NodeId like) {
  auto type = g.value(v).type;
  auto perm = perm_of(g, like);
  for (size_t i = 0; i < perm.size(); ++i) type.dims[i] = g.value(v).type.dims[static_cast<size_t>(perm[i])];
  ir::Attrs attrs = g.node(like).attrs;
  return g.node(g.insert("Transpose", {v}, {std::move(type)}, std::move(attrs), like)).outputs[0];
}

// As stored(), or one part of a stack of caches along the first axis.
Stored part_or_whole(ir::Graph& g, ValueId v, bool build) {
  if (Stored s = stored(g, v)) return s;
  NodeId id = g.value(v).producer;
  if (!id || g.node(id).op != "Gather" || ir::attr_int(g.node(id), "axis", 0) != 0) return {};
  ValueId index = g.node(id).inputs[1];
  if (!g.is_constant(index) || g.value(index).type.rank() != 0) return {};
  Stored s = stored(g, g.node(id).inputs[0]);
  if (!build) return s;
  for (ValueId* x : {&s.data, &s.scale}) {
    if (!*x) continue;
    auto type = g.value(*x).type;
    type.dims.erase(type.dims.begin());
    ir::Attrs attrs = g.node(id).attrs;
    *x = g.node(g.insert("Gather", {*x, index}, {std::move(type)}, std::move(attrs), id)).outputs[0];
  }
  return s;
}

// Operand `index` as it is stored, itself, a part of a stack, or behind a Transpose; none when it is not stored so.
// Scales are those of keys and values: they go along the axis that attention sums over.
Stored operand(ir::Graph& g, NodeId id, size_t index, bool build) {
  ValueId v = g.node(id).inputs[index];
  if (Stored s = part_or_whole(g, v, false)) return s.scale && index == 1 ? Stored{} : part_or_whole(g, v, build);
  NodeId turn = g.value(v).producer;
  if (!turn || g.node(turn).op != "Transpose") return {};
  Stored s = part_or_whole(g, g.node(turn).inputs[0], false);
  if (!s) return s;
  auto perm = perm_of(g, turn);
  const size_t rank = perm.size();
  if (rank != g.value(v).type.dims.size() || rank < 2) return {};
  if (s.scale && perm[index == 1 ? rank - 2 : rank - 1] != static_cast<int64_t>(rank) - 1) return {};
  if (!build) return s;
  s = part_or_whole(g, g.node(turn).inputs[0], true);
  return {transposed(g, s.data, turn), s.scale ? transposed(g, s.scale, turn) : ValueId{}};
}

Result<bool> search(ir::Graph& g, PassContext& c) {
  bool changed = false;
  for (NodeId id : g.order()) {
    if (g.node(id).dead || g.node(id).op != "ge.Attention") continue;
    std::string anchor = g.node(id).name;
    if (c.options.disabled_at.count({"attention_cache", anchor})) continue;
    if (!operand(g, id, 1, false) && !operand(g, id, 2, false)) continue;
    for (size_t i : {1u, 2u}) {
      Stored s = operand(g, id, i, true);
      if (!s) continue;
      g.set_input(id, static_cast<int>(i), s.data);
      if (!s.scale) continue;
      while (g.node(id).inputs.size() < 6) g.add_node_input(id, {});
      g.set_input(id, static_cast<int>(i) + 3, s.scale);
    }
    c.trace.fused("attention_cache", g, id, anchor);
    changed = true;
  }
  if (changed) {
    GE_TRY(bool swept, dce(g, c));
    (void)swept;
  }
  return changed;
}

const RegisterFusion r(Fusion{.name = "attention_cache", .doc = "keys and values that are stored in 16 or 8 bits are read as they lie", .order = 2, .search = search});

}  // namespace
}  // namespace ge::passes
