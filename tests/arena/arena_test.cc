#include "arena/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace ge::arena {
namespace {

using Intervals = std::vector<Interval>;

Options options(Strategy strategy, int64_t budget = 2'000'000) {
  Options o;
  o.strategy = strategy;
  o.budget_steps = budget;
  return o;
}

constexpr Strategy kAll[] = {Strategy::none, Strategy::greedy, Strategy::search};

// std::uniform_int_distribution differs between libraries; this does not.
int64_t draw(std::mt19937_64& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

Intervals random_problem(uint64_t seed, int n, int steps, int64_t align) {
  std::mt19937_64 random(seed);
  Intervals out;
  for (int i = 0; i < n; ++i) {
    int32_t first = static_cast<int32_t>(draw(random, 0, steps - 1));
    int64_t length = draw(random, 0, 9) == 0 ? draw(random, 0, steps) : draw(random, 0, steps / 8);
    int64_t size = draw(random, 0, 15) == 0 ? 0 : draw(random, 1, 5000);
    int64_t a = align > 0 ? align : int64_t{1} << draw(random, 0, 8);
    out.push_back(
        {first, static_cast<int32_t>(std::min<int64_t>(first + length, steps - 1)), size, a, -1});
  }
  return out;
}

// Cuts a square into buffers that fill it without a gap: the best arena is known.
Intervals guillotine(uint64_t seed, int32_t steps, int64_t bytes, int cuts) {
  std::mt19937_64 random(seed);
  struct Box {
    int32_t t0, t1;
    int64_t b0, b1;
  };
  std::vector<Box> boxes{{0, steps, 0, bytes}};
  for (int i = 0; i < cuts; ++i) {
    Box box = boxes[random() % boxes.size()];
    auto at = std::find_if(boxes.begin(), boxes.end(),
                           [&](const Box& b) { return b.t0 == box.t0 && b.b0 == box.b0; });
    if (random() % 2 ? box.t1 - box.t0 < 2 : box.b1 - box.b0 < 2) continue;
    Box other = box;
    if (box.t1 - box.t0 >= 2 && (random() % 2 || box.b1 - box.b0 < 2)) {
      int32_t cut = static_cast<int32_t>(draw(random, box.t0 + 1, box.t1 - 1));
      box.t1 = other.t0 = cut;
    } else {
      int64_t cut = draw(random, box.b0 + 1, box.b1 - 1);
      box.b1 = other.b0 = cut;
    }
    *at = box;
    boxes.push_back(other);
  }
  Intervals out;
  for (const Box& b : boxes) out.push_back({b.t0, b.t1 - 1, b.b1 - b.b0, 1, -1});
  return out;
}

// The peak by the definition, step by step; every buffer in units of 1.
int64_t slow_peak(const Intervals& v) {
  int64_t peak = 0;
  for (const Interval& at : v) {
    int64_t sum = 0;
    for (const Interval& x : v)
      if (x.first <= at.first && at.first <= x.last) sum += x.size;
    peak = std::max(peak, sum);
  }
  return peak;
}

// The least arena of all, in whole units: some order of placing each buffer as low as possible
// yields it.
int64_t brute_force(const Intervals& v) {
  std::vector<size_t> order(v.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t best = INT64_MAX;
  do {
    std::vector<int64_t> offset(v.size());
    int64_t arena = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      const Interval& x = v[order[k]];
      int64_t at = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t p = 0; p < k; ++p) {
          const Interval& y = v[order[p]];
          bool apart = x.last < y.first || y.last < x.first || at + x.size <= offset[order[p]] ||
                       offset[order[p]] + y.size <= at;
          if (apart) continue;
          at = (offset[order[p]] + y.size + x.align - 1) / x.align * x.align;
          moved = true;
        }
      }
      offset[order[k]] = at;
      arena = std::max(arena, at + x.size);
    }
    best = std::min(best, arena);
  } while (std::next_permutation(order.begin(), order.end()));
  int64_t unit = 0;
  for (const Interval& x : v) unit = std::gcd(unit, x.align);
  return (best + unit - 1) / unit * unit;
}

void expect_sound(const Intervals& v, const Plan& p) {
  Verdict verdict = validate(v, p.offset, p.arena);
  ASSERT_TRUE(verdict.holds) << verdict.why;
  ASSERT_GE(p.arena, p.lower_bound);
  ASSERT_EQ(p.lower_bound, lower_bound(v));
}

