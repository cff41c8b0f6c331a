// A cache that is stored in another type than it is computed in (--state_dtype) is moved as it is stored:
//   Cast(f(Cast(past), new))   becomes   f(past, Cast(new))      for f Concat, ge.Append and scatters
// where the inner Cast widens a graph input and the outer one, back to its type, is a graph output. Likewise with
// ge.QuantizeRows and ge.DequantizeRows, for bytes and for their scales, where f moves whole rows. What else reads the
// f32 result reads it from the new one: it sees new rows as later runs will.
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

// Whether it moves rows of the last axis as wholes.
bool whole_rows(const ir::Graph& g, const ir::Node& n) {
  const int rank = g.value(n.outputs[0]).type.rank();
  auto last = [&](int64_t axis) { return axis == -1 || axis == rank - 1; };
  if (n.op == "Concat") return !last(ir::attr_int(n, "axis", 0));
  if (n.op == "TensorScatter") return !last(ir::attr_int(n, "axis", -2));
  if (n.op == "ScatterND") {
    auto& index = g.value(n.inputs[1]).type;
    return index.ranked && index.rank() > 0 && index.dims.back().known() && index.dims.back().value() < rank;
  }
  return n.op == "ge.Append";
}

// A value as it is stored: itself, or as bytes with the scales of its rows.
struct Stored {
  ValueId data, scale;
};

Stored inputs_of(const ir::Node& n) { return {n.inputs[0], n.inputs.size() > 1 ? n.inputs[1] : ValueId{}}; }
// The operator that gives f32 of what is stored like `out`, and the one that stores it.
const char* widening(DType stored) { return stored == DType::i8 ? "ge.DequantizeRows" : "Cast"; }
const char* narrowing(DType stored) { return stored == DType::i8 ? "ge.QuantizeRows" : "Cast"; }

ValueId widen(ir::Graph& g, Stored v, const ir::Type& type, NodeId like) {
  if (v.scale) return g.node(g.insert("ge.DequantizeRows", {v.data, v.scale}, {type}, {}, like)).outputs[0];
  return g.node(g.insert("Cast", {v.data}, {type}, {{"to", static_cast<int64_t>(type.dtype)}}, like)).outputs[0];
}

ir::Type scale_type(ir::Type rows) {
  rows.dtype = DType::f32;
  rows.dims.back() = Dim(1);
  return rows;
}

// `v` as `type` stores it: what it was widened from, or made anew.
Stored narrow(ir::Graph& g, ValueId v, DType type, NodeId like) {
  if (NodeId above = g.value(v).producer; above && g.node(above).op == widening(type) && g.value(g.node(above).inputs[0]).type.dtype == type)
    return inputs_of(g.node(above));
  auto stored = g.value(v).type;
  stored.dtype = type;
  if (type != DType::i8) return {g.node(g.insert("Cast", {v}, {stored}, {{"to", static_cast<int64_t>(type)}}, like)).outputs[0], {}};
  auto& made = g.node(g.insert("ge.QuantizeRows", {v}, {stored, scale_type(stored)}, {}, like));
  return {made.outputs[0], made.outputs[1]};
}

// The node that makes what `output` narrows, if it may work on what is stored; none otherwise.
NodeId narrows(const ir::Graph& g, ValueId output) {
  const DType type = g.value(output).type.dtype;
  NodeId outer = g.value(output).producer;
  if (!outer || g.node(outer).op != narrowing(type) || g.value(output).output_index != 0) return {};
  ValueId wide = g.node(outer).inputs[0];
  NodeId id = g.value(wide).producer;
  if (!id || g.node(id).outputs.size() != 1 || !holds(g.node(id).op, 0) || (type == DType::i8 && !whole_rows(g, g.node(id)))) return {};
  if (ir::attr_string(g.node(id), "reduction", "none") != "none") return {};
  ValueId first = g.node(id).inputs.empty() ? ValueId{} : g.node(id).inputs[0];
  NodeId inner = first ? g.value(first).producer : NodeId{};
  if (!inner || g.node(inner).op != widening(type)) return {};
  ValueId past = g.node(inner).inputs[0];
  return g.is_input(past) && g.value(past).type.dtype == type ? id : NodeId{};
}

}  // namespace

Result<bool> narrow_caches(ir::Graph& g, PassContext&) {
  bool changed = false;
  for (auto& s : g.states) {
    if (s.input < 0 || s.output < 0) continue;
    ValueId out = g.outputs[static_cast<size_t>(s.output)];
    NodeId id = narrows(g, out);
    if (!id) continue;
    const ir::Node n = g.node(id), outer = g.node(g.value(out).producer);
    const auto type = g.value(out).type, wide = g.value(n.outputs[0]).type;
    std::vector<ValueId> data = n.inputs, scales = n.inputs;
    for (size_t i = 0; i < data.size(); ++i) {
      if (!data[i] || !holds(n.op, i)) continue;
      Stored stored = narrow(g, data[i], type.dtype, id);
      data[i] = stored.data, scales[i] = stored.scale;
    }
    Stored made;
    made.data = g.node(g.insert(n.op, std::move(data), {type}, n.attrs, id)).outputs[0];
    g.replace_uses(out, made.data);
    if (type.dtype == DType::i8) {
      made.scale = g.node(g.insert(n.op, std::move(scales), {scale_type(type)}, n.attrs, id)).outputs[0];
      g.replace_uses(outer.outputs[1], made.scale);
    }
    g.replace_uses(n.outputs[0], widen(g, made, wide, id));
    changed = true;
  }
  return changed;
}

}  // namespace ge::passes
