#include "import/onnx.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>

#include "base/text.h"
#include "import/proto_writer.h"
#include "ir/verify.h"
#include "ops/op.h"

namespace ge {
namespace {

using namespace ge::test;
using ir::Graph;
using ir::NodeId;
using ir::ValueId;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
namespace fs = std::filesystem;

ops::OpDef op(std::string name, int least, int most, int since = 1, int newest = 3) {
  ops::OpDef d;
  d.name = "test." + name;
  d.min_inputs = least;
  d.max_inputs = most;
  d.since = since;
  d.newest = newest;
  return d;
}
ops::OpDef with_upgrade(ops::OpDef d, Status (*upgrade)(ops::UpgradeContext&)) {
  d.upgrade = upgrade;
  return d;
}
ops::OpDef with_optional(ops::OpDef d, uint32_t inputs) {
  d.optional = inputs;
  return d;
}
// Before version 3: attribute `k`. Since then: input 1.
Status upgrade_scale(ops::UpgradeContext& c) {
  if (c.version >= 3) return ok();
  if (!ir::has_attr(c.node(), "k")) return node_error(code::kBadOp, c.node().name, "k is missing");
  c.attr_to_input("k", 1);
  return ok();
}
// Before version 3 the result was negated: a node is put behind it and all readers moved to it.
Status upgrade_negated(ops::UpgradeContext& c) {
  if (c.version >= 3) return ok();
  ValueId old = c.node().outputs[0];
  ValueId made = c.graph.add_value("raised", {});
  c.graph.replace_uses(old, made);
  c.graph.add_node("test.Neg", {old}, {made});
  return ok();
}

const ops::Register kOps[] = {
    ops::Register(op("Neg", 1, 1)),
    ops::Register(op("Add", 2, 2)),
    ops::Register(op("Clip", 1, 3)),
    ops::Register(op("Sum", 1, -1)),
    ops::Register(op("New", 0, 0, 3)),
    ops::Register(op("Gone", 0, 1, 1, 2)),
    ops::Register(with_upgrade(op("Scale", 2, 2), upgrade_scale)),
    ops::Register(with_upgrade(op("Negated", 1, 1), upgrade_negated)),
    ops::Register(op("If", 1, 1)),
    ops::Register(with_optional(op("Loop", 2, -1), 0b11)),
    ops::Register(op("Cases", 0, 0)),
};

Result<Graph> import(const Message& m, const ImportOptions& options = {}) {
  return import_onnx(m.file(), "", options);
}

std::string line(const Graph& g, NodeId id) {
  auto& n = g.node(id);
  auto names = [&](const std::vector<ValueId>& values) {
    std::vector<std::string> out;
    for (ValueId v : values) out.push_back(v ? g.value(v).name : "-");
    return join(out, ",");
  };
  return names(n.outputs) + " = " + n.op.substr(n.op[0] == 't' ? 5 : 0) + "(" + names(n.inputs) +
         ")";
}
std::vector<std::string> lines(const Graph& g) {
  EXPECT_TRUE(ir::verify(g).ok()) << ir::verify(g).error().text();
  std::vector<std::string> out;
  for (NodeId id : g.order()) out.push_back(line(g, id));
  return out;
}
std::vector<std::string> lines(const Result<Graph>& g) {
  if (!g.ok()) return {g.error().text()};
  return lines(*g);
}
std::vector<std::string> names(const Graph& g, const std::vector<ValueId>& values) {
  std::vector<std::string> out;
  for (ValueId v : values) out.push_back(g.value(v).name);
  return out;
}
const Tensor& constant(const Graph& g, std::string_view name) {
  ValueId v = g.find_value(name);
  EXPECT_TRUE(v && g.value(v).constant) << name;
  return *g.value(v).constant;
}
const Graph& nested(const Graph& g, NodeId id, std::string_view attr) {
  auto* inner = ir::attr_graph(g.node(id), attr);
  EXPECT_NE(inner, nullptr);
  return *inner;
}
std::string refusal(const Message& m, const ImportOptions& options = {}) {
  auto r = import(m, options);
  EXPECT_FALSE(r.ok());
  return r.ok() ? "" : r.error().text();
}
GraphArgs one(Message n, std::vector<Message> inputs = {floats("x")}) {
  return {.nodes = {std::move(n)}, .inputs = std::move(inputs), .outputs = {floats("y")}};
}

TEST(Import, NodesValuesAndAttributes) {
  Message n =
      node("Clip", {"x", "", "w"}, {"y"},
           {.name = "clip",
            .attrs = {attr_int("i", -3), attr_float("f", 0.5f), attr_string("s", "a"),
                      attr_tensor("t", raw_tensor("", 6, {1}, raw<int32_t>({9}))),
                      Message().text(1, "fs").text(7, raw<float>({1, 2})).varint(20, 6),
                      Message().text(1, "is").add(8, packed({1, -2})).varint(20, 7),
                      Message().text(1, "none").varint(20, 7),
                      Message().text(1, "ss").text(9, "a").text(9, "b").varint(20, 8),
                      Message().text(1, "tp").add(14, tensor_type(7, {"2"})).varint(20, 13)}});
  auto args = one(n);
  args.initializers = {raw_tensor("w", 1, {}, raw<float>({6}))};
  auto g = import(model(graph(args)));
  ASSERT_TRUE(g.ok()) << g.error().text();
  EXPECT_THAT(lines(g), ElementsAre("y = Clip(x,-,w)"));
  EXPECT_THAT(names(*g, g->inputs), ElementsAre("x"));
  EXPECT_THAT(g->output_names, ElementsAre("y"));
  auto& made = g->node(g->order()[0]);
  EXPECT_EQ(made.name, "clip");
  EXPECT_THAT(made.origin, ElementsAre("clip"));
  EXPECT_EQ(ir::attr_int(made, "i", 0), -3);
  EXPECT_EQ(ir::attr_float(made, "f", 0), 0.5);
  EXPECT_EQ(ir::attr_string(made, "s", ""), "a");
  EXPECT_EQ(ir::attr_tensor(made, "t")->as<int32_t>()[0], 9);
  EXPECT_THAT(ir::attr_floats(made, "fs"), ElementsAre(1, 2));
  EXPECT_THAT(ir::attr_ints(made, "is"), ElementsAre(1, -2));
  EXPECT_TRUE(ir::has_attr(made, "none"));
  EXPECT_THAT(ir::attr_strings(made, "ss"), ElementsAre("a", "b"));
  EXPECT_EQ(ir::attr_string(made, "tp", ""), "i64[?]");
  EXPECT_EQ(constant(*g, "w").as<float>()[0], 6);
}

TEST(Import, TrailingAbsentOnesAreDropped) {
  auto g = import(model(graph(one(node("Clip", {"x", "", ""}, {"y", ""})))));
  EXPECT_THAT(lines(g), ElementsAre("y = Clip(x)"));
}

TEST(Import, ConstantNodes) {
  auto constant_node = [](Message attr, std::string out) {
    return node("Constant", {}, {out}, {.domain = "", .attrs = {attr}});
  };
  GraphArgs args = {
      .nodes = {constant_node(attr_tensor("value", raw_tensor("", 1, {2}, raw<float>({1, 2}))),
                              "a"),
                constant_node(attr_int("value_int", 3), "b"),
                constant_node(attr_float("value_float", 4), "c"),
                constant_node(Message().text(1, "value_ints").add(8, packed({5, 6})).varint(20, 7),
                              "d"),
                constant_node(
                    Message().text(1, "value_floats").text(7, raw<float>({7})).varint(20, 6), "e"),
                constant_node(attr_string("value_string", "s"), "f"),
                constant_node(Message().text(1, "value_strings").text(9, "t").varint(20, 8), "h"),
                node("Sum", {"a", "b", "c", "d", "e", "f", "h"}, {"y"})},
      .outputs = {floats("y"), floats("a")}};
  auto g = import(model(graph(args)));
  EXPECT_THAT(lines(g), ElementsAre("y = Sum(a,b,c,d,e,f,h)"));
  EXPECT_EQ(constant(*g, "a").as<float>()[1], 2);
  EXPECT_EQ(constant(*g, "b").as<int64_t>()[0], 3);
  EXPECT_EQ(constant(*g, "b").rank(), 0);
  EXPECT_EQ(constant(*g, "c").as<float>()[0], 4);
  EXPECT_THAT(constant(*g, "d").dims(), ElementsAre(2));
  EXPECT_THAT(constant(*g, "e").dims(), ElementsAre(1));
  EXPECT_EQ(constant(*g, "f").strings()[0], "s");
  EXPECT_EQ(constant(*g, "h").strings()[0], "t");
  EXPECT_THAT(g->output_names, ElementsAre("y", "a"));  // a constant may be an output
  for (auto& bad : {attr_int("value_float", 3), attr_int("other", 3)})
    EXPECT_THAT(refusal(model(graph(one(constant_node(bad, "y"))))),
                HasSubstr("which a Constant cannot have"));
}

TEST(Import, DimensionsBecomeSymbols) {
  GraphArgs args = {
      .nodes = {node("Sum", {"a", "b", "c"}, {"y"})},
      .inputs = {floats("a", {"batch", "3", "", "-1"}), floats("b", {"batch", "?", "?", "0"}),
                 value("c", Message().add(1, Message().varint(1, 7))),
                 floats("d", {"s0*2", "s0", "s0*2"}), floats("e", {})},
      .outputs = {floats("y")}};
  auto g = import(model(graph(args)));
  ASSERT_TRUE(g.ok()) << g.error().text();
  auto type = [&](std::string_view name) -> const ir::Type& {
    return g->value(g->find_value(name)).type;
  };
  EXPECT_EQ(ir::text(type("a")), "f32[batch,3,a_dim2,a_dim3]");
  EXPECT_EQ(ir::text(type("b")), "f32[batch,b_dim1,b_dim2,0]");
  EXPECT_EQ(ir::text(type("c")), "i64[?]");
  EXPECT_EQ(ir::text(type("d")), "f32[s0_2,s0,s0_2]");
  EXPECT_EQ(ir::text(type("e")), "f32[]");
  EXPECT_EQ(g->symbols.size(), 7u);
  EXPECT_TRUE(g->symbols.count("batch"));
}

TEST(Import, FreshSymbolsDoNotTakeGivenNames) {
  GraphArgs args = {.nodes = {node("Add", {"a", "b"}, {"y"})},
                    .inputs = {floats("a", {""}), floats("b", {"a_dim0"})},
                    .outputs = {floats("y")}};
  auto g = import(model(graph(args)));
  ASSERT_TRUE(g.ok());
  EXPECT_EQ(ir::text(g->value(g->inputs[1]).type), "f32[a_dim0]");
  EXPECT_NE(ir::text(g->value(g->inputs[0]).type), "f32[a_dim0]");
}

TEST(Import, OtherTypes) {
  auto with = [](const Message& type) {
    return model(graph(one(node("Neg", {"x"}, {"y"}), {value("x", type)})));
  };
  auto sequence = Message().add(4, Message().add(1, tensor_type(7, {"3"})));
  auto g = import(with(sequence));
  ASSERT_TRUE(g.ok()) << g.error().text();
  EXPECT_EQ(ir::text(g->value(g->inputs[0]).type), "seq(i64[3])");
  g = import(with(Message().add(9, Message().add(1, tensor_type(1, {})))));
  ASSERT_TRUE(g.ok());
  EXPECT_EQ(ir::text(g->value(g->inputs[0]).type), "optional(f32[])");
  EXPECT_THAT(refusal(with(Message().add(5, Message().varint(1, 7)))),
              HasSubstr("\"x\" is of a map to other than tensors type"));
  g = import(with(Message().add(9, Message().add(1, sequence))));
  ASSERT_TRUE(g.ok());
  EXPECT_EQ(ir::text(g->value(g->inputs[0]).type), "optional(seq(i64[3]))");
  EXPECT_THAT(refusal(with(Message().add(9, Message().add(1, Message().add(9, Message().add(1, tensor_type(1, {}))))))),
              HasSubstr("nested optional"));
  EXPECT_THAT(refusal(with(Message().add(4, Message().add(1, sequence)))), HasSubstr("nested sequence"));
  EXPECT_THAT(refusal(with(Message())), HasSubstr("Value \"x\" has no type"));
  EXPECT_THAT(refusal(with(tensor_type(0, {}))), HasSubstr("has no element type"));
  EXPECT_THAT(refusal(with(Message().add(4, Message()))), HasSubstr("no element type"));
  // A value info without any type, as some exporters write it.
  EXPECT_THAT(refusal(model(graph(one(node("Neg", {"x"}, {"y"}), {Message().text(1, "x")})))),
              HasSubstr("no type"));
}

TEST(Import, InitializersThatAreInputs) {
  GraphArgs args = one(node("Add", {"x", "w"}, {"y"}), {floats("x"), floats("w")});
  args.initializers = {raw_tensor("w", 1, {2}, raw<float>({1, 2}))};
  auto g = import(model(graph(args)));
  ASSERT_TRUE(g.ok());
  EXPECT_THAT(names(*g, g->inputs), ElementsAre("x"));
  EXPECT_EQ(constant(*g, "w").as<float>()[1], 2);
  g = import(model(graph(args)), {.feed = {"w"}});
  ASSERT_TRUE(g.ok());
  EXPECT_THAT(names(*g, g->inputs), ElementsAre("x", "w"));
  EXPECT_FALSE(g->is_constant(g->inputs[1]));
  EXPECT_THAT(refusal(model(graph(args)), {.feed = {"ww"}}), HasSubstr("E10016"));
}

TEST(Import, AllUnsupportedOperatorsInOneError) {
  std::vector<Message> nodes;
  for (int i = 0; i < 7; ++i)
    nodes.push_back(node("Strange", {"x"}, {format("s{}", i)}, {.name = format("strange{}", i)}));
  auto branch =
      graph({.nodes = {node("Inner", {"x"}, {"u"}, {.name = "deep", .domain = "com.other"})},
             .outputs = {floats("u")}});
  nodes.push_back(node("If", {"x"}, {"y"}, {.attrs = {attr_graph("then", branch)}}));
  nodes.push_back(node("Gone", {}, {"z"}));
  nodes.push_back(node("Unheard", {}, {"v"}, {.domain = ""}));
  auto r =
      import(model(graph({.nodes = nodes, .inputs = {floats("x")}, .outputs = {floats("y")}})));
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, code::kUnsupportedOp);
  std::string text = r.error().message;
  EXPECT_THAT(text, HasSubstr("4 operators"));
  EXPECT_THAT(text, HasSubstr("test.Strange (opset 3) at strange0, strange1, strange2 and 4 more"));
  EXPECT_THAT(text, HasSubstr("com.other.Inner (opset 1) at deep"));
  EXPECT_THAT(text, HasSubstr("test.Gone (opset 3) at -> z: the operator is known up to opset 2"));
  EXPECT_THAT(text, HasSubstr("ai.onnx.Unheard (opset 17)"));
  EXPECT_THAT(text, Not(HasSubstr("test.If")));
}

TEST(Import, OpsetRange) {
  auto with = [](std::vector<Message> opsets, std::string op) {
    return model(graph(one(node(op, {"x"}, {"y"}))), {}, opsets);
  };
  EXPECT_THAT(refusal(with({opset("", 0), opset("test", 3)}, "Neg")),
              HasSubstr("opset 0 of ai.onnx; opsets 6 to 28"));
  EXPECT_THAT(refusal(with({opset("", 29), opset("test", 3)}, "Neg")), HasSubstr("opset 29"));
  EXPECT_TRUE(import(with({opset("", 6), opset("test", 3)}, "Neg")).ok());
  EXPECT_TRUE(import(with({opset("", 28), opset("test", 3)}, "Neg")).ok());
  EXPECT_TRUE(import(with({opset("test", 3)}, "Neg")).ok());
  EXPECT_THAT(refusal(with({opset("test", 2)}, "New")), HasSubstr("known from opset 3"));
  EXPECT_THAT(refusal(with({opset("test", 4)}, "Neg")), HasSubstr("known up to opset 3"));
}

TEST(Import, OlderFormsAreRaised) {
  auto old = std::vector{opset("test", 2)};
  auto g = import(
      model(graph(one(node("Scale", {"x"}, {"y"}, {.attrs = {attr_float("k", 2.5f)}}))), {}, old));
  ASSERT_TRUE(g.ok()) << g.error().text();
  auto& n = g->node(g->order()[0]);
  ASSERT_EQ(n.inputs.size(), 2u);
  EXPECT_EQ(g->value(n.inputs[1]).constant->as<float>()[0], 2.5f);
  EXPECT_TRUE(n.attrs.empty());
  EXPECT_THAT(refusal(model(graph(one(node("Scale", {"x"}, {"y"}, {.name = "sc"}))), {}, old)),
              HasSubstr("raising node \"sc\" from opset 2"));
  // The newest form without its second input.
  EXPECT_THAT(refusal(model(graph(one(node("Scale", {"x"}, {"y"}))))),
              HasSubstr("has 1 inputs; test.Scale takes 2"));
}

TEST(Import, RaisingMayPutAnotherValueInPlace) {
  GraphArgs args = {.nodes = {node("Negated", {"x"}, {"t"}), node("Neg", {"t"}, {"y"})},
                    .inputs = {floats("x")},
                    .outputs = {floats("y"), floats("t")}};
  auto g = import(model(graph(args), {}, {opset("test", 2)}));
  EXPECT_THAT(lines(g), ElementsAre("t = Negated(x)", "raised = Neg(t)", "y = Neg(raised)"));
  EXPECT_THAT(names(*g, g->outputs), ElementsAre("y", "raised"));
  EXPECT_THAT(g->output_names, ElementsAre("y", "t"));
}

TEST(Import, CountsOfInputsAndOutputs) {
  EXPECT_THAT(refusal(model(graph(one(node("Add", {"x"}, {"y"}, {.name = "a"}))))),
              HasSubstr("\"a\" (test.Add) has 1 inputs; test.Add takes 2"));
  EXPECT_THAT(refusal(model(graph(one(node("Neg", {"x", "x"}, {"y"}))))), HasSubstr("takes 1"));
  EXPECT_THAT(refusal(model(graph(one(node("Neg", {"x"}, {"y", "z"}))))), HasSubstr("2 outputs"));
  EXPECT_THAT(refusal(model(graph(one(node("Sum", {}, {"y"}))))), HasSubstr("at least 1"));
}

TEST(Import, OnlyOptionalInputsHaveNoName) {
  auto absent = [](const char* op) { return refusal(model(graph(one(node(op, {"", "x"}, {"y"}, {.name = "a"}))))); };
  EXPECT_THAT(absent("Add"), HasSubstr("\"a\" (test.Add) is not given its input 0"));
  EXPECT_THAT(absent("Clip"), HasSubstr("input 0"));
  EXPECT_EQ(lines(import(model(graph(one(node("Clip", {"x", "", "x"}, {"y"})))))).front(), "y = Clip(x,-,x)");
}

TEST(Import, WhatRaisingPutsBehindAMissingInputDoesNotStandForIt) {
  auto old = std::vector{opset("test", 2)};
  EXPECT_THAT(refusal(model(graph(one(node("Scale", {""}, {"y"}, {.name = "sc", .attrs = {attr_float("k", 2)}}))), {}, old)),
              HasSubstr("\"sc\" (test.Scale) is not given its input 0"));
}

TEST(Import, AnOlderScanNeedsSomethingToScan) {
  auto body = graph({.nodes = {node("Neg", {"e"}, {"s"})}, .inputs = {floats("e")}, .outputs = {floats("s")}});
  for (auto& inputs : std::vector<std::vector<std::string>>{{}, {""}, {"", ""}}) {
    auto text = refusal(model(graph(one(node("Scan", inputs, {"y"}, {.domain = "", .attrs = {attr_graph("body", body), attr_int("num_scan_inputs", 1)}}))), {}, {opset("", 8), opset("test", 3)}));
    EXPECT_THAT(text, HasSubstr("E14001"));
    EXPECT_THAT(text, HasSubstr("Scan"));
  }
}

TEST(Import, OperatorsThatPassesMakeAreNotAModels) {
  for (auto* domain : {"ge", ""}) {
    const std::string op = *domain ? "Fail" : "ge.Fail";
    EXPECT_THAT(refusal(model(graph(one(node(op, {}, {"y"}, {.domain = domain}))), {}, {opset("", 17), opset("ge", 1)})), HasSubstr("the operator is not known"));
  }
}

TEST(Import, BadAttributes) {
  auto with = [](std::vector<Message> attrs) {
    return model(graph(one(node("Neg", {"x"}, {"y"}, {.name = "n", .attrs = attrs}))));
  };
  EXPECT_THAT(refusal(with({attr_int("a", 1), attr_int("a", 2)})),
              HasSubstr("\"a\" of node \"n\" (test.Neg) is given twice"));
  EXPECT_THAT(refusal(with({Message().text(1, "a")})), HasSubstr("has no type"));
  EXPECT_THAT(refusal(with({attr_int("", 1)})), HasSubstr("no name"));
  EXPECT_THAT(refusal(with({Message().text(1, "a").varint(20, 4)})), HasSubstr("holds no tensor"));
  EXPECT_THAT(refusal(with({Message().text(1, "a").varint(20, 5)})), HasSubstr("holds no graph"));
  EXPECT_THAT(refusal(with({Message().text(1, "a").varint(20, 9)})),
              HasSubstr("TENSORS, which is not supported"));
  EXPECT_THAT(refusal(with({Message().text(1, "a").varint(20, 77)})), HasSubstr("not supported"));
}

TEST(Import, CapturesBecomeInputsInEveryBranch) {
  auto then = graph({.nodes = {node("Add", {"h", "w"}, {"p"})}, .outputs = {floats("p")}});
  auto other = graph({.nodes = {node("Add", {"k", "h"}, {"h2"}), node("Neg", {"h2"}, {"q"})},
                      .outputs = {floats("q")}});
  GraphArgs args = {
      .nodes = {node("Neg", {"x"}, {"h"}), node("Neg", {"x"}, {"k"}),
                node("If", {"c"}, {"y"},
                     {.attrs = {attr_graph("then", then), attr_graph("else", other)}})},
      .inputs = {floats("x"), floats("c")},
      .outputs = {floats("y")},
      .initializers = {raw_tensor("w", 1, {2}, raw<float>({1, 2}))}};
  auto g = import(model(graph(args)));
  EXPECT_THAT(lines(g), ElementsAre("h = Neg(x)", "k = Neg(x)", "y = If(c,h,k)"));
  NodeId id = g->order()[2];
  EXPECT_EQ(ir::attr_int(g->node(id), "captures", -1), 2);
  auto& a = nested(*g, id, "then");
  auto& b = nested(*g, id, "else");
  EXPECT_THAT(names(a, a.inputs), ElementsAre("h", "k"));
  EXPECT_THAT(names(b, b.inputs), ElementsAre("h", "k"));
  EXPECT_THAT(lines(a), ElementsAre("p = Add(h,w)"));
  EXPECT_THAT(lines(b), ElementsAre("h2 = Add(k,h)", "q = Neg(h2)"));
  // A captured constant is a constant there, with the same memory.
  EXPECT_EQ(constant(a, "w").data(), constant(*g, "w").data());
}

TEST(Import, ABranchMayUseACapturedNameForItself) {
  // One branch reads the outer h; the other one defines an h, and an initializer w, of its own.
  auto then = graph({.nodes = {node("Add", {"h", "w"}, {"p"})}, .outputs = {floats("p")}});
  auto other = graph({.nodes = {node("Neg", {"w"}, {"h"})},
                      .outputs = {floats("h")},
                      .initializers = {raw_tensor("w", 1, {1}, raw<float>({7}))}});
  GraphArgs args = {
      .nodes = {node("Neg", {"x"}, {"h"}), node("Neg", {"x"}, {"w"}),
                node("If", {"c"}, {"y"},
                     {.attrs = {attr_graph("then", then), attr_graph("else", other)}})},
      .inputs = {floats("x"), floats("c")},
      .outputs = {floats("y")}};
  auto g = import(model(graph(args)));
  EXPECT_THAT(lines(g), ElementsAre("h = Neg(x)", "w = Neg(x)", "y = If(c,h,w)"));
  auto& b = nested(*g, g->order()[2], "else");
  ASSERT_EQ(b.order().size(), 1u);
  auto& n = b.node(b.order()[0]);
  ASSERT_TRUE(b.is_constant(n.inputs[0]));
  EXPECT_EQ(b.value(n.inputs[0]).constant->as<float>()[0], 7);
  EXPECT_EQ(b.outputs[0], n.outputs[0]);
  EXPECT_EQ(b.inputs.size(), 2u);
}

TEST(Import, LoopKeepsItsPlacesAndHidesOuterNames) {
  auto body =
      graph({.nodes = {node("Add", {"b", "far"}, {"o"}), node("Neg", {"ci"}, {"co"})},
             .inputs = {Message().text(1, "i"), Message().text(1, "ci"), floats("b", {"n"})},
             .outputs = {floats("co"), floats("o")}});
  GraphArgs args = {
      .nodes = {node("Neg", {"b"}, {"far"}),
                node("Loop", {"n", "", "b"}, {"y"}, {.attrs = {attr_graph("body", body)}})},
      .inputs = {floats("n"), floats("b")},
      .outputs = {floats("y")}};
  auto g = import(model(graph(args)));
  EXPECT_THAT(lines(g), ElementsAre("far = Neg(b)", "y = Loop(n,-,b,far)"));
  auto& inner = nested(*g, g->order()[1], "body");
  EXPECT_THAT(names(inner, inner.inputs), ElementsAre("i", "ci", "b", "far"));
  EXPECT_THAT(lines(inner), ElementsAre("o = Add(b,far)", "co = Neg(ci)"));
  EXPECT_EQ(ir::text(inner.value(inner.inputs[2]).type), "f32[?]");
  // Fewer than two inputs: the captured one must not slip into the second place.
  args.nodes[1] = node("Loop", {"n"}, {"y"}, {.attrs = {attr_graph("body", body)}});
  EXPECT_THAT(lines(import(model(graph(args)))), ElementsAre("far = Neg(b)", "y = Loop(n,-,far)"));
}

TEST(Import, CapturesReachThroughTwoGraphs) {
  auto inner =
      graph({.nodes = {node("Sum", {"far", "near", "w"}, {"u"})}, .outputs = {floats("u")}});
  auto outer = graph({.nodes = {node("Neg", {"c"}, {"near"}),
                                node("If", {"c"}, {"v"}, {.attrs = {attr_graph("then", inner)}})},
                      .outputs = {floats("v")}});
  GraphArgs args = {.nodes = {node("Neg", {"x"}, {"far"}),
                              node("If", {"c"}, {"y"}, {.attrs = {attr_graph("then", outer)}})},
                    .inputs = {floats("x"), floats("c")},
                    .outputs = {floats("y")},
                    .initializers = {raw_tensor("w", 1, {1}, raw<float>({7}))}};
  auto g = import(model(graph(args)));
  EXPECT_THAT(lines(g), ElementsAre("far = Neg(x)", "y = If(c,c,far)"));
  auto& a = nested(*g, g->order()[1], "then");
  EXPECT_THAT(lines(a), ElementsAre("near = Neg(c)", "v = If(c,far,near)"));
  auto& b = nested(a, a.order()[1], "then");
  EXPECT_THAT(names(b, b.inputs), ElementsAre("far", "near"));
  EXPECT_THAT(lines(b), ElementsAre("u = Sum(far,near,w)"));
  EXPECT_EQ(constant(b, "w").as<float>()[0], 7);
}

TEST(Import, ListsOfGraphs) {
  auto a = graph({.nodes = {node("Neg", {"x"}, {"u"})}, .outputs = {floats("u")}});
  auto g = import(model(graph(
      one(node("Cases", {}, {"y"},
               {.attrs = {Message().text(1, "all").add(11, a).add(11, a).varint(20, 10)}})))));
  ASSERT_TRUE(g.ok()) << g.error().text();
  auto& attr = g->node(g->order()[0]).attrs.at("all");
  ASSERT_EQ(std::get<std::vector<std::shared_ptr<Graph>>>(attr).size(), 2u);
}

TEST(Import, FunctionsVanish) {
  auto f = function({.name = "f",
                     .inputs = {"a"},
                     .outputs = {"o"},
                     .nodes = {node("Constant", {}, {"three"},
                                    {.domain = "", .attrs = {attr_int("value_int", 3)}}),
                               node("Add", {"a", "three"}, {"o"})}});
  auto g = import(model(graph(one(node("f", {"x"}, {"y"}, {.domain = "local"}))), {f}));
  EXPECT_THAT(lines(g), ElementsAre("y = Add(x,f/three)"));
  EXPECT_EQ(constant(*g, "f/three").as<int64_t>()[0], 3);
}

TEST(Import, RefusesWhatItCannotKeep) {
  EXPECT_THAT(refusal(model(graph(one(node("Neg", {"x"}, {"y"})))).add(20, Message())),
              HasSubstr("training"));
  EXPECT_THAT(refusal(Message()), HasSubstr("empty"));
  auto args = one(node("Add", {"x", "w"}, {"y"}));
  args.initializers = {raw_tensor("w", 1, {1000000}, raw<float>({1}))};
  EXPECT_THAT(refusal(model(graph(args))), HasSubstr("Tensor \"w\""));
  args.initializers = {raw_tensor("w", 7, {1}, std::string(4096, '\0'))};
  EXPECT_THAT(refusal(model(graph(args))), HasSubstr("needs 8 bytes, its data have 4096"));
}

TEST(Import, FlippedBytesNeverCrash) {
  auto then = graph({.nodes = {node("Add", {"h", "w"}, {"p"})}, .outputs = {floats("p")}});
  auto f = function({.name = "f",
                     .inputs = {"a"},
                     .outputs = {"o"},
                     .attributes = {"k"},
                     .nodes = {node("Clip", {"a"}, {"t"}, {.attrs = {attr_ref("k", "k", 2)}}),
                               node("Neg", {"t"}, {"o"})}});
  GraphArgs args = {
      .nodes = {node("f", {"x"}, {"h"}, {.domain = "local", .attrs = {attr_int("k", 1)}}),
                node("If", {"c"}, {"y"}, {.attrs = {attr_graph("then", then)}})},
      .inputs = {floats("x", {"batch", "2"}), floats("c")},
      .outputs = {floats("y")},
      .initializers = {raw_tensor("w", 1, {2}, raw<float>({1, 2})),
                       tensor_head("i", 22, {3}).add(5, packed({1, 2}))}};
  std::string all = model(graph(args), {f}).str();
  ASSERT_TRUE(import(model(graph(args), {f})).ok());
  std::mt19937 random(11);
  int good = 0, bad = 0;
  for (int round = 0; round < 10000; ++round) {
    std::string s = all;
    for (int k = 0; k < 1 + round % 3; ++k) s[random() % s.size()] = static_cast<char>(random());
    auto r = import_onnx(MappedFile::from_bytes(std::as_bytes(std::span(s.data(), s.size()))), "");
    ++(r.ok() ? good : bad);
    if (r.ok()) {
      EXPECT_TRUE(ir::verify(*r).ok());
    }
  }
  EXPECT_GT(good, 100);
  EXPECT_GT(bad, 1000);
}

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "ge_onnx_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    auto args = one(node("Add", {"x", "w"}, {"y"}));
    Message w = tensor_head("w", 1, {2});
    w.add(13, Message().text(1, "location").text(2, "w.bin"))
        .add(13, Message().text(1, "offset").text(2, "4"))
        .varint(14, 1);
    args.initializers = {w};
    model_ = model(graph(args));
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& name, std::string_view data) {
    fs::create_directories((root_ / name).parent_path());
    ASSERT_TRUE(write_file((root_ / name).string(), data).ok());
  }
  Result<Graph> load(const std::string& name) { return import_onnx_file((root_ / name).string()); }

  fs::path root_;
  Message model_;
};

