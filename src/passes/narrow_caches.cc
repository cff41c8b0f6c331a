// A cache that is stored in another type than it is computed in (--state_dtype) is moved as it is stored:
//   Cast(f(Cast(past), new))   becomes   f(past, Cast(new))      for f Concat, ge.Append and scatters
// where the inner Cast widens a graph input and the outer one, back to its type, is a graph output. What else reads
// the f32 result reads it from the new one: it sees new rows as later runs will.
#include "passes/pass.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

// Which inputs hold elements of the result.
bool holds(const std::string& op, size_t i) {
  if (op == "Concat") return true;
  if (op == "ge.Append" || op == "TensorScatter") return i < 2;
  if (op == "ScatterND" || op == "ScatterElements") return i == 0 || i == 2;
  return false;
}

ValueId cast(ir::Graph& g, ValueId v, DType to, NodeId like) {
  auto type = g.value(v).type;
  type.dtype = to;
  return g.node(g.insert("Cast", {v}, {type}, {{"to", static_cast<int64_t>(to)}}, like)).outputs[0];
}

// The node that makes what `output`, a Cast, narrows, if it may work on the narrow type; none otherwise.
NodeId narrows(const ir::Graph& g, ValueId output) {
  NodeId outer = g.value(output).producer;
  if (!outer || g.node(outer).op != "Cast") return {};
  ValueId wide = g.node(outer).inputs[0];
  NodeId id = g.value(wide).producer;
  if (!id || g.node(id).outputs.size() != 1 || !holds(g.node(id).op, 0)) return {};
  if (ir::attr_string(g.node(id), "reduction", "none") != "none") return {};
  ValueId first = g.node(id).inputs.empty() ? ValueId{} : g.node(id).inputs[0];
  NodeId inner = first ? g.value(first).producer : NodeId{};
  if (!inner || g.node(inner).op != "Cast") return {};
  ValueId past = g.node(inner).inputs[0];
  return g.is_input(past) && g.value(past).type.dtype == g.value(output).type.dtype ? id : NodeId{};
}

}  // namespace

Result<bool> narrow_caches(ir::Graph& g, PassContext&) {
  bool changed = false;
  for (auto& s : g.states) {
    if (s.input < 0 || s.output < 0) continue;
    ValueId out = g.outputs[static_cast<size_t>(s.output)];
    NodeId id = narrows(g, out);
    if (!id) continue;
    const ir::Node n = g.node(id);
    const DType type = g.value(out).type.dtype;
    std::vector<ValueId> in = n.inputs;
    for (size_t i = 0; i < in.size(); ++i) {
      if (!in[i] || !holds(n.op, i)) continue;
      NodeId above = g.value(in[i]).producer;
      bool back = above && g.node(above).op == "Cast" && g.value(g.node(above).inputs[0]).type.dtype == type;
      in[i] = back ? g.node(above).inputs[0] : cast(g, in[i], type, id);
    }
    NodeId made = g.insert(n.op, std::move(in), {g.value(out).type}, n.attrs, id);
    ValueId narrow = g.node(made).outputs[0];
    g.replace_uses(out, narrow);
    g.replace_uses(n.outputs[0], cast(g, narrow, g.value(n.outputs[0]).type.dtype, id));
    changed = true;
  }
  return changed;
}

}  // namespace ge::passes
