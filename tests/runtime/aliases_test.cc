// What is made inside a larger buffer (what a Pad surrounds, parts of a Concat), and what takes its operand over
// (scatters): the same values as with memory of their own, and not where it must not be.
#include <gtest/gtest.h>

#include "driver/compare.h"
#include "ir/parse.h"

namespace ge {
namespace {

struct Both {
  std::string text;
  int parts = 0, in_place = 0;
  bool same = false;
};

int noted(const Compiled& c, const char* kind) {
  std::string key = format("\"{}\":", kind);
  size_t at = c.package.notes.find(key, c.package.notes.find("\"aliases\""));
  return std::atoi(c.package.notes.c_str() + at + key.size());
}

// Compiled as always and without any sharing; every operator by itself, so that none takes another's padding up.
Both both(const std::string& graph, const std::map<std::string, int64_t>& sizes = {}) {
  Both out;
  Options shared, apart;
  shared.fusion = apart.fusion = false;
  apart.reuse_memory = false;
  auto a = compile_graph(*ir::parse(graph), shared), b = compile_graph(*ir::parse(graph), apart);
  EXPECT_TRUE(a.ok()) << (a.ok() ? "" : a.error().text());
  EXPECT_TRUE(b.ok()) << (b.ok() ? "" : b.error().text());
  if (!a.ok() || !b.ok()) return out;
  out.parts = noted(*a, "parts"), out.in_place = noted(*a, "in_place");
  auto same = agree(*a, *b, sizes, 0);
  EXPECT_TRUE(same) << same.message() << graph;
  out.same = bool(same);
  return out;
}

std::string padded(const std::string& pads, const std::string& mode, const std::string& rest = "", const std::string& out = "%y") {
  return "graph main(%x: f32[n,5,6,7]) -> (" + out + R"() {
  %pads: i64[8] = [)" + pads + R"(]
  %two: f32[] = [2.5]
  %t = Sigmoid(%x)
  %p = Pad(%t, %pads, %two) {mode=")" + mode + R"("}
  %y = Cos(%p)
)" + rest + "}";
}

TEST(PadInteriors, AreMadeInsideWhateverTheBorder) {
  for (const char* mode : {"constant", "reflect", "edge", "wrap"})
    for (const char* pads : {"0, 0, 1, 1, 0, 0, 1, 1", "0, 1, 0, 3, 0, 2, 0, 0", "0, 0, 0, 0, 0, 0, 4, 0", "0, 0, 0, 0, 0, 3, 0, 0"})
      for (int64_t n : {1, 3}) EXPECT_EQ(both(padded(pads, mode), {{"n", n}}).parts, 1) << mode << " " << pads;
  EXPECT_EQ(both(padded("2, 0, 0, 0, 1, 0, 0, 0", "constant"), {{"n", 0}}).parts, 1);
}

TEST(PadInteriors, AreNotWhereThePadCropsOrDoesNothing) {
  EXPECT_EQ(both(padded("0, 0, -1, 2, 0, 0, 1, 0", "constant"), {{"n", 2}}).parts, 0);
  EXPECT_EQ(both(padded("0, 0, 0, 0, 0, 0, 0, 0", "edge"), {{"n", 2}}).parts, 0);
  EXPECT_EQ(both(padded("0, 0, -1, 0, 0, 0, -2, 0", "constant"), {{"n", 2}}).parts, 0);
}

