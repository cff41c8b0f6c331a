// Errors of binding and running name the node, what it was given, and whose fault it is.
#include "runtime/fault_text.h"

#include <gmock/gmock.h>

#include "driver/compare.h"
#include "ir/parse.h"
#include "om/reader.h"
#include "runtime/binding.h"

namespace ge::runtime {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<Model> opened(const std::string& text) {
  auto g = ir::parse(text);
  EXPECT_TRUE(g.ok()) << (g.ok() ? "" : g.error().text());
  auto c = compile_graph(*std::move(g), {});
  EXPECT_TRUE(c.ok()) << (c.ok() ? "" : c.error().text());
  auto m = open_compiled(*c);
  EXPECT_TRUE(m.ok()) << (m.ok() ? "" : m.error().text());
  return *m;
}

Tensor numbers(std::vector<int64_t> v) { return Tensor::vector_i64(v); }
Tensor floats(std::vector<int64_t> dims) {
  Tensor t(DType::f32, std::move(dims));
  for (int64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = 1;
  return t;
}

TEST(FaultText, SizesThatAKernelRefusesAreTheCallers) {
  auto m = opened("graph main(%x: f32[n]) -> (%y) {\n  %c: f32[2] = [1.0, 2.0]\n  %y = Sub(%x, %c) @\"less\"\n}");
  auto y = run(*m, {floats({4})});
  ASSERT_FALSE(y.ok());
  EXPECT_EQ(y.error().code, code::kInputMismatch);
  EXPECT_THAT(y.error().node, HasSubstr("less"));
  EXPECT_THAT(y.error().text(), HasSubstr("sizes 4 and 2 do not broadcast"));
  EXPECT_THAT(y.error().text(), HasSubstr("on f32[4], f32[2] to f32["));
}

TEST(FaultText, AnAxisThatDataGiveIsNamedAsTheModelDoes) {
  auto m = opened("graph main(%x: f32[2,3], %axes: i64[1]) -> (%y) {\n  %y = ReduceSum(%x, %axes) {keepdims=0} @\"sum\"\n}");
  ASSERT_TRUE(run(*m, {floats({2, 3}), numbers({1})}).ok());
  for (int64_t axis : {7, -4}) {
    auto y = run(*m, {floats({2, 3}), numbers({axis})});
    ASSERT_FALSE(y.ok());
    EXPECT_EQ(y.error().code, code::kRunFailed) << y.error().text();
    EXPECT_THAT(y.error().text(), HasSubstr("axes[0]=" + std::to_string(axis)));
    EXPECT_FALSE(y.error().node.empty()) << y.error().text();
  }
}

TEST(FaultText, TheSmallestIntegerIsAParameterLikeOthers) {
  auto m = opened("graph main(%a: f32[2], %b: f32[2]) -> (%y) {\n  %s = SequenceConstruct(%a, %b)\n"
                  "  %y = ConcatFromSequence(%s) {axis=0, new_axis=-9223372036854775808}\n}");
  auto y = run(*m, {floats({2}), floats({2})});
  ASSERT_TRUE(y.ok()) << y.error().text();
  EXPECT_EQ((*y)[0].dims(), (std::vector<int64_t>{2, 2}));
}

TEST(FaultText, WhatTakesTheMemory) {
  auto g = ir::parse("graph main(%x: f32[n]) -> (%y) {\n  %a: i64[1] = [0]\n  %b = CumSum(%x, %a) @\"grow\"\n  %y = ReduceSum(%b, %a) @\"sum\"\n}");
  ASSERT_TRUE(g.ok()) << g.error().text();
  auto c = compile_graph(*std::move(g), {});
  ASSERT_TRUE(c.ok()) << c.error().text();
  auto& program = *c->package.model.programs[0];
  const std::vector<int64_t> n{int64_t{1} << 40};
  auto b = Binding::make(c->package, program, n, {});
  ASSERT_TRUE(b.ok()) << b.error().text();
  const Error e = no_arena(**b, static_cast<size_t>((*b)->arena));
  EXPECT_EQ(e.code, code::kOutOfMemory);
  EXPECT_EQ(e.node, "grow");
  EXPECT_THAT(e.text(), HasSubstr("4.0 TiB"));
  EXPECT_THAT(e.text(), HasSubstr("CumSum"));
  const Error o = no_output(program, 0, DType::f32, n, int64_t{4} << 40);
  EXPECT_EQ(o.node, "sum");
  EXPECT_THAT(o.text(), HasSubstr("output 'y'"));
}

TEST(FaultText, MoreElementsThanCanBeCounted) {
  auto g = ir::parse("graph main(%x: f32[4611686018427387904,4]) -> (%y) {\n  %y = LogSoftmax(%x) {axis=1} @\"soft\"\n}");
  ASSERT_TRUE(g.ok()) << g.error().text();
  auto c = compile_graph(*std::move(g), {});
  ASSERT_FALSE(c.ok());
  EXPECT_EQ(c.error().code, code::kTooLarge) << c.error().text();
  EXPECT_THAT(c.error().text(), testing::Not(HasSubstr("division")));
}

// A damaged file may call for a value and leave no place for it.
TEST(FaultText, AnExecutorWithoutItsOutputs) {
  auto g = ir::parse("graph main(%a: f32[2], %b: f32[2]) -> (%y) {\n  %s = SequenceConstruct(%a, %b)\n  %y = ConcatFromSequence(%s) {axis=0}\n}");
  ASSERT_TRUE(g.ok()) << g.error().text();
  auto c = compile_graph(*std::move(g), {});
  ASSERT_TRUE(c.ok()) << c.error().text();
  for (size_t t = 0; t < c->package.model.programs[0]->tasks.size(); ++t) {
    auto damaged = om::read(MappedFile::from_bytes(om::to_bytes(c->package)), false);
    ASSERT_TRUE(damaged.ok());
    damaged->model.programs[0]->tasks[t]->alternatives[0]->outs.clear();
    auto m = Model::from(*std::move(damaged), {});
    if (!m.ok()) continue;
    EXPECT_FALSE(run(**m, {floats({2}), floats({2})}).ok()) << t;
  }
}

TEST(FaultText, KindsOfInputs) {
  auto m = opened("graph main(%s: seq(f32[2])) -> (%y) {\n  %i: i64[] = [0]\n  %y = SequenceAt(%s, %i)\n}");
  auto y = run(*m, {floats({2})});
  ASSERT_FALSE(y.ok());
  EXPECT_THAT(y.error().text(), HasSubstr("is a tensor, the model takes a sequence of tensors"));
}

}  // namespace
}  // namespace ge::runtime
