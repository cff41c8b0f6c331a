#include "ops/rewrite.h"

#include "base/text.h"

namespace ge::ops {

ValueId make_node(UpgradeContext& c, std::string op, std::vector<ValueId> inputs, ir::Attrs attrs) {
  NodeId n = c.graph.insert(std::move(op), std::move(inputs), {Type{}}, std::move(attrs), c.id);
  return c.graph.node(n).outputs[0];
}

void become(UpgradeContext& c, std::string op, std::vector<ValueId> inputs, ir::Attrs attrs) {
  // Inputs that are left over become absent ones; an operator with fewer inputs would not take them.
  size_t old = c.node().inputs.size();
  for (size_t i = 0; i < old; ++i) c.graph.set_input(c.id, static_cast<int>(i), ValueId{});
  c.node().inputs.resize(std::min(old, inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i < c.node().inputs.size()) c.graph.set_input(c.id, static_cast<int>(i), inputs[i]);
    else c.graph.add_node_input(c.id, inputs[i]);
  }
  c.node().op = std::move(op);
  c.node().attrs = std::move(attrs);
}

ValueId number(UpgradeContext& c, int64_t v) { return c.graph.add_constant(Tensor::scalar_i64(v), "number"); }

ValueId size_of(UpgradeContext& c, ValueId v, int64_t axis) {
  return make_node(c, "Squeeze", {make_node(c, "Shape", {v}, {{"start", axis}, {"end", axis + 1}})});
}

ValueId input_of(const UpgradeContext& c, size_t i) {
  auto& in = c.node().inputs;
  return i < in.size() ? in[i] : ValueId{};
}

const Tensor* constant_of(const UpgradeContext& c, size_t i) {
  ValueId v = input_of(c, i);
  return v ? c.graph.value(v).constant.get() : nullptr;
}

ValueId hand_over(UpgradeContext& c, size_t index, ValueId v) {
  auto& out = c.node().outputs;
  if (index >= out.size() || !out[index]) return v;
  ValueId wanted = out[index];
  c.graph.set_output(c.graph.value(v).producer, 0, wanted);
  return wanted;
}

OpDef rewritten(std::string name, int min_inputs, int max_inputs, Types types, Status (*upgrade)(UpgradeContext&)) {
  OpDef d;
  d.name = std::move(name);
  d.min_inputs = min_inputs, d.max_inputs = max_inputs;
  d.doc = "rewritten on import";
  d.types = types;
  // A node that is still there after import is our bug; inference says so.
  d.infer = [](InferContext& c) -> Status { return c.fail("it should have been rewritten on import"); };
  d.upgrade = upgrade;
  return d;
}

Error upgrade_error(const UpgradeContext& c, std::string why) {
  return node_error(code::kUnsupportedOp, c.node().name, format("{}: {}", c.node().op, why));
}

}  // namespace ge::ops