TEST(PadInteriors, OtherReadersAndOutputs) {
  // Other readers, before and after, see the part.
  EXPECT_EQ(both(padded("0, 0, 1, 1, 0, 0, 1, 1", "constant", "  %z = Exp(%t)\n", "%y, %z"), {{"n", 2}}).parts, 1);
  // One of two Pads surrounds it, the other copies.
  EXPECT_EQ(both(padded("0, 0, 1, 1, 0, 0, 1, 1", "edge", "  %q = Pad(%t, %pads)\n  %z = Sin(%q)\n", "%y, %z"), {{"n", 2}}).parts, 1);
  // A padded output of the graph is the caller's buffer; a value that is an output itself has one of its own.
  EXPECT_EQ(both(padded("0, 0, 1, 1, 0, 0, 1, 1", "constant", "", "%p"), {{"n", 2}}).parts, 1);
  EXPECT_EQ(both(padded("0, 0, 1, 1, 0, 0, 1, 1", "constant", "", "%y, %t"), {{"n", 2}}).parts, 0);
  // An input of the graph is never written around.
  EXPECT_EQ(both(R"(graph main(%x: f32[4,5]) -> (%y) {
  %pads: i64[4] = [1, 2, 3, 0]
  %y = Pad(%x, %pads)
})").parts, 0);
}

TEST(PadInteriors, InsideOneAnotherAndInsideAConcat) {
  EXPECT_EQ(both(R"(graph main(%x: f32[n,4,6]) -> (%y) {
  %one: i64[6] = [0, 1, 1, 0, 0, 2]
  %two: i64[6] = [0, 0, 3, 0, 2, 0]
  %t = Sigmoid(%x)
  %p = Pad(%t, %one) {mode="reflect"}
  %q = Pad(%p, %two)
  %u = Cos(%x)
  %r = Pad(%u, %two)
  %w = Pad(%r, %one)
  %c = Concat(%q, %w) {axis=2}
  %y = Sin(%c)
}
)", {{"n", 2}}).parts, 6);
}

constexpr const char* kScatter = R"(graph main(%x: f32[n,6], %u: f32[2,6]) -> ({}) {{
  %at: i64[2,1] = [0, 2]
  %t = Sigmoid(%x)
  %s = ScatterND(%t, %at, %u)
  %y = Cos(%s)
  {}
}})";

TEST(Scatters, TakeOverDataThatEndThere) {
  EXPECT_GE(both(format(kScatter, "%y", ""), {{"n", 3}}).in_place, 1);
  EXPECT_GE(both(R"(graph main(%x: f32[4,n], %u: f32[2,n]) -> (%y) {
  %at: i64[2,1] = [3, 1]
  %t = Sigmoid(%x)
  %a = ScatterND(%t, %at, %u) {reduction="add"}
  %b = ScatterND(%a, %at, %u) {reduction="max"}
  %y = Cos(%b)
})", {{"n", 5}}).in_place, 2);
}

TEST(Scatters, LeaveDataAloneThatOthersRead) {
  int alone = both(format(kScatter, "%y", ""), {{"n", 3}}).in_place;
  // Read later, an output of the graph, an input of the graph.
  EXPECT_LT(both(format(kScatter, "%y, %z", "%z = Exp(%t)\n  %v = Add(%z, %s)\n  %z2 = Mul(%v, %t)"), {{"n", 3}}).in_place, alone + 2);
  EXPECT_LT(both(format(kScatter, "%y, %t", ""), {{"n", 3}}).in_place, alone);
  both(R"(graph main(%x: f32[4,6], %u: f32[2,6]) -> (%s, %x2) {
  %at: i64[2,1] = [0, 2]
  %s = ScatterND(%x, %at, %u)
  %x2 = Sin(%x)
})");
  // A weight stays as it is: two runs of the same model agree with themselves.
  both(R"(graph main(%u: f32[2,6]) -> (%s, %r) {
  %at: i64[2,1] = [0, 2]
  %w: f32[4,6] = random(3)
  %s = ScatterND(%w, %at, %u)
  %r = Sin(%w)
})");
  // The updates are the data themselves.
  both(R"(graph main(%x: f32[2,6]) -> (%s) {
  %at: i64[2,1] = [1, 0]
  %t = Sigmoid(%x)
  %s = ScatterND(%t, %at, %t)
})");
}

}  // namespace
}  // namespace ge
