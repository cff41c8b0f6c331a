// Equalities of sizes: what they make equal has one form, and no form means another number where they hold.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "tensor/dim_facts.h"

namespace ge {
namespace {

Dim dim(std::string_view text) { return *Dim::parse(text); }

// Every expression and its normal form have the same value for all h and w up to `most` for which the demands hold;
// returns for how many they do.
int same_where_they_hold(const DimFacts& facts, const std::vector<Dim>& expressions, int64_t most = 70) {
  int held = 0;
  for (int64_t h = 0; h <= most; ++h)
    for (int64_t w = 0; w <= 5; ++w) {
      auto lookup = [&](std::string_view s) -> std::optional<int64_t> { return s == "h" ? h : w; };
      auto holds = [&](const DimFacts::Demand& d) {
        auto a = d.a.eval(lookup), b = d.b.eval(lookup);
        return a.ok() && b.ok() && *a == *b;
      };
      if (!std::all_of(facts.demands().begin(), facts.demands().end(), holds)) continue;
      ++held;
      for (auto& d : expressions) {
        auto was = d.eval(lookup), is = facts.normal(d).eval(lookup);
        if (!was.ok()) continue;
        EXPECT_TRUE(is.ok() && *is == *was) << d.text() << " as " << facts.normal(d).text() << " for h=" << h << " w=" << w;
      }
    }
  return held;
}

TEST(DimFacts, QuotientsOfQuotientsAreOne) {
  EXPECT_EQ(dim("floordiv(floordiv(h - 1, 2), 2)"), dim("floordiv(h - 1, 4)"));
  EXPECT_EQ(dim("floordiv(floordiv(h + 1, 2) + 1, 2)"), dim("floordiv(h + 3, 4)"));
  EXPECT_EQ(dim("floordiv(floordiv(h, 3) + w, 5)"), dim("floordiv(h + 3*w, 15)"));
  EXPECT_EQ(dim("floordiv(6*h + 4*w + 3, 8)"), dim("floordiv(3*h + 2*w + 1, 4)"));
  EXPECT_EQ(dim("floordiv(2*floordiv(h, 3), 5)").text(), "floordiv(2*floordiv(h, 3), 5)");
}

TEST(DimFacts, QuotientsAreWhatTheyWere) {
  auto floored = [](int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0); };
  SplitMix64 random{3};
  auto number = [&](int64_t low, int64_t high) { return low + static_cast<int64_t>(random.next() % static_cast<uint64_t>(high - low + 1)); };
  for (int round = 0; round < 3000; ++round) {
    const int64_t a = number(-4, 8), b = number(-4, 8), c = number(-9, 9), m = number(1, 8), p = number(-2, 3), q = number(-3, 3), n = number(1, 8);
    Dim h = Dim::symbol("h"), w = Dim::symbol("w");
    Dim d = floordiv(Dim(p) * floordiv(Dim(a) * h + Dim(b) * w + Dim(c), m) + Dim(q) * w + Dim(q), n);
    for (auto [x, y] : {std::pair<int64_t, int64_t>{0, 0}, {1, 5}, {7, 2}, {16, 9}, {31, 64}}) {
      auto value = d.eval([&](std::string_view s) -> std::optional<int64_t> { return s == "h" ? x : y; });
      ASSERT_TRUE(value.ok());
      ASSERT_EQ(*value, floored(p * floored(a * x + b * y + c, m) + q * y + q, n)) << d.text();
    }
  }
}

// 10 * 0.7 is 7 in f32, though the f32 0.7 lies below it.
TEST(DimFacts, ScaledSizesAreProductsOfFloats) {
  constexpr int64_t kBits = 0x3f333333;   // 0.7
  const Dim d = Dim::call(DimCall::scaled, {Dim::symbol("n"), Dim(kBits)});
  auto at = [&](int64_t n) { return d.eval([&](std::string_view) { return n; }); };
  EXPECT_EQ(*at(10), 7);
  EXPECT_EQ(*at(11), 7);
  EXPECT_EQ(*at(0), 0);
  EXPECT_TRUE(Dim::call(DimCall::scaled, {Dim(10), Dim(kBits)}).is(7));
  EXPECT_TRUE(*Dim::parse(d.text()) == d);
  EXPECT_EQ(scaled_size(1, -1), std::nullopt);
  EXPECT_EQ(scaled_size(INT64_MAX, 0x7f000000), std::nullopt);
}

TEST(DimFacts, AStrideBesideAnUpsampledMap) {
  DimFacts facts;
  EXPECT_TRUE(facts.add(dim("2*floordiv(h - 1, 32) + 2"), dim("floordiv(h - 1, 16) + 1"), ""));
  EXPECT_TRUE(facts.add(dim("2*floordiv(h - 1, 16) + 2"), dim("floordiv(h - 1, 8) + 1"), ""));
  EXPECT_FALSE(facts.add(dim("4*floordiv(h - 1, 32) + 4"), dim("floordiv(h - 1, 8) + 1"), ""));
  EXPECT_EQ(facts.normal(dim("floordiv(h - 1, 8) + 1")), dim("4*floordiv(h - 1, 32) + 4"));
  EXPECT_GT(same_where_they_hold(facts, {dim("floordiv(h - 1, 8)"), dim("w*floordiv(h - 1, 16)"), dim("floordiv(h, 8)"), dim("max(floordiv(h - 1, 16), w)")}), 30);
}

TEST(DimFacts, PoolsThatDivideEvenly) {
  for (bool inside_first : {true, false}) {
    DimFacts facts;
    std::vector<std::pair<Dim, Dim>> asked = {{dim("2*floordiv(h, 8)"), dim("floordiv(h, 4)")}, {dim("2*floordiv(h, 4)"), dim("floordiv(h, 2)")}, {dim("2*floordiv(h, 2)"), dim("h")}};
    if (!inside_first) std::reverse(asked.begin(), asked.end());
    for (auto& [a, b] : asked) EXPECT_TRUE(facts.add(a, b, "")) << a.text();
    // The input's size keeps its name, and all others are parts of it.
    EXPECT_EQ(facts.normal(dim("h")), dim("h"));
    EXPECT_EQ(facts.normal(dim("8*floordiv(h, 8)")), dim("h"));
    EXPECT_EQ(facts.normal(dim("2*floordiv(h, 2)")), dim("h"));
    EXPECT_EQ(facts.normal(dim("4*floordiv(h, 8)")), facts.normal(dim("floordiv(h, 2)")));
    EXPECT_EQ(facts.normal(dim("floordiv(h + 7, 8)")), facts.normal(dim("floordiv(h, 8)")));
    EXPECT_EQ(facts.normal(dim("h*w*floordiv(h, 2)*2")), dim("h*h*w"));
    EXPECT_EQ(same_where_they_hold(facts, {dim("h"), dim("floordiv(h, 4) + w"), dim("floordiv(h + 5, 3)"), dim("3*floordiv(h, 2) + floordiv(h, 8)"), dim("min(h, 5)"), dim("floordiv(h, 16)")}), 9 * 6);
  }
}

TEST(DimFacts, WhatWasBroadcast) {
  DimFacts facts;
  Dim small = dim("floordiv(h, 4)"), sum = broadcast(Dim(2) * small, dim("floordiv(h, 2)")), top = broadcast(Dim(2) * sum, dim("h"));
  facts.add(dim("4*floordiv(h, 4)"), Dim(2) * sum, "");
  facts.add(dim("4*floordiv(h, 4)"), top, "");
  EXPECT_EQ(facts.normal(sum), Dim(2) * small);
  EXPECT_EQ(facts.normal(top), Dim(4) * small);
  EXPECT_GT(same_where_they_hold(facts, {sum, top, dim("h"), dim("floordiv(h, 2)")}), 20);
}

TEST(DimFacts, WhatHasNoRuleIsStillAskedFor) {
  DimFacts facts;
  EXPECT_TRUE(facts.add(dim("h"), dim("w"), "join"));
  EXPECT_FALSE(facts.add(dim("w"), dim("h"), "join"));
  EXPECT_EQ(facts.normal(dim("h")), dim("h"));
  ASSERT_EQ(facts.demands().size(), 1u);
  EXPECT_EQ(facts.demands()[0].who, "join");
}

TEST(DimFacts, ThousandsOfDemandsEnd) {
  DimFacts facts;
  for (int64_t k = 2; k < 3000; ++k) facts.add(floordiv(dim("h") + Dim(k), Dim(k)), max(dim("w"), floordiv(dim("h"), Dim(k + 1))), "");
  EXPECT_LT(facts.demands().size(), 1000u);
  EXPECT_EQ(facts.normal(dim("h + w")), dim("h + w"));
}

TEST(DimFacts, AnyDemandsKeepTheMeaning) {
  SplitMix64 random{7};
  auto number = [&](int64_t low, int64_t high) { return low + static_cast<int64_t>(random.next() % static_cast<uint64_t>(high - low + 1)); };
  auto expression = [&] {
    Dim d = Dim(number(0, 3));
    for (int64_t k = number(1, 2); k > 0; --k) {
      Dim base = number(0, 3) ? Dim::symbol("h") + Dim(number(-1, 3)) : Dim::symbol("w");
      int64_t kind = number(0, 4);
      Dim part = kind == 0 ? base : kind == 1 ? max(base, Dim(number(1, 4))) : floordiv(floordiv(base, Dim(number(2, 4))) + Dim(number(0, 1)), Dim(number(1, 2)));
      d = d + Dim(number(1, 3)) * part;
    }
    return d;
  };
  int held = 0;
  for (int round = 0; round < 400; ++round) {
    DimFacts facts;
    for (int64_t k = number(1, 4); k > 0; --k) facts.add(expression(), expression(), "");
    std::vector<Dim> tried{dim("h"), dim("w")};
    for (auto& d : facts.demands()) tried.push_back(d.a), tried.push_back(d.b);
    for (int k = 0; k < 8; ++k) tried.push_back(expression());
    held += same_where_they_hold(facts, tried, 30);
    for (auto& d : facts.demands()) EXPECT_FALSE(facts.add(d.a, d.b, "")) << "asked for again";
  }
  EXPECT_GT(held, 500);
}

}  // namespace
}  // namespace ge