TEST(Plan, NothingAndNearlyNothing) {
  for (Strategy s : kAll) {
    Plan p = plan({}, options(s));
    EXPECT_EQ(p.arena, 0);
    EXPECT_TRUE(p.proved);
    Intervals one{{3, 3, 100}};
    p = plan(one, options(s));
    EXPECT_EQ(p.arena, 128);  // in units of 64
    EXPECT_EQ(p.offset, std::vector<int64_t>{0});
    EXPECT_TRUE(p.proved);
    Intervals empty{{0, 5, 0}, {0, 5, 0}};
    p = plan(empty, options(s));
    EXPECT_EQ(p.arena, 0);
    EXPECT_EQ(p.offset, (std::vector<int64_t>{0, 0}));
  }
}

TEST(Plan, NoneNeverShares) {
  Intervals v{{0, 1, 64}, {2, 3, 128}, {4, 5, 64}};
  Plan p = plan(v, options(Strategy::none));
  EXPECT_EQ(p.arena, 256);
  EXPECT_EQ(p.lower_bound, 128);
  EXPECT_FALSE(p.proved);
  EXPECT_EQ(p.offset, (std::vector<int64_t>{0, 64, 192}));
}

TEST(Plan, KnownOptima) {
  // A chain of layers: two neighbours alive at a time.
  Intervals chain;
  for (int i = 0; i < 100; ++i) chain.push_back({i, i + 1, 64 * (1 + i * 7 % 13)});
  // Touching lifetimes share nothing: last is included.
  Intervals touch{{0, 1, 64}, {1, 2, 64}};
  Intervals apart{{0, 1, 64}, {2, 3, 64}};
  for (Strategy s : {Strategy::greedy, Strategy::search}) {
    Plan p = plan(chain, options(s));
    expect_sound(chain, p);
    EXPECT_TRUE(p.proved || s == Strategy::greedy);
    EXPECT_EQ(plan(touch, options(s)).arena, 128);
    EXPECT_EQ(plan(apart, options(s)).arena, 64);
  }
}

TEST(Plan, RandomProblemsAreSound) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    int n = 1 + static_cast<int>(seed) * 7 % 200;
    int64_t align = seed % 3 == 0 ? 64 : seed % 3 == 1 ? 1 : 0;
    Intervals v = random_problem(seed, n, 5 + static_cast<int>(seed % 90), align);
    int64_t arena[3];
    for (Strategy s : kAll) {
      Plan p = plan(v, options(s, 300'000));
      expect_sound(v, p);
      arena[static_cast<int>(s)] = p.arena;
    }
    EXPECT_LE(arena[1], arena[0]);
    EXPECT_TRUE(align != 1 || lower_bound(v) == slow_peak(v));
  }
}

TEST(Plan, FixedOffsetsStay) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Intervals v = random_problem(seed, 60, 40, seed % 2 ? 64 : 1);
    // Some buffers of a sound plan are pinned where it has them.
    Plan base = plan(v, options(Strategy::greedy));
    for (size_t i = seed % 5; i < v.size(); i += 5) v[i].fixed = base.offset[i] + 640;
    for (Strategy s : kAll) expect_sound(v, plan(v, options(s, 300'000)));
  }
  Intervals high{{0, 9, 64, 64, 6400}, {0, 9, 64}};
  Plan p = plan(high, options(Strategy::greedy));
  EXPECT_EQ(p.arena, 6464);
  EXPECT_TRUE(p.proved);
  EXPECT_EQ(p.offset[1], 0);
}

TEST(Plan, AgreesWithBruteForce) {
  int proved = 0, above = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 random(seed);
    Intervals v;
    int n = static_cast<int>(draw(random, 2, 7));
    for (int i = 0; i < n; ++i) {
      int32_t first = static_cast<int32_t>(draw(random, 0, 6));
      int64_t align = seed % 4 == 0 ? draw(random, 1, 3) : 1;
      v.push_back(
          {first, static_cast<int32_t>(draw(random, first, 7)), draw(random, 1, 9), align, -1});
    }
    Plan p = plan(v, options(Strategy::search));
    expect_sound(v, p);
    EXPECT_EQ(p.arena, brute_force(v)) << "seed " << seed;
    proved += p.proved;
    above += p.arena > p.lower_bound;
  }
  EXPECT_EQ(proved, 400);
  EXPECT_GT(above, 5);  // some need the search for their proof
}

