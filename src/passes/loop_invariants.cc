// What is the same in every iteration of a Loop is not made in each: carried values that its graph hands on as they
// are become captures (a constant one then is a constant inside), and products of captures and constants are made
// once, before the Loop, with the transposes that they read.
#include <algorithm>
#include <set>

#include "ops/subgraph.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::ValueId;

// The value that v has by another name: elements in the same order, seen through changes of shape.
ValueId origin(const Graph& g, ValueId v) {
  static const std::set<std::string, std::less<>> kSameElements = {"Identity", "Squeeze", "Unsqueeze", "Reshape", "Flatten"};
  while (g.value(v).producer) {
    auto& n = g.node(g.value(v).producer);
    if (!kSameElements.count(n.op) && !changes_nothing(g, n)) break;
    v = n.inputs[0];
  }
  return v;
}

class Loop {
 public:
  Loop(Graph& g, NodeId id) : g_(g), id_(id), body_(*ops::nested(g.node(id), "body")) {
    captures_ = static_cast<size_t>(ir::attr_int(node(), "captures", 0));
    carried_ = node().inputs.size() - 2 - captures_;
  }

  bool run() {
    bool changed = false;
    for (size_t k = carried_; k-- > 0;) changed |= capture_carried(k);
    if (changed) node().attrs["captures"] = static_cast<int64_t>(captures_);
    return hoist() || changed;
  }

 private:
  ir::Node& node() { return g_.node(id_); }

  // An input of the body that is `outer` in all iterations.
  ValueId captured(ValueId outer, const ir::Type& inside) {
    g_.add_node_input(id_, outer);
    ++captures_;
    return body_.add_input(g_.value(outer).name, inside);
  }

  bool capture_carried(size_t k) {
    const ValueId in = body_.inputs[2 + k], out = body_.outputs[1 + k], first = node().inputs[2 + k];
    auto &begins = body_.value(in).type, &goes_on = body_.value(out).type;
    if (!first || g_.value(first).type.kind != ir::TypeKind::tensor || !begins.ranked || !(begins == goes_on) || origin(body_, out) != in)
      return false;
    body_.replace_uses(in, captured(first, begins));
    body_.inputs.erase(body_.inputs.begin() + static_cast<int64_t>(2 + k));
    body_.outputs.erase(body_.outputs.begin() + static_cast<int64_t>(1 + k));
    if (body_.output_names.size() > 1 + k) body_.output_names.erase(body_.output_names.begin() + static_cast<int64_t>(1 + k));
    g_.remove_input(id_, 2 + k);
    drop_output(k, first);
    --carried_;
    return true;
  }

  void drop_output(size_t k, ValueId instead) {
    if (k >= node().outputs.size()) return;
    if (ValueId old = node().outputs[k]) {
      g_.replace_uses(old, instead);
      g_.set_output(id_, static_cast<int>(k), {});
    }
    auto& outputs = node().outputs;
    outputs.erase(outputs.begin() + static_cast<int64_t>(k));
    for (size_t i = k; i < outputs.size(); ++i)
      if (outputs[i]) g_.value(outputs[i]).output_index = static_cast<int>(i);
  }

  // The outer value that v, of the body, is in all iterations; none where it changes. A constant gets a copy outside.
  ValueId outside(ValueId v) {
    if (auto it = outside_.find(v.v); it != outside_.end()) return it->second;
    auto& x = body_.value(v);
    if (x.constant) return outside_[v.v] = g_.add_constant(*x.constant, x.name);
    for (size_t k = 0; k < captures_; ++k)
      if (body_.inputs[2 + carried_ + k] == v) return outside_[v.v] = node().inputs[2 + carried_ + k];
    return {};
  }

  bool is_fixed(ValueId v) const {
    if (body_.is_constant(v) || outside_.count(v.v)) return true;
    return std::find(body_.inputs.begin() + static_cast<int64_t>(2 + carried_), body_.inputs.end(), v) != body_.inputs.end();
  }

  // Work worth moving whose operands are the same in all iterations, or a move of data that such work reads.
  bool moves_out(const ir::Node& n) const {
    const bool product = n.op == "MatMul" || n.op == "Gemm" || n.op == "Conv";
    if (!product && n.op != "Transpose") return false;
    if (!n.outputs[0] || body_.is_output(n.outputs[0])) return false;
    return std::all_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) { return !v || is_fixed(v); });
  }

  bool hoist() {
    bool changed = false;
    for (NodeId inner : body_.order()) {
      if (!moves_out(body_.node(inner))) continue;
      const ir::Node n = body_.node(inner);
      std::vector<ValueId> inputs;
      for (ValueId v : n.inputs) inputs.push_back(v ? outside(v) : ValueId{});
      const ValueId inside = n.outputs[0];
      const ir::Type type = body_.value(inside).type;
      ir::Type unknown = type;
      unknown.ranked = false, unknown.dims.clear();  // sizes are said in the body's symbols: inference says them anew
      const ValueId made = g_.add_value(body_.value(inside).name, unknown);
      NodeId moved = g_.add_node(n.op, inputs, {made}, n.attrs, n.name);
      g_.node(moved).rank = node().rank;
      g_.node(moved).origin = n.origin;
      const ValueId in = captured(made, type);
      body_.replace_uses(inside, in);
      body_.erase(inner);
      outside_[in.v] = made;
      node().attrs["captures"] = static_cast<int64_t>(captures_);
      changed = true;
    }
    return changed;
  }

  Graph& g_;
  NodeId id_;
  Graph& body_;
  size_t captures_ = 0, carried_ = 0;
  std::map<int32_t, ValueId> outside_;
};

}  // namespace

Result<bool> loop_invariants(Graph& g, PassContext&) {
  bool changed = false;
  for (NodeId id : g.order())
    if (g.node(id).op == "Loop") changed |= Loop(g, id).run();
  return changed;
}

}  // namespace ge::passes
