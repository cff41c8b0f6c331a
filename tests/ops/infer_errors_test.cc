// Errors of inference: they name the node, say what it was given, and sizes that cannot be are refused where they arise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ops/infer.h"
#include "ops/infer_op.h"

namespace ge::test {
namespace {

using ::testing::HasSubstr;

// The whole error of a graph of one node "n", or "" where there is none.
std::string failure(const std::string& body, const std::string& inputs = "%x: f32[2,4]") {
  auto g = ir::parse("graph main(" + inputs + ") -> (%y) {\n" + body + "\n}");
  if (!g.ok()) return "parse: " + g.error().text();
  Status s = ops::infer(*g);
  return s.ok() ? "" : s.error().text();
}

TEST(InferErrors, SayWhatTheNodeWasGiven) {
  const std::string text = failure("  %k: i64[1] = [5]\n  %y, %i = TopK(%x, %k) {axis=1} @\"n\"");
  EXPECT_THAT(text, HasSubstr("E14001: TopK: k is 5, but axis 1 of its input has 4 elements; k must be 0 to 4 [node n]"));
  EXPECT_THAT(text, HasSubstr("in TopK of x f32[2,4], k i64[1] = [5]; axis=1"));
}

TEST(InferErrors, LongListsAreCut) {
  std::string inputs = "%x: f32[2]", args = "%x";
  for (int i = 0; i < 20; ++i) inputs += ", %x" + std::to_string(i) + ": f32[3]", args += ", %x" + std::to_string(i);
  const std::string text = failure("  %y = Concat(" + args + ") {axis=7} @\"n\"", inputs);
  EXPECT_THAT(text, HasSubstr("13 more; axis=7"));
}

TEST(InferErrors, SizesBeyond64Bits) {
  const std::string text = failure("  %r: i64[2] = [1, 4611686018427387904]\n  %y = Tile(%x, %r) @\"n\"");
  EXPECT_THAT(text, HasSubstr("E13023: Tile: output 0 would have a size beyond 64 bits [node n]"));
}

TEST(InferErrors, SizesBelowZero) {
  EXPECT_THAT(failure("  %w: f32[1,1,1] = [1.0]\n  %y = ConvTranspose(%x, %w) {output_shape=[-7]} @\"n\"", "%x: f32[1,1,4]"), HasSubstr("[node n]"));
}

// A number that must be one is asked for before anything is made of its count.
TEST(InferErrors, OneNumberIsOneNumber) {
  for (auto* body : {"  %y = BlackmanWindow(%i) @\"n\"", "  %y = HannWindow(%i) @\"n\"", "  %y = Range(%i, %i, %i) @\"n\"", "  %y = CumSum(%x, %i) @\"n\"",
                     "  %y, %j = TopK(%x, %i) @\"n\"", "  %v: f32[2] = [0.0, 1.0]\n  %y = OneHot(%i, %i, %v) @\"n\""})
    EXPECT_THAT(failure(body, "%x: f32[2,4], %i: i64[2147483648]"), HasSubstr("[2147483648]; it must be one number [node n]")) << body;
}

// A list of sizes has as many entries as a tensor may have axes.
TEST(InferErrors, AListOfSizesHasFewEntries) {
  for (auto* body : {"  %b: i64[2] = [2, 2]\n  %y = Col2Im(%x, %i, %b)", "  %y = Reshape(%x, %i)", "  %y = Expand(%x, %i)", "  %y = ConstantOfShape(%i)", "  %y = AffineGrid(%x, %i)"})
    (void)failure(body, "%x: f32[1,4,4], %i: i64[1099511627776]");   // neither memory nor time without bound
  OneOp reshape;
  EXPECT_EQ(reshape.in(DType::f32, {1, 4, 4}).in(DType::i64, {int64_t{1} << 40}).op("Reshape").type(), "f32[?]");
}

// Integers wrap, sizes do not: what does not fit 64 bits, or the integer's own type, is no size that is known.
TEST(InferErrors, NumbersThatWrapAreNotKnown) {
  auto known = [](const std::string& type, const std::string& number) {
    auto g = ir::parse("graph main() -> (%y) {\n  %a: " + type + "[1] = [" + number + "]\n  %y = Add(%a, %a)\n}");
    EXPECT_TRUE(g.ok()) << g.error().text();
    EXPECT_TRUE(ops::infer(*g).ok());
    return g->elements(g->outputs[0]).has_value();
  };
  EXPECT_TRUE(known("i64", "3"));
  EXPECT_TRUE(known("i32", "3"));
  EXPECT_FALSE(known("i64", "9223372036854775807"));
  EXPECT_FALSE(known("i32", "2147483647"));
}

}  // namespace
}  // namespace ge::test
