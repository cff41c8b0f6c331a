// SequenceMap: a nested graph for every tensor of a sequence. It becomes a Loop that reads the entries of its
// sequences and appends to those that it makes.
#include "base/text.h"
#include "ops/infer.h"
#include "ops/sequence.h"
#include "ops/subgraph.h"

namespace ge::ops {
namespace {

size_t capture_count(const Node& n) { return static_cast<size_t>(attr_int(n, "captures", 0)); }

Status infer(InferContext& c) {
  GE_TRY(auto body, require_nested(c, "body"));
  if (c.node.inputs.size() <= capture_count(c.node) || body->inputs.size() != c.node.inputs.size())
    return c.fail(format("its graph takes {} values, but the node gives it {}", body->inputs.size(), c.node.inputs.size()));
  if (c.out.size() > body->outputs.size()) return c.fail(format("its graph gives {} outputs instead of {}", body->outputs.size(), c.out.size()));
  size_t given = c.node.inputs.size() - capture_count(c.node);
  Border border(c.graph, *body);
  for (size_t i = 0; i < given; ++i) {
    if (!c.has(static_cast<int>(i))) return c.fail(format("input {} is missing", i));
    const Type& t = c.type(static_cast<int>(i));
    if (t.kind == ir::TypeKind::tensor && i > 0) {
      body->value(body->inputs[i]).type = border.enter(t, i);
      continue;
    }
    if (t.kind != ir::TypeKind::sequence) return c.fail(format("input {} is {}, no sequence", i, text(t)));
    body->value(body->inputs[i]).type = element_of(t, [&](size_t k) {
      auto symbol = format("{}entry{}.d{}", body->scope, i, k);
      body->symbols.emplace(symbol, ir::SymbolInfo{});
      return Dim::symbol(symbol);
    });
  }
  set_captures(c, border, *body, given, given);
  GE_RETURN_IF_ERROR(ops::infer(*body).context(format("the graph of {}", c.node.name)));
  for (size_t i = 0; i < c.out.size(); ++i) {
    const Type& t = body->value(body->outputs[i]).type;
    if (t.kind != ir::TypeKind::tensor) return c.fail(format("output {} of its graph is {}, no tensor", i, text(t)));
    c.out[i] = either_element(empty_sequence(t.dtype), t);
    for (auto& d : c.out[i].dims)
      if (!d.known()) d = Dim::symbol("any");
  }
  return ok();
}

std::shared_ptr<Graph> loop_body(const Graph& g, const Node& n, const Graph& body) {
  auto loop = std::make_shared<Graph>();
  loop->name = body.name + ".loop";
  ValueId at = loop->add_input("at", Type::tensor(DType::i64, {})), go = loop->add_input("go", Type::tensor(DType::boolean, {}));
  std::vector<ValueId> made, in, out;
  for (ValueId v : body.outputs) made.push_back(loop->add_input("made", empty_sequence(body.value(v).type.dtype)));
  for (ValueId v : n.inputs) in.push_back(loop->add_input(v ? g.value(v).name : "none", v ? g.value(v).type : Type{}));
  ValueId on = loop->add_value("on", Type::tensor(DType::boolean, {}));
  NodeId first = loop->add_node("Identity", {go}, {on});
  for (size_t i = 0; i + capture_count(n) < n.inputs.size(); ++i) {
    if (g.value(n.inputs[i]).type.kind != ir::TypeKind::sequence) continue;
    ValueId entry = loop->add_value("entry", body.value(body.inputs[i]).type);
    loop->add_node("SequenceAt", {in[i], at}, {entry});
    in[i] = entry;
  }
  auto results = put_in(*loop, body, in, first);
  loop->add_graph_output(on, "on");
  for (size_t i = 0; i < results.size(); ++i) {
    ValueId longer = loop->add_value(body.output_names[i], {});
    loop->add_node("SequenceInsert", {made[i], results[i]}, {longer});
    loop->add_graph_output(longer, body.output_names[i]);
  }
  return loop;
}

Result<bool> expand(UpgradeContext& c) {
  Graph& g = c.graph;
  auto body = nested(c.node(), "body");
  std::vector<ValueId> given = c.node().inputs;
  auto loop = loop_body(g, c.node(), *body);
  NodeId length = g.insert("SequenceLength", {given[0]}, {Type::tensor(DType::i64, {})}, {}, c.id);
  std::vector<ValueId> inputs{g.node(length).outputs[0], {}};
  for (ValueId v : body->outputs) {
    DType t = body->value(v).type.dtype;
    NodeId empty = g.insert("SequenceEmpty", {}, {empty_sequence(t)}, {{"dtype", static_cast<int64_t>(t)}}, c.id);
    inputs.push_back(g.node(empty).outputs[0]);
  }
  inputs.insert(inputs.end(), given.begin(), given.end());
  for (size_t i = 0; i < given.size(); ++i) g.set_input(c.id, static_cast<int>(i), {});
  c.node().inputs.clear();
  for (ValueId v : inputs) g.add_node_input(c.id, v);
  c.node().op = "Loop";
  c.node().attrs = {{"body", loop}, {"captures", static_cast<int64_t>(given.size())}};
  return true;
}

const Register r(OpDef{.name = "SequenceMap",
                       .min_inputs = 1,
                       .max_inputs = -1,
                       .max_outputs = -1,
                       .since = 17,
                       .attrs = {{"body", "What runs for each entry."}},
                       .unit = kernels::Unit::host,
                       .doc = "A graph for every tensor of a sequence.",
                       .infer = infer,
                       .expand = expand,
                       .foldable = false});

}  // namespace
}  // namespace ge::ops
