// Chains on large maps run a strip of rows at a time and give what they gave as wholes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "driver/compare.h"
#include "driver/report.h"
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
  constexpr const char* kUnet = R"(graph main(%x: f32[n,3,26,20]) -> (%y, %small) {
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
})";
  // Two images are cut into more strips than one.
  for (int64_t images : {1, 2, 3}) same_in_strips(kUnet, {{"n", images}});
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

// Tasks that have a part in a run of these sizes.
size_t taken(const Compiled& c, const std::map<std::string, int64_t>& sizes) {
  auto model = open_compiled(c);
  if (!model.ok()) return 0;
  auto inputs = seeded_inputs(**model, sizes, 4, 1);
  if (!inputs.ok()) return 0;
  std::vector<std::vector<int64_t>> dims;
  for (auto& t : *inputs) dims.emplace_back(t.dims().begin(), t.dims().end());
  auto bound = (*model)->bind(dims);
  return bound.ok() ? (*bound)->tasks.size() : 0;
}

// Compiled for any size in one file, with strips of some rows and as wholes: the same at every size. Sizes with strips: the last.
void same_at_all_sizes(const std::string& text, const std::vector<std::map<std::string, int64_t>>& sizes) {
  ir::Graph g = typed_graph(text);
  Options whole;
  whole.disabled = {"strips", "open_strips"};
  auto want = compile_graph(g, whole);
  ASSERT_TRUE(want.ok()) << want.error().text();
  size_t cut = 0;
  for (int64_t rows : {1, 2, 3, 4, 5, 7}) {
    Options o;
    o.strip_rows = rows;
    o.verify_ir = true;
    auto got = compile_graph(g, o);
    ASSERT_TRUE(got.ok()) << rows << " rows: " << got.error().text();
    cut += taken(*got, sizes.back()) > taken(*want, sizes.back());
    EXPECT_LE(taken(*got, sizes.front()), taken(*want, sizes.front())) << rows << " rows: strips of a tiny map";
    for (auto& s : sizes) EXPECT_TRUE(agree(*got, *want, s, 1e-5)) << rows << " rows, h " << s.at("h") << ", w " << s.at("w");
  }
  EXPECT_GE(cut, 4u);
}

std::vector<std::map<std::string, int64_t>> open_sizes(int64_t images = 2) {
  std::vector<std::map<std::string, int64_t>> out;
  for (int64_t h : {5, 7, 8, 11, 12, 13, 16, 19, 22, 24, 25, 31, 32, 33, 40, 47, 64, 65, 66, 97})
    for (int64_t w : {6, 9}) out.push_back({{"n", images}, {"h", h}, {"w", w}});
  return out;
}

TEST(Strips, OpenHeightsWithPadsStridesAndDilations) {
  same_at_all_sizes(R"(graph main(%x: f32[n,3,h,w]) -> (%y) {
  %w: f32[8,3,3,3] = random(1)
  %v: f32[8,8,3,3] = random(2)
  %u: f32[8,8,3,3] = random(3)
  %a = Conv(%x, %w) {pads=[1,1,1,1]}
  %b = Relu(%a)
  %c = Conv(%b, %v) {pads=[2,1,2,1], dilations=[2,1]}
  %d = Conv(%c, %u) {pads=[1,1,1,1], strides=[2,2]}
  %y = LeakyRelu(%d)
})", open_sizes());
}

TEST(Strips, OpenHeightsWithSkipsPoolsAndTwoSinks) {
  same_at_all_sizes(R"(graph main(%x: f32[n,4,h,w]) -> (%y, %half) {
  %w: f32[8,4,3,3] = random(1)
  %v: f32[8,8,3,3] = random(2)
  %d: f32[8,1,3,3] = random(3)
  %one: i64[2] = [2, 3]
  %a = Conv(%x, %w) {pads=[1,1,1,1]}
  %b = Relu(%a)
  %m = ReduceMean(%b, %one) {keepdims=1}
  %g = Mul(%b, %m)
  %c = Conv(%g, %v) {pads=[1,1,1,1]}
  %s = Add(%c, %g)
  %k = Conv(%s, %d) {group=8, pads=[1,1,1,1]}
  %cat = Concat(%k, %s) {axis=1}
  %y = LeakyRelu(%cat)
  %p = MaxPool(%s) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}
  %half = AveragePool(%p) {kernel_shape=[2,2], pads=[0,0,1,1], count_include_pad=1}
})", open_sizes());
}