TEST_F(Files, ExternalDataBesideTheModel) {
  write("a/model.onnx", model_.str());
  EXPECT_THAT(load("a/model.onnx").error().text(), HasSubstr("E10410"));
  write("a/w.bin", raw<float>({1, 2, 3}));
  auto g = load("a/model.onnx");
  ASSERT_TRUE(g.ok()) << g.error().text();
  EXPECT_EQ(constant(*g, "w").as<float>()[1], 3);
  EXPECT_THAT(refusal(model_), HasSubstr("given as bytes"));
  EXPECT_TRUE(import_onnx(model_.file(), (root_ / "a").string()).ok());
}

TEST_F(Files, LinkedFromAStore) {
  write("blobs/1", model_.str());
  write("blobs/2", raw<float>({1, 2, 3}));
  fs::create_directories(root_ / "snapshot");
  fs::create_symlink("../blobs/1", root_ / "snapshot/model.onnx");
  fs::create_symlink("../blobs/2", root_ / "snapshot/w.bin");
  auto g = load("snapshot/model.onnx");
  ASSERT_TRUE(g.ok()) << g.error().text();
  // A model that is no link into that folder must not reach it.
  fs::remove(root_ / "snapshot/model.onnx");
  write("snapshot/model.onnx", model_.str());
  EXPECT_THAT(load("snapshot/model.onnx").error().text(), HasSubstr("leads out"));
}

TEST_F(Files, NoFile) {
  EXPECT_EQ(load("none.onnx").error().code, code::kNoFile);
  EXPECT_EQ(load("").error().code, code::kOpen);  // a folder
}

}  // namespace
}  // namespace ge
