// Parts of a Concat that are one element wide in memory: made apart, then put between one another.
#include <gtest/gtest.h>

#include "base/text.h"
#include "driver/compare.h"
#include "passes/typed_graph.h"

namespace ge::passes {
namespace {

// Parts that nodes make, `count` of them, of so many rows and columns; `last`: what follows the Concat, from %c to %y.
std::string stack(int count, const char* rows, const char* columns, const std::string& last) {
  std::string out = format("graph main(%x: f32[{},{},1]) -> (%y) {{\n", rows, columns), parts;
  for (int i = 0; i < count; ++i) {
    out += format("  %s{}: i64[6] = [0, {}, 0, 0, {}, 0]\n  %p{} = Pad(%x, %s{})\n", i, i, count - i, i, i);
    parts += format("{}%p{}", i ? ", " : "", i);
  }
  return out + format("  %c = Concat({}) {{axis=-1}}\n{}\n}}", parts, last);
}

int copies(const ir::Graph& g) {
  int n = 0;
  for (auto id : g.order()) n += g.node(id).op == "Concat" && ir::has_attr(g.node(id), "copied");
  return n;
}

void same(const std::string& text, int expected, const std::map<std::string, int64_t>& sizes = {}) {
  Options o, off;
  o.verify_ir = true;
  off.disabled.insert("planar_parts");
  ir::Graph g = typed_graph(text);
  auto optimized = optimize_graph(g, o);
  auto got = compile_graph(g, o), want = compile_graph(g, off);
  ASSERT_TRUE(optimized.ok() && got.ok() && want.ok()) << got.error().text();
  EXPECT_EQ(copies(optimized->graph), expected) << text;
  EXPECT_TRUE(agree(*got, *want, sizes, 0)) << text;
}

TEST(PlanarParts, AreMadeApart) {
  same(stack(8, "100", "120", "  %y = Softsign(%c)"), 1);
  same(stack(5, "n", "16000", "  %y = Softsign(%c)"), 1, {{"n", 3}});
  same(stack(8, "100", "120", "  %y = Identity(%c)"), 1);   // the output of the graph
  same(stack(8, "100", "120", "  %r = ReduceMax(%c) {keepdims=1}\n  %y = Mul(%c, %r)"), 1);
}

TEST(PlanarParts, WhereAChannelIsInnermostForAConvolution) {
  std::string text = "graph main(%x: f32[n,1,70,130]) -> (%y) {\n  %w: f32[4,8,3,3] = random(1)\n", parts;
  for (int i = 0; i < 8; ++i) {
    text += format("  %s{}: i64[8] = [0, 0, {}, 0, 0, 0, {}, 0]\n  %p{} = Pad(%x, %s{})\n", i, i, 8 - i, i, i);
    parts += format("{}%p{}", i ? ", " : "", i);
  }
  text += format("  %c = Concat({}) {{axis=1}}\n  %y = Conv(%c, %w)\n}}", parts);
  Options o, off;
  off.disabled.insert("planar_parts");
  auto got = compile_graph(typed_graph(text), o), want = compile_graph(typed_graph(text), off);
  ASSERT_TRUE(got.ok() && want.ok());
  for (int64_t n : {0, 1, 2}) EXPECT_TRUE(agree(*got, *want, {{"n", n}}, 1e-6));
}

TEST(PlanarParts, FewOrSmallOnesStay) {
  same(stack(3, "200", "220", "  %y = Softsign(%c)"), 0);
  same(stack(8, "10", "12", "  %y = Softsign(%c)"), 0);
  std::string rows = stack(8, "100", "120", "  %y = Softsign(%c)");
  rows.replace(rows.find("axis=-1"), 7, "axis=0");
  same(rows, 0);
}

}  // namespace
}  // namespace ge::passes