TEST(Strips, OpenWidthsAndNumbersOfImagesAlone) {
  auto sizes = [](const char* size, std::initializer_list<int64_t> values) {
    std::vector<std::map<std::string, int64_t>> out;
    for (int64_t n : values) out.push_back({{"n", 1}, {"h", 0}, {"w", 6}, {size, n}});
    return out;
  };
  constexpr const char* kChain = R"(graph main(%x: f32[{},4,40,{}]) -> (%y) {{
  %w: f32[8,4,3,3] = random(1)
  %v: f32[8,8,3,3] = random(2)
  %a = Conv(%x, %w) {{pads=[1,1,1,1]}}
  %b = Relu(%a)
  %c = Conv(%b, %v) {{pads=[1,1,1,1], strides=[2,2]}}
  %y = Softsign(%c)
}})";
  for (auto [n, w, name] : {std::tuple{"2", "w", "w"}, std::tuple{"n", "8", "n"}}) {
    ir::Graph g = typed_graph(format(kChain, n, w));
    Options whole, o;
    whole.disabled = {"strips", "open_strips"};
    auto want = compile_graph(g, whole);
    for (int64_t rows : {2, 5}) {
      o.strip_rows = rows;
      o.verify_ir = true;
      auto got = compile_graph(g, o);
      ASSERT_TRUE(want.ok() && got.ok()) << got.error().text();
      for (auto& s : sizes(name, {1, 2, 3, 7, 16, 33})) EXPECT_TRUE(agree(*got, *want, s, 1e-5)) << name << " " << s.at(name);
      EXPECT_GT(taken(*got, sizes(name, {16})[0]), taken(*want, sizes(name, {16})[0]));
    }
  }
}

// Ranges that begin where strips pay already, and narrow ones.
TEST(Strips, RangesOfHeights) {
  Options whole;
  whole.disabled = {"strips", "open_strips"};
  for (auto [least, most] : {std::pair<int64_t, int64_t>{33, 97}, {64, 400}, {40, 43}, {30, INT64_MAX}, {5000, 5003}}) {
    ir::Graph g = typed_graph(R"(graph main(%x: f32[1,3,h,w]) -> (%y) {
  %w: f32[4,3,3,3] = random(1)
  %v: f32[4,4,3,3] = random(2)
  %a = Conv(%x, %w) {pads=[1,1,1,1]}
  %b = Relu(%a)
  %c = Conv(%b, %v) {pads=[1,1,1,1], strides=[2,2]}
  %y = Softsign(%c)
})");
    g.symbols["h"].min = least, g.symbols["h"].max = most;
    g.symbols["w"].min = 7, g.symbols["w"].max = 7 + least % 2;
    auto want = compile_graph(g, whole);
    for (int64_t rows : {1, 2, 3, 5}) {
      Options o;
      o.strip_rows = rows;
      o.verify_ir = true;
      auto got = compile_graph(g, o);
      ASSERT_TRUE(want.ok() && got.ok()) << got.error().text();
      for (int64_t h : {least, least + 1, least + 3, std::min(most, least + 50), std::min(most, least + 61)}) {
        const std::map<std::string, int64_t> sizes{{"h", h}, {"w", 7}};
        EXPECT_TRUE(agree(*got, *want, sizes, 1e-5)) << rows << " rows, h " << h << " of " << least << " to " << most;
        if (h > least + 40) EXPECT_GT(taken(*got, sizes), taken(*want, sizes)) << rows << " rows, h " << h;
      }
    }
  }
}

