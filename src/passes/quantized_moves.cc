// What only moves or compares numbers works on bytes as well:
//   QuantizeLinear(f(DequantizeLinear(x)))   ->   f(x)      for f MaxPool, Transpose, Reshape and the like
// with one constant scale above zero and the same zero point on both sides: these conversions keep the order of
// numbers, and quantising a dequantised byte gives it back.
#include "ops/integer_product.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

bool moves(const ir::Node& n) {
  if (n.outputs.size() != 1) return false;
  for (auto* op : {"MaxPool", "GlobalMaxPool", "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "DepthToSpace", "SpaceToDepth"})
    if (n.op == op) return true;
  return false;
}

bool same_constant(const ir::Graph& g, ValueId a, ValueId b) {
  if (!a || !b) return !a && !b;
  return g.is_constant(a) && g.is_constant(b) && g.value(a).constant->count() == 1 && g.value(b).constant->count() == 1 && g.value(a).type.dtype == g.value(b).type.dtype &&
         g.value(a).constant->at(0) == g.value(b).constant->at(0);
}

ValueId input(const ir::Node& n, size_t i) { return i < n.inputs.size() ? n.inputs[i] : ValueId{}; }

bool move_one(ir::Graph& g, NodeId id) {
  auto& n = g.node(id);
  ValueId v = n.inputs[0];
  NodeId above = v ? g.value(v).producer : NodeId{}, below = g.only_reader(n.outputs[0]);
  if (!above || !below || g.node(above).op != "DequantizeLinear" || g.node(below).op != "QuantizeLinear" || g.node(below).inputs[0] != n.outputs[0]) return false;
  auto &d = g.node(above), &q = g.node(below);
  ValueId x = d.inputs[0], out = q.outputs[0];
  if (!ops::is_byte(g.value(x).type.dtype) || g.value(out).type.dtype != g.value(x).type.dtype) return false;
  if (g.value(d.inputs[1]).type.dtype != DType::f32 || !same_constant(g, d.inputs[1], q.inputs[1]) || !same_constant(g, input(d, 2), input(q, 2))) return false;
  if (!(g.value(d.inputs[1]).constant->at(0) > 0)) return false;
  std::vector<ValueId> in = n.inputs;
  in[0] = x;
  std::string op = n.op;
  ir::Attrs attrs = n.attrs;
  NodeId made = g.insert(std::move(op), std::move(in), {g.value(out).type}, std::move(attrs), id);
  g.replace_uses(out, g.node(made).outputs[0]);
  g.erase(below);
  g.erase(id);
  return true;
}

}  // namespace

Result<bool> quantized_moves(ir::Graph& g, PassContext& c) {
  bool changed = false;
  if (!c.options.fusion) return false;
  for (NodeId id : g.order())
    if (!g.node(id).dead && moves(g.node(id)) && in_scope(c.options, g, id).holds) changed |= move_one(g, id);
  return changed;
}

}  // namespace ge::passes
