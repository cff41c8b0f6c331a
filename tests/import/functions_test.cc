#include "import/functions.h"

#include <gmock/gmock.h>

#include <set>

#include "base/text.h"
#include "import/proto_writer.h"
#include "import/structure.h"

namespace ge::onnx {
namespace {

using namespace ge::test;
using testing::ElementsAre;
using testing::HasSubstr;

Result<ModelProto> inlined(const Message& m) {
  GE_TRY(auto model, parse_model(m.bytes()));
  GE_RETURN_IF_ERROR(inline_functions(model));
  GE_RETURN_IF_ERROR(check_structure(model.graph));
  return model;
}

std::string line(const NodeProto& n) {
  std::string s = join(n.outputs, ",") + " = " + n.op_type + "@" + std::to_string(n.opset) + "(" +
                  join(n.inputs, ",") + ")";
  for (auto& a : n.attributes) {
    s += " " + a.name + "=" + std::to_string(a.i);
    for (auto& g : a.graphs) {
      s += "{";
      for (auto& inner : g.nodes) s += line(inner) + ";";
      s += "}->";
      for (auto& o : g.outputs) s += o.name;
    }
  }
  return s;
}
std::vector<std::string> lines(const Result<ModelProto>& m) {
  if (!m.ok()) return {m.error().text()};
  std::vector<std::string> out;
  for (auto& n : m->graph.nodes) out.push_back(line(n));
  return out;
}

Message call(const std::string& f, std::vector<std::string> in, std::vector<std::string> out,
             NodeArgs a = {}) {
  a.domain = "local";
  return node(f, in, out, a);
}
Message main_graph(std::vector<Message> nodes, std::vector<std::string> outputs = {"y"}) {
  std::vector<Message> infos;
  for (auto& o : outputs) infos.push_back(floats(o));
  return graph({.nodes = std::move(nodes), .inputs = {floats("x")}, .outputs = infos});
}

TEST(Functions, CalledTwiceGetsNamesOfItsOwn) {
  auto f = function({.name = "f",
                     .inputs = {"a"},
                     .outputs = {"o"},
                     .nodes = {node("Neg", {"a"}, {"t"}), node("Abs", {"t"}, {"o"})}});
  auto m = inlined(model(
      main_graph({call("f", {"x"}, {"m"}, {.name = "c"}), call("f", {"m"}, {"y"}, {.name = "c"})}),
      {f}));
  EXPECT_THAT(lines(m), ElementsAre("c/t = Neg@3(x)", "m = Abs@3(c/t)", "c/t.1 = Neg@3(m)",
                                    "y = Abs@3(c/t.1)"));
  EXPECT_TRUE(m->functions.empty());
}

TEST(Functions, NamesOfTheGraphAreNotTaken) {
  auto f = function({.name = "f",
                     .inputs = {"a"},
                     .outputs = {"o"},
                     .nodes = {node("Neg", {"a"}, {"t"}), node("Abs", {"t"}, {"o"})}});
  auto m =
      inlined(model(main_graph({node("Neg", {"x"}, {"f/t"}), call("f", {"f/t"}, {"y"})}), {f}));
  EXPECT_THAT(lines(m), ElementsAre("f/t = Neg@3(x)", "f/t.1 = Neg@3(f/t)", "y = Abs@3(f/t.1)"));
}

TEST(Functions, NestedWithTheirOwnOpsets) {
  auto g = function({.name = "g",
                     .inputs = {"a"},
                     .outputs = {"o"},
                     .nodes = {node("Neg", {"a"}, {"o"})},
                     .opsets = {opset("test", 2)}});
  auto f = function({.name = "f",
                     .inputs = {"a"},
                     .outputs = {"o"},
                     .nodes = {call("g", {"a"}, {"t"}), node("Abs", {"t"}, {"o"}),
                               node("Relu", {"t"}, {"u"}, {.domain = ""})},
                     .opsets = {opset("", 9)}});  // test: the model's
  auto m = inlined(model(main_graph({call("f", {"x"}, {"y"})}), {f, g}));
  EXPECT_THAT(lines(m), ElementsAre("f/t = Neg@2(x)", "y = Abs@3(f/t)", "f/u = Relu@9(f/t)"));
}

TEST(Functions, AttributesGivenDefaultedAndLeftOut) {
  auto f = function({.name = "f",
                     .inputs = {"a"},
                     .outputs = {"o"},
                     .attributes = {"p", "q"},
                     .defaults = {attr_int("d", 7)},
                     .nodes = {node("Op", {"a"}, {"o"},
                                    {.attrs = {attr_ref("k", "p", 2), attr_ref("l", "q", 2),
                                               attr_ref("m", "d", 2), attr_int("n", 1)}})}});
  auto m = inlined(
      model(main_graph({call("f", {"x"}, {"t"}, {.attrs = {attr_int("p", 5)}}),
                        call("f", {"t"}, {"y"}, {.attrs = {attr_int("d", 8), attr_int("q", 9)}})}),
            {f}));
  EXPECT_THAT(lines(m), ElementsAre("t = Op@3(x) k=5 m=7 n=1", "y = Op@3(t) l=9 m=8 n=1"));
  // Of another type than the body says.
  auto wrong =
      inlined(model(main_graph({call("f", {"x"}, {"y"}, {.attrs = {attr_float("p", 5)}})}), {f}));
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().text(), HasSubstr("is INT, but the call gives FLOAT"));
  // Through two functions.
  auto g = function({.name = "g",
                     .inputs = {"a"},
                     .outputs = {"o"},
                     .attributes = {"r"},
                     .nodes = {call("f", {"a"}, {"o"}, {.attrs = {attr_ref("p", "r", 2)}})}});
  m = inlined(model(main_graph({call("g", {"x"}, {"y"}, {.attrs = {attr_int("r", 3)}})}), {f, g}));
  EXPECT_THAT(lines(m), ElementsAre("y = Op@3(x) k=3 m=7 n=1"));
}

TEST(Functions, OverloadsAreApart) {
  auto f = [](std::string overload, std::string op) {
    return function({.name = "f",
                     .overload = overload,
                     .inputs = {"a"},
                     .outputs = {"o"},
                     .nodes = {node(op, {"a"}, {"o"})}});
  };
  auto m = inlined(
      model(main_graph({call("f", {"x"}, {"t"}, {.overload = "two"}), call("f", {"t"}, {"y"})}),
            {f("", "One"), f("two", "Two")}));
  EXPECT_THAT(lines(m), ElementsAre("t = Two@3(x)", "y = One@3(t)"));
  auto twice = inlined(model(main_graph({}, {"x"}), {f("", "One"), f("", "Two")}));
  ASSERT_FALSE(twice.ok());
  EXPECT_THAT(twice.error().text(), HasSubstr("local.f twice"));
}

TEST(Functions, NestedGraphsAreRenamedWithTheBody) {
  // The branch reads the function's t and x, where x is a formal name that means "m" of the caller.
  auto branch = graph({.nodes = {node("Add", {"x", "t"}, {"u"})}, .outputs = {floats("u")}});
  auto other = graph({.outputs = {floats("t")}});
  auto f = function(
      {.name = "f",
       .inputs = {"x", "c"},
       .outputs = {"o"},
       .nodes = {node("Neg", {"x"}, {"t"}),
                 node("If", {"c"}, {"o"},
                      {.attrs = {attr_graph("then", branch), attr_graph("else", other)}})}});
  auto m =
      inlined(model(main_graph({node("Abs", {"x"}, {"m"}), call("f", {"m", "x"}, {"y"})}), {f}));
  EXPECT_THAT(lines(m), ElementsAre("m = Abs@3(x)", "f/t = Neg@3(m)",
                                    "y = If@3(x) then=0{f/u = Add@3(m,f/t);}->f/u else=0{f/t.out = "
                                    "Identity@13(f/t);}->f/t.out"));
}

TEST(Functions, AGraphGivenAsAttributeBelongsToTheCaller) {
  // "t" in the graph is the caller's, although the function has a t as well; its ops have the
  // caller's opset.
  auto body = graph({.nodes = {node("Abs", {"t"}, {"b"})}, .outputs = {floats("b")}});
  auto f = function({.name = "f",
                     .inputs = {"a"},
                     .outputs = {"o"},
                     .attributes = {"body"},
                     .nodes = {node("Neg", {"a"}, {"t"}),
                               node("Run", {"t"}, {"o"}, {.attrs = {attr_ref("g", "body", 5)}})},
                     .opsets = {opset("test", 2)}});
  auto m =
      inlined(model(main_graph({node("Neg", {"x"}, {"t"}),
                                call("f", {"x"}, {"y"}, {.attrs = {attr_graph("body", body)}})}),
                    {f}));
  EXPECT_THAT(lines(m), ElementsAre("t = Neg@3(x)", "f/t = Neg@2(x)",
                                    "y = Run@2(f/t) g=0{b = Abs@3(t);}->b"));
}

TEST(Functions, CallsInsideNestedGraphs) {
  auto f = function(
      {.name = "f", .inputs = {"a"}, .outputs = {"o"}, .nodes = {node("Neg", {"a"}, {"o"})}});
  auto branch = graph({.nodes = {call("f", {"x"}, {"u"})}, .outputs = {floats("u")}});
  auto m = inlined(
      model(main_graph({node("If", {"x"}, {"y"}, {.attrs = {attr_graph("then", branch)}})}), {f}));
  EXPECT_THAT(lines(m), ElementsAre("y = If@3(x) then=0{u = Neg@3(x);}->u"));
}

TEST(Functions, InputsHandedOnAndOptionalOnesLeftOut) {
  auto f = function({.name = "f",
                     .inputs = {"a", "b"},
                     .outputs = {"a", "o"},
                     .nodes = {node("Op", {"a", "b"}, {"o"})}});
  auto m = inlined(model(
      main_graph({call("f", {"x"}, {"p", "y"}), node("Use", {"p"}, {"z"})}, {"y", "z"}), {f}));
  EXPECT_THAT(lines(m), ElementsAre("p = Identity@17(x)", "y = Op@3(x,)", "z = Use@3(p)"));
  // An output that the caller does not want.
  m = inlined(model(main_graph({call("f", {"x", "x"}, {"", "y"})}), {f}));
  EXPECT_THAT(lines(m), ElementsAre("f/a = Identity@17(x)", "y = Op@3(x,x)"));
}

TEST(Functions, RecursionNamesTheCycle) {
  auto f = function(
      {.name = "f", .inputs = {"a"}, .outputs = {"o"}, .nodes = {call("h", {"a"}, {"o"})}});
  auto h = function(
      {.name = "h", .inputs = {"a"}, .outputs = {"o"}, .nodes = {call("f", {"a"}, {"o"})}});
  auto start = function(
      {.name = "s", .inputs = {"a"}, .outputs = {"o"}, .nodes = {call("f", {"a"}, {"o"})}});
  auto m = inlined(model(main_graph({call("s", {"x"}, {"y"})}), {f, h, start}));
  ASSERT_FALSE(m.ok());
  EXPECT_EQ(m.error().code, code::kBadGraph);
  EXPECT_THAT(m.error().message, HasSubstr("local.f -> local.h -> local.f."));
  EXPECT_THAT(m.error().message, testing::Not(HasSubstr("local.s ->")));
}

TEST(Functions, GrowthAndDepthAreBounded) {
  // Each calls the one before twice: 2^40 nodes.
  std::vector<Message> bomb = {function(
      {.name = "f0", .inputs = {"a"}, .outputs = {"o"}, .nodes = {node("Neg", {"a"}, {"o"})}})};
  std::vector<Message> chain = bomb;
  for (int i = 1; i <= 1000; ++i) {
    std::string name = format("f{}", i), before = format("f{}", i - 1);
    chain.push_back(function(
        {.name = name, .inputs = {"a"}, .outputs = {"o"}, .nodes = {call(before, {"a"}, {"o"})}}));
    if (i <= 40)
      bomb.push_back(function({.name = name,
                               .inputs = {"a"},
                               .outputs = {"o"},
                               .nodes = {call(before, {"a"}, {"t"}), call(before, {"t"}, {"o"})}}));
  }
  auto m = inlined(model(main_graph({call("f40", {"x"}, {"y"})}), bomb));
  ASSERT_FALSE(m.ok());
  EXPECT_EQ(m.error().code, code::kTooLarge);
  m = inlined(model(main_graph({call("f1000", {"x"}, {"y"})}), chain));
  ASSERT_FALSE(m.ok());
  EXPECT_THAT(m.error().message, HasSubstr("nested deeper"));
  EXPECT_TRUE(inlined(model(main_graph({call("f100", {"x"}, {"y"})}), chain)).ok());
}

TEST(Functions, BrokenBodies) {
  auto refused = [](FunctionArgs a, std::vector<std::string> in = {"x"}) {
    a.name = "f";
    if (a.inputs.empty()) a.inputs = {"a"};
    if (a.outputs.empty()) a.outputs = {"o"};
    auto m = inlined(model(main_graph({call("f", in, {"y"})}), {function(a)}));
    EXPECT_FALSE(m.ok());
    return m.ok() ? "" : m.error().text();
  };
  EXPECT_THAT(refused({.nodes = {node("Neg", {"x"}, {"o"})}}),
              HasSubstr("which the function does not define"));
  EXPECT_THAT(refused({.nodes = {node("Neg", {"a"}, {"t"})}}),
              HasSubstr("does not compute its output \"o\""));
  EXPECT_THAT(refused({.nodes = {node("Neg", {"a"}, {"o"}), node("Neg", {"a"}, {"o"})}}),
              HasSubstr("\"o\" twice"));
  EXPECT_THAT(refused({.nodes = {node("Neg", {"o"}, {"o"})}}), HasSubstr("cycle"));
  EXPECT_THAT(refused({.inputs = {"a", "a"}, .nodes = {node("Neg", {"a"}, {"o"})}}),
              HasSubstr("\"a\" twice"));
  EXPECT_THAT(refused({.nodes = {node("Neg", {"a"}, {"o"})}}, {"x", "x"}), HasSubstr("2 inputs"));
  EXPECT_THAT(refused({.nodes = {node("Neg", {"a"}, {"o"}, {.attrs = {attr_ref("k", "z", 2)}})}}),
              HasSubstr("does not have"));
  auto m =
      inlined(model(main_graph({node("Neg", {"x"}, {"y"}, {.attrs = {attr_ref("k", "z", 2)}})})));
  ASSERT_FALSE(m.ok());
  EXPECT_THAT(m.error().text(), HasSubstr("outside a function"));
}

TEST(Opsets, MissingAndContradicting) {
  auto g = main_graph({node("Neg", {"x"}, {"t"}, {.domain = ""}),
                       node("Op", {"t"}, {"y"}, {.domain = "com.custom"})});
  auto m = inlined(model(g, {}, {opset("", 17)}));
  EXPECT_THAT(lines(m), ElementsAre("t = Neg@17(x)", "y = Op@1(t)"));
  EXPECT_TRUE(inlined(model(g, {}, {opset("", 17), opset("ai.onnx", 17)})).ok());
  for (auto& imports :
       std::vector<std::vector<Message>>{{}, {opset("", 17), opset("ai.onnx", 18)}, {opset("", 0)}})
    EXPECT_FALSE(inlined(model(g, {}, imports)).ok());
}

}  // namespace
}  // namespace ge::onnx
