#include "import/structure.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "import/proto_writer.h"

namespace ge::onnx {
namespace {

using namespace ge::test;
using testing::ElementsAre;
using testing::HasSubstr;

Result<GraphProto> checked(const GraphArgs& a) {
  static std::vector<Message> kept;  // names are copied, but tensor data would be spans
  kept.push_back(model(graph(a)));
  GE_TRY(auto m, parse_model(kept.back().bytes()));
  GE_RETURN_IF_ERROR(check_structure(m.graph));
  return std::move(m.graph);
}
std::vector<std::string> order(const Result<GraphProto>& g) {
  if (!g.ok()) return {g.error().text()};
  std::vector<std::string> out;
  for (auto& n : g->nodes) out.push_back(n.outputs[0]);
  return out;
}
std::string refusal(const GraphArgs& a) {
  auto g = checked(a);
  EXPECT_FALSE(g.ok());
  if (g.ok()) return "";
  EXPECT_EQ(g.error().code, code::kBadGraph);
  return g.error().text();
}

TEST(Structure, SortsOnlyWhenItMust) {
  auto in = std::vector{floats("x")}, out = std::vector{floats("d")};
  auto g = checked(
      {.nodes = {node("N", {"x"}, {"b"}), node("N", {"x"}, {"a"}), node("N", {"a", "b"}, {"d"})},
       .inputs = in,
       .outputs = out});
  EXPECT_THAT(order(g), ElementsAre("b", "a", "d"));
  g = checked(
      {.nodes = {node("N", {"a", "b"}, {"d"}), node("N", {"x"}, {"b"}), node("N", {"b"}, {"a"})},
       .inputs = in,
       .outputs = out});
  EXPECT_THAT(order(g), ElementsAre("b", "a", "d"));
}

TEST(Structure, SortsByWhatNestedGraphsRead) {
  auto branch = graph({.nodes = {node("N", {"late"}, {"u"})}, .outputs = {floats("u")}});
  auto g = checked({.nodes = {node("If", {"x"}, {"y"}, {.attrs = {attr_graph("then", branch)}}),
                              node("N", {"x"}, {"late"})},
                    .inputs = {floats("x")},
                    .outputs = {floats("y")}});
  EXPECT_THAT(order(g), ElementsAre("late", "y"));
}

TEST(Structure, CycleIsNamed) {
  std::string text = refusal({.nodes = {node("Add", {"x", "b"}, {"a"}, {.name = "first"}),
                                        node("Relu", {"a"}, {"b"}), node("Neg", {"b"}, {"y"})},
                              .inputs = {floats("x")},
                              .outputs = {floats("y")}});
  EXPECT_THAT(text,
              HasSubstr("cycle: \"first\" (test.Add) -> 1 (test.Relu) -> \"first\" (test.Add)"));
  EXPECT_THAT(refusal({.nodes = {node("Add", {"y"}, {"y"})}, .outputs = {floats("y")}}),
              HasSubstr("cycle"));
  // Through a branch that reads the result of its own If.
  auto branch = graph({.nodes = {node("N", {"y"}, {"u"})}, .outputs = {floats("u")}});
  EXPECT_THAT(refusal({.nodes = {node("If", {"x"}, {"y"}, {.attrs = {attr_graph("then", branch)}})},
                       .inputs = {floats("x")},
                       .outputs = {floats("y")}}),
              HasSubstr("cycle"));
}

TEST(Structure, DanglingInputNamesNodeAndValue) {
  std::string text = refusal({.nodes = {node("Add", {"x", "w"}, {"y"}, {.name = "add1"})},
                              .inputs = {floats("x")},
                              .outputs = {floats("y")}});
  EXPECT_THAT(text, HasSubstr("Node \"add1\" (test.Add) reads value \"w\""));
  auto branch = graph({.nodes = {node("N", {"w"}, {"u"})}, .outputs = {floats("u")}});
  text = refusal(
      {.nodes = {node("If", {"x"}, {"y"}, {.name = "if1", .attrs = {attr_graph("then", branch)}})},
       .inputs = {floats("x")},
       .outputs = {floats("y")}});
  EXPECT_THAT(text, HasSubstr("\"w\""));
  EXPECT_THAT(text, HasSubstr("then of node \"if1\""));
}

TEST(Structure, OneDefinitionEach) {
  auto y = std::vector{floats("y")};
  EXPECT_THAT(refusal({.nodes = {node("N", {}, {"y"}), node("M", {}, {"y"})}, .outputs = y}),
              HasSubstr("more than once"));
  EXPECT_THAT(refusal({.nodes = {node("N", {}, {"y", "y"})}, .outputs = y}),
              HasSubstr("more than once"));
  EXPECT_THAT(refusal({.nodes = {node("N", {}, {"y"})}, .inputs = {floats("y")}, .outputs = y}),
              HasSubstr("more than once"));
  EXPECT_THAT(refusal({.inputs = {floats("y"), floats("y")}, .outputs = y}),
              HasSubstr("more than once"));
  auto w = raw_tensor("y", 1, {}, raw<float>({1}));
  EXPECT_THAT(refusal({.outputs = y, .initializers = {w, w}}), HasSubstr("more than once"));
  EXPECT_THAT(refusal({.nodes = {node("N", {}, {"y"})}, .outputs = y, .initializers = {w}}),
              HasSubstr("more than once"));
  // An initializer with the name of an input is that input's default; node names may repeat.
  EXPECT_TRUE(checked({.inputs = {floats("y")}, .outputs = y, .initializers = {w}}).ok());
  EXPECT_TRUE(
      checked({.nodes = {node("N", {}, {"a"}, {.name = "n"}), node("N", {}, {"y"}, {.name = "n"})},
               .outputs = y})
          .ok());
}

TEST(Structure, Outputs) {
  EXPECT_THAT(refusal({.nodes = {node("N", {}, {"y"})}}), HasSubstr("no outputs"));
  EXPECT_THAT(refusal({.nodes = {node("N", {}, {"y"})}, .outputs = {floats("z")}}),
              HasSubstr("Output \"z\""));
  EXPECT_THAT(refusal({.nodes = {node("N", {}, {"y"})}, .outputs = {floats("")}}),
              HasSubstr("no name"));
  EXPECT_THAT(refusal({.nodes = {node("N", {}, {"y"})}, .outputs = {floats("y"), floats("y")}}),
              HasSubstr("two outputs"));
  EXPECT_TRUE(checked({.inputs = {floats("x")}, .outputs = {floats("x")}}).ok());
}

TEST(Structure, OptionalOnesMayBeAbsent) {
  EXPECT_TRUE(checked({.nodes = {node("N", {"", "x", ""}, {"", "y"}), node("N", {"", ""}, {""})},
                       .inputs = {floats("x")},
                       .outputs = {floats("y")}})
                  .ok());
}

TEST(Structure, InnerNamesHideOuterOnes) {
  auto body = graph({.nodes = {node("Add", {"b", "x"}, {"o"})},
                     .inputs = {floats("b")},
                     .outputs = {floats("o")}});
  auto g = checked({.nodes = {node("Loop", {"x"}, {"y"}, {.attrs = {attr_graph("body", body)}})},
                    .inputs = {floats("x"), floats("b")},
                    .outputs = {floats("y")}});
  ASSERT_TRUE(g.ok()) << g.error().text();
  EXPECT_THAT(captures(g->nodes[0].attributes[0].graphs[0]), ElementsAre("x"));
}

TEST(Structure, CapturesReachThroughTwoGraphs) {
  auto inner = graph({.nodes = {node("N", {"far", "near"}, {"u"})}, .outputs = {floats("u")}});
  auto outer = graph({.nodes = {node("N", {"z"}, {"near"}),
                                node("If", {}, {"v"}, {.attrs = {attr_graph("then", inner)}})},
                      .outputs = {floats("v")}});
  auto g = checked({.nodes = {node("If", {}, {"y"}, {.attrs = {attr_graph("then", outer)}})},
                    .inputs = {floats("z"), floats("far")},
                    .outputs = {floats("y")}});
  ASSERT_TRUE(g.ok()) << g.error().text();
  EXPECT_THAT(captures(g->nodes[0].attributes[0].graphs[0]), ElementsAre("z", "far"));
}

TEST(Structure, ManyNodesAreFast) {
  std::vector<Message> nodes;
  for (int i = 20000; i-- > 0;)
    nodes.push_back(node("N", {i ? format("v{}", i - 1) : "x"}, {format("v{}", i)}));
  auto g = checked({.nodes = nodes, .inputs = {floats("x")}, .outputs = {floats("v19999")}});
  ASSERT_TRUE(g.ok());
  EXPECT_EQ(g->nodes[0].outputs[0], "v0");
  EXPECT_EQ(g->nodes[19999].outputs[0], "v19999");
}

}  // namespace
}  // namespace ge::onnx