TEST(Plan, CutSquaresFillUpAgain) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Intervals v = guillotine(seed, 60, 100'000, 40 + 8 * static_cast<int>(seed));
    ASSERT_EQ(lower_bound(v), 100'000);
    Plan p = plan(v, options(Strategy::search, 50'000'000));
    expect_sound(v, p);
    EXPECT_EQ(p.arena, 100'000) << "seed " << seed << ", " << v.size() << " buffers";
    EXPECT_TRUE(p.proved);
  }
}

TEST(Plan, SameAnswerEveryTime) {
  for (Strategy s : kAll) {
    Intervals v = random_problem(7, 300, 100, 64);
    Plan a = plan(v, options(s, 3'000'000)), b = plan(v, options(s, 3'000'000));
    EXPECT_EQ(a.offset, b.offset);
    EXPECT_EQ(a.steps, b.steps);
  }
  // On every machine: these numbers change only with the planner.
  Intervals v = random_problem(11, 120, 60, 64);
  Plan p = plan(v, options(Strategy::search, 5'000'000));
  uint64_t mix = 0;
  for (int64_t offset : p.offset) mix = mix * 1'000'003 + static_cast<uint64_t>(offset);
  EXPECT_EQ(mix, 13356867714794777664u);
  EXPECT_EQ(p.steps, 104979);
}

TEST(Plan, CapacityIsGoodEnough) {
  Intervals v = random_problem(3, 200, 60, 1);
  Options o = options(Strategy::search, 50'000'000);
  Plan loose = plan(v, options(Strategy::none));
  o.capacity = loose.arena;
  Plan p = plan(v, o);
  expect_sound(v, p);
  EXPECT_LT(p.steps, 1'000'000);
  EXPECT_LE(p.arena, loose.arena);
}

TEST(Plan, BudgetIsKept) {
  Intervals v = random_problem(5, 2000, 300, 1);
  Plan p = plan(v, options(Strategy::search, 0));
  expect_sound(v, p);
  p = plan(v, options(Strategy::search, 5'000'000));
  expect_sound(v, p);
  EXPECT_LT(p.steps, 10'000'000);
}

TEST(Plan, LargeProblemsAreNearLinear) {
  auto measure = [](int n) {
    Intervals v;
    std::mt19937_64 random(9);
    for (int i = 0; i < n; ++i) {
      int32_t first = static_cast<int32_t>(draw(random, 0, n));
      v.push_back({first, static_cast<int32_t>(first + draw(random, 0, 200)),
                   draw(random, 1, 100'000), 64, -1});
    }
    std::clock_t begin = std::clock();  // CPU time: the machine may be busy
    Plan p = plan(v, options(Strategy::greedy, 0));
    double ms = static_cast<double>(std::clock() - begin) * 1e3 / CLOCKS_PER_SEC;
    EXPECT_TRUE(validate(v, p.offset, p.arena).holds);
    EXPECT_LT(p.arena, p.lower_bound * 2);
    return ms;
  };
  // 20 ms a thousand; generous for sanitizers, far below anything quadratic at the larger size.
  EXPECT_LT(measure(1000), 20 * 5);
  EXPECT_LT(measure(60'000), 60 * 20 * 5);
}

TEST(Validate, RejectsBrokenPlans) {
  Intervals v{{0, 4, 100, 64}, {4, 6, 100, 64}, {5, 9, 64, 64}};
  EXPECT_TRUE(validate(v, std::vector<int64_t>{0, 128, 0}, 256).holds);
  struct Case {
    std::vector<int64_t> offset;
    int64_t arena;
    std::string word;
  };
  for (const Case& c :
       {Case{{0, 64, 0}, 256, "share memory"}, Case{{0, 128, 192}, 256, "share memory"},
        Case{{0, 128, 0}, 227, "does not lie"}, Case{{0, 128, -64}, 256, "does not lie"},
        Case{{0, 132, 0}, 256, "aligned"}, Case{{0, 128}, 256, "3 buffers but 2"}}) {
    Verdict verdict = validate(v, c.offset, c.arena);
    EXPECT_FALSE(verdict.holds) << c.word;
    EXPECT_NE(verdict.why.find(c.word), std::string::npos) << verdict.why;
  }
  // The pair is named.
  Verdict pair = validate(v, std::vector<int64_t>{0, 128, 192}, 256);
  EXPECT_NE(pair.why.find("buffer 1"), std::string::npos) << pair.why;
  EXPECT_NE(pair.why.find("buffer 2"), std::string::npos) << pair.why;
  v[2].fixed = 64;
  EXPECT_FALSE(validate(v, std::vector<int64_t>{0, 128, 0}, 256).holds);
  EXPECT_FALSE(validate(Intervals{{5, 4, 64}}, std::vector<int64_t>{0}, 64).holds);
  Verdict last = validate(Intervals{{0, 4, 64}}, std::vector<int64_t>{INT64_MAX - 63}, INT64_MAX - 1);
  EXPECT_FALSE(last.holds);
  EXPECT_NE(last.why.find("64 bytes at 9223372036854775744"), std::string::npos) << last.why;
}

TEST(Validate, FindsEveryDisturbanceBothWays) {
  for (int n : {60, 300, 3000}) {  // pairwise and swept
    Intervals v = random_problem(21, n, 200, 1);
    Plan p = plan(v, options(Strategy::greedy, 0));
    ASSERT_TRUE(validate(v, p.offset, p.arena).holds);
    std::mt19937_64 random(4);
    int rejected = 0;
    for (int i = 0; i < 60; ++i) {
      std::vector<int64_t> offset = p.offset;
      size_t at = random() % v.size();
      offset[at] = draw(random, 0, p.arena - v[at].size);
      bool clash = false;
      for (size_t j = 0; j < v.size(); ++j)
        clash |= j != at && v[j].size > 0 && v[at].size > 0 && v[j].first <= v[at].last &&
                 v[at].first <= v[j].last && offset[j] < offset[at] + v[at].size &&
                 offset[at] < offset[j] + v[j].size;
      EXPECT_EQ(validate(v, offset, p.arena).holds, !clash);
      rejected += clash;
    }
    EXPECT_GT(rejected, 10);
  }
}

// The public problems beside the source tree, or cut squares of their kind.
struct Named {
  std::string name;
  Intervals intervals;
  std::optional<int64_t> capacity;
  double ratio;  // arena / bound at most
};

std::vector<Named> problems() {
  const char* set = std::getenv("GE_SHARED");
  std::filesystem::path folder = set ? set : std::filesystem::path(GE_SOURCE_DIR) / ".." / "shared";
  folder /= "planner";
  std::vector<Named> out;
  auto add = [&](const char* name, std::optional<int64_t> capacity, double ratio) {
    std::ifstream in(folder / name);
    auto p = read_csv(std::string(std::istreambuf_iterator<char>(in), {}));
    ASSERT_TRUE(p.ok()) << name << ": " << p.error().text();
    out.push_back({name, std::move(p->intervals), capacity, ratio});
  };
  if (std::filesystem::exists(folder / "minimalloc")) {
    for (const char* letter : {"A", "C", "E", "G", "I", "K"})
      add((std::string("minimalloc/") + letter + ".1048576.csv").c_str(), 1048576, 1.01);
    add("minimalloc/input.12.csv", 12, 1);
    add("idealloc/resnet50.csv", {}, 1.005);
    add("idealloc/G_1.csv", {}, 1.005);
    add("idealloc/Y_1.csv", {}, 1.005);
  } else {
    for (uint64_t seed = 1; seed <= 6; ++seed)
      out.push_back({"cut " + std::to_string(seed),
                     guillotine(seed, 200, 1048576, 100 + 20 * static_cast<int>(seed)), 1048576,
                     1});
    out.push_back({"many", random_problem(1, 60'000, 30'000, 1), {}, 1.05});
  }
  return out;
}

// The same problem with time running backwards and its buffers in another order.
Intervals turned(Intervals v, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (size_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[random() % i]);
  int32_t last = 0;
  for (const Interval& x : v) last = std::max(last, x.last);
  for (Interval& x : v) {
    int32_t first = x.first;
    x.first = last - x.last;
    x.last = last - first;
  }
  return v;
}

// As they are given and turned: what fits one way has to be found the other way as well.
TEST(Problems, FitTheirCapacity) {
  for (const Named& n : problems()) {
    Options o = options(Strategy::search, 2'000'000'000);
    o.capacity = n.capacity;
    if (!n.capacity)
      o.capacity = static_cast<int64_t>(static_cast<double>(lower_bound(n.intervals)) * n.ratio);
    for (const Intervals& v : {n.intervals, turned(n.intervals, 1)}) {
      Plan p = plan(v, o);
      expect_sound(v, p);
      EXPECT_LE(p.arena, *o.capacity) << n.name;
    }
  }
}

}  // namespace
}  // namespace ge::arena