// By cost, without being asked: small maps as wholes, large ones in strips, in a fraction of the memory; more strips of more images.
TEST(Strips, ARunChoosesByItsSizes) {
  Options whole;
  whole.disabled = {"strips", "open_strips"};
  std::string open = kLarge;
  open.replace(open.find("1,3,512,512"), 11, "n,3,h,w");
  auto as_wholes = compile_graph(typed_graph(open), whole), by_size = compile_graph(typed_graph(open), {}), fixed = compile_graph(typed_graph(kLarge), {});
  ASSERT_TRUE(as_wholes.ok() && by_size.ok() && fixed.ok());
  const std::map<std::string, int64_t> small{{"n", 1}, {"h", 48}, {"w", 56}}, large{{"n", 1}, {"h", 512}, {"w", 512}}, odd{{"n", 2}, {"h", 517}, {"w", 491}};
  EXPECT_EQ(taken(*by_size, small), taken(*as_wholes, small));
  EXPECT_GT(taken(*by_size, large), 4 * taken(*as_wholes, large));
  for (auto& sizes : {small, large, odd}) EXPECT_TRUE(agree(*by_size, *as_wholes, sizes, 1e-5));
  auto arena = [](const Compiled& c, std::vector<std::vector<int64_t>> dims) {
    auto model = open_compiled(c, 1);
    auto bound = (*model)->bind(dims);
    return bound.ok() ? (*bound)->arena : int64_t{-1};
  };
  const int64_t in_strips = arena(*by_size, {{1, 3, 512, 512}});
  EXPECT_LT(in_strips, arena(*as_wholes, {{1, 3, 512, 512}}) / 3);
  EXPECT_LT(in_strips, 2 * arena(*fixed, {{1, 3, 512, 512}}));
  // Weights are transformed once for wholes and strips.
  auto& model = by_size->package.model;
  int transforms = 0;
  for (auto& task : model.programs[0]->tasks) transforms += model.kernels[static_cast<size_t>(task->alternatives[0]->kernel)] == "cube.winograd_filters";
  EXPECT_LE(transforms, 2);
  // The report says from which sizes on.
  EXPECT_THAT(explain_text(by_size->package), testing::ContainsRegex("strips -> [^\n]+: [0-9]+ strips of [0-9]+ rows or more where the largest map has [0-9.]+ [KM]iB or more"));
  EXPECT_THAT(explain_text(fixed->package), testing::ContainsRegex("strips -> [^\n]+: [0-9]+ strips: "));
}

// By cost, for a range and for gears whose least size is large already.
TEST(Strips, ARangeOfLargeSizes) {
  Options whole;
  whole.disabled = {"strips", "open_strips"};
  std::string open = kLarge;
  open.replace(open.find("1,3,512,512"), 11, "n,3,h,w");
  ir::Graph g = typed_graph(open);
  g.symbols["n"].min = g.symbols["n"].max = 1;
  for (auto* edge : {"h", "w"}) g.symbols[edge].min = 320, g.symbols[edge].max = 640;
  for (bool gears : {false, true}) {
    if (gears) g.gears = {{"h", "w"}, {{320, 320}, {480, 640}, {640, 640}}};
    auto by_size = compile_graph(g, {}), as_wholes = compile_graph(g, whole);
    ASSERT_TRUE(by_size.ok() && as_wholes.ok()) << by_size.error().text();
    for (auto [h, w] : {std::pair<int64_t, int64_t>{320, 320}, {480, 640}, {640, 640}, {321, 500}, {639, 322}}) {
      if (gears && h % 2) continue;
      const std::map<std::string, int64_t> sizes{{"n", 1}, {"h", h}, {"w", w}};
      EXPECT_TRUE(agree(*by_size, *as_wholes, sizes, 1e-5)) << h << " " << w;
    }
    const std::map<std::string, int64_t> largest{{"n", 1}, {"h", 640}, {"w", 640}};
    EXPECT_GT(taken(*by_size, largest), 2 * taken(*as_wholes, largest));
  }
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
