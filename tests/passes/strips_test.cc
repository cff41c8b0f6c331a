// Chains on large maps run a strip of rows at a time and give what they gave as wholes.
#include <gtest/gtest.h>

#include "base/text.h"
#include "driver/compare.h"
#include "ir/print.h"
#include "passes/typed_graph.h"

namespace ge::passes {
namespace {

size_t tasks(const Compiled& c) { return c.package.model.programs[0]->tasks.size(); }

int count(const ir::Graph& g, std::string_view op) {
  int n = 0;
  for (auto id : g.order()) n += g.node(id).op == op;
  return n;
}

// Compiled in strips of 1 to 9 rows and as wholes: the same. always: and cut each time.
void same_in_strips(const std::string& text, const std::map<std::string, int64_t>& sizes = {}, bool always = true) {
  ir::Graph g = typed_graph(text);
  Options whole;
  whole.disabled.insert("strips");
  auto want = compile_graph(g, whole);
  ASSERT_TRUE(want.ok()) << want.error().text();
  for (int64_t rows : {1, 2, 3, 4, 5, 7, 9}) {
    Options o;
    o.strip_rows = rows;
    o.verify_ir = true;
    auto got = compile_graph(g, o);
    ASSERT_TRUE(got.ok()) << got.error().text();
    if (always) EXPECT_GT(tasks(*got), tasks(*want)) << rows << " rows";
    EXPECT_TRUE(agree(*got, *want, sizes, 1e-5)) << rows << " rows\n" << ir::print(optimize_graph(g, o)->graph);
  }
}

TEST(Strips, WindowsWithPadsStridesAndDilations) {
  same_in_strips(R"(graph main(%x: f32[1,3,23,19]) -> (%y) {
  %w: f32[8,3,3,3] = random(1)
  %v: f32[8,8,3,3] = random(2)
  %u: f32[8,8,5,3] = random(3)
  %a = Conv(%x, %w) {pads=[1,1,1,1]}
  %b = Relu(%a)
  %c = Conv(%b, %v) {pads=[2,1,0,1], dilations=[2,1]}
  %d = Conv(%c, %u) {pads=[1,1,3,1], strides=[2,1]}
  %y = LeakyRelu(%d)
})");
}

TEST(Strips, SkipsPoolsAndTransposedConvolutions) {
  same_in_strips(R"(graph main(%x: f32[n,3,26,20]) -> (%y, %small) {
  %w: f32[8,3,3,3] = random(1)
  %v: f32[16,8,3,3] = random(2)
  %t: f32[16,8,4,4] = random(3)
  %u: f32[4,16,3,3] = random(4)
  %a = Conv(%x, %w) {pads=[1,1,1,1]}
  %b = Relu(%a)
  %p = MaxPool(%b) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1], ceil_mode=1}
  %small = Conv(%p, %v) {pads=[1,1,1,1]}
  %up = ConvTranspose(%small, %t) {strides=[2,2], pads=[1,1,1,1], output_shape=[26,20]}
  %c = Concat(%up, %b) {axis=1}
  %d = Conv(%c, %u) {pads=[1,1,1,1]}
  %y = LeakyRelu(%d)
})", {{"n", 2}});
}

TEST(Strips, WindowsThatLeaveRowsOut) {
  same_in_strips(R"(graph main(%x: f32[1,4,79,6]) -> (%y) {
  %w: f32[4,4,1,1] = random(1)
  %v: f32[4,4,2,1] = random(2)
  %a = Conv(%x, %w) {strides=[1,1]}
  %b = Softsign(%a)
  %c = Conv(%b, %v) {strides=[5,1]}
  %y = AveragePool(%c) {kernel_shape=[2,1], strides=[1,1], pads=[1,0,1,0], count_include_pad=1}
})");
}

TEST(Strips, LastRowsThatReadPaddingAlone) {
  for (const char* pads : {"[0,0,3,3]", "[1,1,5,4]", "[0,0,4,0]"})
    same_in_strips(format(R"(graph main(%x: f32[1,4,24,18]) -> (%y) {{
  %w: f32[4,4,3,3] = random(1)
  %v: f32[4,4,3,3] = random(2)
  %a = Conv(%x, %w) {{pads=[1,1,1,1]}}
  %b = Softsign(%a)
  %c = Conv(%b, %v) {{pads={}}}
  %y = Softsign(%c)
}})", pads), {}, false);
}

TEST(Strips, ResidualsSignalsAndValuesThatSeveralRead) {
  same_in_strips(R"(graph main(%x: f32[2,6,40]) -> (%y, %b) {
  %w: f32[6,6,3] = random(1)
  %v: f32[6,6,3] = random(2)
  %s: f32[6,1] = random(3)
  %a = Conv(%x, %w) {pads=[1,1]}
  %b = Relu(%a)
  %c = Conv(%b, %v) {pads=[2,0]}
  %d = Add(%c, %b)
  %e = Mul(%d, %s)
  %y = AveragePool(%e) {kernel_shape=[4], strides=[3], pads=[1,2]}
})");
}

