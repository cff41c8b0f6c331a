// The order that keeps the peak of memory low.
#include "passes/order.h"

#include <gtest/gtest.h>

#include "driver/compare.h"
#include "passes/typed_graph.h"

namespace ge::passes {
namespace {

bool reorder(ir::Graph& g) {
  PassOptions options;
  Trace trace;
  PassContext context{options, trace, {}};
  auto changed = order(g, context);
  EXPECT_TRUE(changed.ok());
  return *changed;
}

int64_t peak(const ir::Graph& g) { return memory_peak(g, g.order()); }

// Four large values, each of which becomes a small one: made one after another they need the memory of one.
constexpr const char* kAllAtOnce = R"(graph main(%x: f32[16,64]) -> (%y) {
  %by: i64[2] = [64, 1]
  %axes: i64[1] = [0]
  %a1 = Relu(%x)
  %b1 = Neg(%x)
  %a = Tile(%x, %by)
  %b = Tile(%a1, %by)
  %c = Tile(%b1, %by)
  %sa = ReduceMax(%a, %axes)
  %sb = ReduceMax(%b, %axes)
  %sc = ReduceMax(%c, %axes)
  %ab = Add(%sa, %sb)
  %y = Add(%ab, %sc)
})";

constexpr int64_t kLarge = 4 * 16 * 64 * 64, kSmall = 4 * 16 * 64, kRow = 4 * 64;

TEST(Order, LargeValuesOneAfterAnother) {
  auto g = typed_graph(kAllAtOnce);
  size_t nodes = g.order().size();
  EXPECT_GE(peak(g), 3 * kLarge);
  EXPECT_TRUE(reorder(g));
  EXPECT_LE(peak(g), kLarge + 2 * kSmall + 4 * kRow);
  EXPECT_EQ(g.order().size(), nodes);
  EXPECT_FALSE(reorder(g)) << "a good order stays";
}

TEST(Order, AChainHasButOne) {
  auto g = typed_graph(R"(graph main(%x: f32[8,64]) -> (%y) {
  %by: i64[2] = [4, 1]
  %a = Tile(%x, %by)
  %b = Relu(%a)
  %y = Tile(%b, %by)
})");
  EXPECT_EQ(peak(g), 4 * 32 * 64) << "elementwise in place; the caller's memory counts nothing";
  EXPECT_FALSE(reorder(g));
}

TEST(Order, ViewsAndPartsShareMemory) {
  auto g = typed_graph(R"(graph main(%x: f32[8,64]) -> (%y) {
  %flat: i64[1] = [-1]
  %two: i64[1] = [2]
  %a = Softmax(%x)
  %b = LogSoftmax(%x)
  %c = Concat(%a, %b) {axis=0}
  %d = Reshape(%c, %flat)
  %y = Tile(%d, %two)
})");
  EXPECT_EQ(peak(g), 4 * 16 * 64) << "two parts and a view in one piece";
}

TEST(Order, SizesThatChangeAreGuessed) {
  std::string text = kAllAtOnce;
  text.replace(text.find("f32[16,64]"), 10, "f32[n,m]");
  auto g = typed_graph(text);
  EXPECT_TRUE(reorder(g));
}

TEST(Order, ValuesOfUnknownRankAreNoViews) {
  auto g = typed_graph(R"(graph main(%x: f32[?], %z: f32[?]) -> (%y) {
  %axis: i64[1] = [1]
  %two: i64[1] = [2]
  %a = Relu(%x)
  %b = Transpose(%a) {perm=[1,0]}
  %c = Slice(%a, %axis, %two, %axis)
  %d = Concat(%c, %z) {axis=1}
  %e = Concat(%d, %b) {axis=1}
  %f = Unsqueeze(%e, %axis)
  %y = Relu(%f)
})");
  ir::ValueId x = g.inputs[0];
  ASSERT_FALSE(g.value(x).type.ranked);
  EXPECT_FALSE(reorder(g));
}

TEST(Order, NothingToDo) {
  auto g = typed_graph("graph main(%x: f32[8]) -> (%x) {\n}");
  EXPECT_EQ(peak(g), 0);
  EXPECT_FALSE(reorder(g));
}

TEST(Order, TheArenaIsSmallerAndTheResultTheSame) {
  Options kept;
  kept.disabled = {"order", "vector_regions"};
  Options moved;
  moved.disabled = {"vector_regions"};
  auto a = compile_graph(*ir::parse(kAllAtOnce), kept), b = compile_graph(*ir::parse(kAllAtOnce), moved);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_LT(2 * b->package.model.programs[0]->plans.at(0)->arena, a->package.model.programs[0]->plans.at(0)->arena);
  auto ma = open_compiled(*a), mb = open_compiled(*b);
  ASSERT_TRUE(ma.ok() && mb.ok());
  auto inputs = seeded_inputs(**ma, {}, 4, 1);
  ASSERT_TRUE(inputs.ok());
  auto ya = run(**ma, *inputs), yb = run(**mb, *inputs);
  ASSERT_TRUE(ya.ok() && yb.ok());
  EXPECT_TRUE((*ya)[0].same_bytes((*yb)[0]));
}

}  // namespace
}  // namespace ge::passes
