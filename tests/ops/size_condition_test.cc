// What ranges and gears say of conditions over sizes.
#include <gtest/gtest.h>

#include "ops/size_condition.h"

namespace ge::ops {
namespace {

Dim less(const Dim& a, const Dim& b) { return Dim::call(DimCall::less, {a, b}); }
const Dim n = Dim::symbol("n"), m = Dim::symbol("m");

ir::Graph graph(int64_t min, int64_t max) {
  ir::Graph g;
  g.symbols["n"] = {min, max, false};
  g.symbols["m"] = {1, 8, false};
  return g;
}

TEST(DimRange, FollowsArithmetic) {
  auto lookup = [](std::string_view s) { return s == "n" ? DimRange{3, 10} : DimRange{1, INT64_MAX}; };
  auto range = [&](const Dim& d) { return range_of(d, lookup); };
  EXPECT_EQ(range(Dim(7)), (DimRange{7, 7}));
  EXPECT_EQ(range(n * Dim(2) - Dim(1)), (DimRange{5, 19}));
  EXPECT_EQ(range(Dim(4) - n), (DimRange{-6, 1}));
  EXPECT_EQ(range(n - n), (DimRange{0, 0}));
  EXPECT_EQ(range(n * m), (DimRange{3, INT64_MAX}));
  EXPECT_EQ(range(Dim(0) - m), (DimRange{INT64_MIN, -1}));
  EXPECT_EQ(range(floordiv(n, Dim(4))), (DimRange{0, 2}));
  EXPECT_EQ(range(floordiv(Dim(0) - n, Dim(4))), (DimRange{-3, -1}));
  EXPECT_EQ(range(mod(n, Dim(4))), (DimRange{0, 3}));
  EXPECT_EQ(range(mod(n, Dim(40))), (DimRange{3, 10}));
  EXPECT_EQ(range(max(n, Dim(5))), (DimRange{5, 10}));
  EXPECT_EQ(range(min(n, m)), (DimRange{1, 10}));
  EXPECT_EQ(range(less(n, Dim(11))), (DimRange{1, 1}));
  EXPECT_EQ(range(less(n, Dim(3))), (DimRange{0, 0}));
  EXPECT_EQ(range(less(n, Dim(4))), (DimRange{0, 1}));
  EXPECT_EQ(range(Dim::call(DimCall::equal, {n, Dim(11)})), (DimRange{0, 0}));
  EXPECT_EQ(range(Dim::call(DimCall::select, {less(n, Dim(4)), n, Dim(20)})), (DimRange{3, 20}));
}

TEST(DimRange, DoesNotOverflow) {
  auto lookup = [](std::string_view) { return DimRange{INT64_MAX - 1, INT64_MAX - 1}; };
  EXPECT_EQ(range_of(n * n, lookup).max, INT64_MAX);
  EXPECT_EQ(range_of(Dim(0) - n * n, lookup).min, INT64_MIN);
  EXPECT_EQ(range_of(n * Dim(3), lookup).max, INT64_MAX);
}

TEST(SizeCondition, IsDecidedByTheRange) {
  EXPECT_EQ(decided(graph(1, 10), less(Dim(10), n)), false);
  EXPECT_EQ(decided(graph(11, INT64_MAX), less(Dim(10), n)), true);
  EXPECT_EQ(decided(graph(1, 11), less(Dim(10), n)), std::nullopt);
  EXPECT_EQ(decided(graph(1, 10), Dim(1) - less(n, Dim(11))), false);
  EXPECT_EQ(decided(graph(1, 10), less(n, Dim(20)) * less(m, Dim(9))), true);
  EXPECT_EQ(decided(graph(1, 10), less(m, n)), std::nullopt);
  EXPECT_EQ(decided(graph(9, 10), less(m, n)), true);
  EXPECT_EQ(decided(graph(2, 2), Dim::call(DimCall::equal, {mod(n, Dim(2)), Dim(0)})), true);
}

TEST(SizeCondition, IsDecidedByGears) {
  auto g = graph(1, 16);
  g.gears = {{"n"}, {{1}, {4}, {16}}};
  auto is = [](int64_t v) { return Dim::call(DimCall::equal, {n, Dim(v)}); };
  EXPECT_EQ(decided(g, is(8)), false);
  EXPECT_EQ(decided(g, is(4)), std::nullopt);
  EXPECT_EQ(decided(g, Dim(1) - less(n, Dim(1))), true);
  auto sides = sides_of(g, is(4));
  EXPECT_EQ(sides.holds, "gears (n) 4");
  EXPECT_EQ(sides.fails, "gears (n) 1; 16");
}

TEST(SizeCondition, SaysWhereItHolds) {
  auto g = graph(1, INT64_MAX);
  auto said = [&](const Dim& c) {
    auto s = sides_of(g, c);
    return s.holds + " | " + s.fails;
  };
  EXPECT_EQ(said(less(Dim(10), n)), "n >= 11 | n <= 10");
  EXPECT_EQ(said(Dim(1) - less(Dim(512), n)), "n <= 512 | n >= 513");
  EXPECT_EQ(said(Dim::call(DimCall::equal, {n, Dim(7)})), "n = 7 | n <= 6 or n >= 8");
  EXPECT_EQ(said(less(n, Dim(5)) + less(Dim(100000), n * Dim(2))), "n <= 4 or n >= 50001 | n = 5 to 50000");
  EXPECT_EQ(said(less(n * m, Dim(50))), "m*n < 50 | m*n >= 50");
  EXPECT_EQ(said(Dim(1) - less(n, m)), "n >= m | n < m");
  // Changes too often to be listed.
  EXPECT_EQ(said(mod(n, Dim(2))), "mod(n, 2) is true | mod(n, 2) is false");
}

TEST(SizeCondition, NarrowsItsSymbol) {
  auto g = graph(1, 64);
  auto yes = narrowed(g, less(Dim(10), n), true), no = narrowed(g, less(Dim(10), n), false);
  ASSERT_TRUE(yes && no);
  EXPECT_EQ(yes->range, (DimRange{11, 64}));
  EXPECT_EQ(no->range, (DimRange{1, 10}));
  EXPECT_FALSE(narrowed(g, less(n, m), true));
  EXPECT_FALSE(narrowed(g, less(Dim(64), n), true));
}

}  // namespace
}  // namespace ge::ops