TEST(Strips, AnInputOfAGroupIsReadWhereItLies) {
  same_in_strips(R"(graph main(%x: f32[1,8,16,12], %z: f32[1,8,16,12], %row: f32[12]) -> (%y) {
  %w: f32[8,8,3,3] = random(1)
  %one: i64[1] = [1]
  %m = ReduceMean(%x, %one) {keepdims=1}
  %a = Conv(%x, %w) {pads=[1,1,1,1]}
  %b = Mul(%a, %m)
  %c = Add(%b, %z)
  %d = Sub(%c, %row)
  %y = MaxPool(%d) {kernel_shape=[3,3], pads=[1,1,1,1]}
})");
}

// A chain whose maps do not fit any cache: by cost, without being asked.
constexpr const char* kLarge = R"(graph main(%x: f32[1,3,512,512]) -> (%y) {
  %w: f32[32,3,3,3] = random(1)
  %v: f32[32,32,3,3] = random(2)
  %u: f32[16,32,3,3] = random(3)
  %a = Conv(%x, %w) {pads=[1,1,1,1]}
  %b = Relu(%a)
  %c = Conv(%b, %v) {pads=[1,1,1,1]}
  %d = Relu(%c)
  %e = Conv(%d, %u) {pads=[1,1,1,1]}
  %y = MaxPool(%e) {kernel_shape=[2,2], strides=[2,2]}
})";

TEST(Strips, LargeMapsTakeAFractionOfTheMemory) {
  Options whole;
  whole.disabled.insert("strips");
  auto as_wholes = compile_graph(typed_graph(kLarge), whole), in_strips = compile_graph(typed_graph(kLarge), {});
  ASSERT_TRUE(as_wholes.ok() && in_strips.ok());
  const ir::Graph strips = optimize_graph(typed_graph(kLarge), {})->graph;
  EXPECT_GT(count(strips, "MaxPool"), 4);
  auto arena = [](const Compiled& c) { return c.package.model.programs[0]->plans.at(0)->arena; };
  EXPECT_LT(arena(*in_strips), arena(*as_wholes) / 4);
  EXPECT_TRUE(agree(*in_strips, *as_wholes, {}, 1e-5));
  // Weights are transformed once for all strips.
  auto& model = in_strips->package.model;
  int transforms = 0, convolutions = 0;
  for (auto& task : model.programs[0]->tasks) transforms += model.kernels[static_cast<size_t>(task->alternatives[0]->kernel)] == "cube.winograd_filters";
  for (auto id : strips.order()) convolutions += ir::attr_int(strips.node(id), "winograd", 0) != 0;
  EXPECT_GE(convolutions, 8);
  EXPECT_LE(transforms, 2);
}

TEST(Strips, ALongChainHasSeveralGroups) {
  std::string text = "graph main(%x0: f32[1,32,320,320]) -> (%x40) {\n  %w: f32[32,32,3,3] = random(1)\n";
  for (int i = 0; i < 40; ++i) text += format("  %c{} = Conv(%x{}, %w) {{pads=[1,1,1,1]}}\n  %x{} = Relu(%c{})\n", i, i, i + 1, i);
  auto c = optimize_graph(typed_graph(text + "}"), {});
  ASSERT_TRUE(c.ok()) << c.error().text();
  int groups = 0;
  for (auto& f : c->trace.all_fused()) groups += f.rule == "strips";
  EXPECT_GE(groups, 2);
  EXPECT_GT(c->graph.node_count(), 160u);
}

TEST(Strips, SmallMapsStayWhole) {
  auto c = optimize_graph(typed_graph(R"(graph main(%x: f32[1,16,56,56]) -> (%y) {
  %w: f32[16,16,3,3] = random(1)
  %a = Conv(%x, %w) {pads=[1,1,1,1]}
  %b = Relu(%a)
  %c = Conv(%b, %w) {pads=[1,1,1,1]}
  %y = MaxPool(%c) {kernel_shape=[2,2], strides=[2,2]}
})"), {});
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(count(c->graph, "MaxPool"), 1);
}

TEST(Strips, HeightsWhoseProductsPass64Bits) {
  ir::Graph g = typed_graph(R"(graph main(%x: f32[1,3,4294967296,4]) -> (%y) {
  %w: f32[8,3,3,3] = random(1)
  %v: f32[8,8,3,3] = random(2)
  %a = Conv(%x, %w) {pads=[1,1,1,1]}
  %b = Relu(%a)
  %y = Conv(%b, %v) {pads=[1,1,1,1]}
})");
  Options o;
  o.verify_ir = true;
  o.strip_rows = int64_t{1} << 30;
  auto out = optimize_graph(g, o);
  ASSERT_TRUE(out.ok()) << out.error().text();
  EXPECT_EQ(count(out->graph, "ge.Conv"), 2 * 4) << ir::print(out->graph);
}

}  // namespace
}  // namespace ge::passes
