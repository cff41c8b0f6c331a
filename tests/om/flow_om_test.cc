// Files with nested programs and sizes from data: what damages them is an error, never a crash.
#include "om/check.h"
#include "om/om_util.h"

namespace ge {
namespace {

// No Loop: a damaged one could run for ever.
constexpr const char* kFlow = R"(graph main(%c: bool[], %x: f32[n,2], %s: f32[2]) -> (%y, %e, %i, %q) {
  %zero: f32[] = [0]
  %p = Greater(%x, %zero)
  %i = NonZero(%p)
  %t = Transpose(%i) {perm=[1, 0]}
  %g = GatherND(%x, %t)
  %h = Exp(%g)
  %y = If(%c, %h, %x) {captures=2, then_branch={graph t(%a: f32[?], %b: f32[?]) -> (%z) {
    %m = Neg(%a)
    %z = Relu(%m)
  }}, else_branch={graph e(%a: f32[?], %b: f32[?]) -> (%z) {
    %f: i64[1] = [-1]
    %z = Reshape(%b, %f)
  }}}
  %e, %w = Scan(%s, %x) {captures=0, num_scan_inputs=1, body={graph b(%v: f32[?], %a: f32[?]) -> (%o, %r) {
    %o = Add(%v, %a)
    %r = Mul(%v, %a)
  }}}
  %u = SequenceConstruct(%w, %x)
  %q = ConcatFromSequence(%u) {axis=0}
})";

om::Package package() {
  auto g = ir::parse(kFlow);
  EXPECT_TRUE(g.ok()) << (g.ok() ? "" : g.error().text());
  auto c = compile_graph(*std::move(g), {});
  EXPECT_TRUE(c.ok()) << (c.ok() ? "" : c.error().text());
  return std::move(c->package);
}

std::vector<Tensor> inputs_of(const runtime::Model& m) {
  auto inputs = seeded_inputs(m, {}, 3);
  EXPECT_TRUE(inputs.ok());
  return *std::move(inputs);
}

TEST(FlowOm, RoundTripAndSameBytes) {
  auto bytes = om::to_bytes(package());
  EXPECT_EQ(bytes, om::to_bytes(package()));
  auto p = read(bytes, true);
  ASSERT_TRUE(p.ok()) << p.error().text();
  EXPECT_EQ(om::to_bytes(*p), bytes);
  auto m = runtime::Model::open(bytes, {1, true, false});
  ASSERT_TRUE(m.ok());
  auto y = run(**m, inputs_of(**m));
  ASSERT_TRUE(y.ok()) << y.error().text();
  EXPECT_EQ((*y)[3].dims(), (std::vector<int64_t>{6, 2}));
}

TEST(FlowOm, WhatNamesNothingIsRefused) {
  auto expect_refused = [](auto change) {
    auto p = package();
    change(p.model);
    EXPECT_FALSE(om::check(p).ok());
  };
  auto flow_task = [](om::ProgramT& p) -> om::TaskT& {
    for (auto& t : p.tasks)
      if (!t->programs.empty()) return *t;
    ADD_FAILURE() << "no task with a program";
    return *p.tasks[0];
  };
  auto data_symbol = [](om::ProgramT& p) -> om::SymbolT& {
    for (auto& s : p.symbols)
      if (s->buffer >= 0) return *s;
    ADD_FAILURE() << "no size from data";
    return *p.symbols[0];
  };
  EXPECT_TRUE(om::check(package()).ok());
  expect_refused([&](auto& m) { flow_task(*m.programs[0]).programs[0] = 0; });
  expect_refused([&](auto& m) { flow_task(*m.programs[0]).programs[0] = static_cast<int>(m.programs.size()); });
  expect_refused([&](auto& m) { flow_task(*m.programs[0]).programs[0] = -1; });
  expect_refused([&](auto& m) { data_symbol(*m.programs[0]).buffer = static_cast<int>(m.programs[0]->buffers.size()); });
  expect_refused([&](auto& m) { data_symbol(*m.programs[0]).task = static_cast<int>(m.programs[0]->tasks.size()); });
  expect_refused([&](auto& m) { data_symbol(*m.programs[0]).task = -1; });
  expect_refused([&](auto& m) { data_symbol(*m.programs[0]).element = -1; });
  expect_refused([&](auto& m) { m.programs[0]->outputs[0]->kind = static_cast<om::ValueKind>(9); });
  expect_refused([&](auto& m) { m.programs[0]->inputs[1]->unranked = true; });
  expect_refused([&](auto& m) { m.programs[0]->inputs[1]->dtype = static_cast<uint8_t>(DType::none); });
  expect_refused([&](auto& m) { m.programs[0]->buffers[0]->kind = static_cast<om::BufferKind>(77); });
  expect_refused([&](auto& m) { m.programs[0]->buffers[0]->value = static_cast<om::ValueKind>(77); });
  expect_refused([&](auto& m) { m.programs[0]->buffers[0]->bytes = static_cast<int>(m.programs[0]->exprs.size()); });
  expect_refused([&](auto& m) { m.programs[0]->segments.back()->end -= 1; });
}

TEST(FlowOm, ProgramsMayNotNestWithoutEnd) {
  auto p = package();
  auto& programs = p.model.programs;
  auto task = [&](om::ProgramT& q) -> std::vector<int>& {
    for (auto& t : q.tasks)
      if (!t->programs.empty()) return t->programs;
    ADD_FAILURE();
    return q.tasks[0]->programs;
  };
  size_t first = programs.size();
  for (int k = 0; k < 200; ++k) {
    programs.push_back(std::make_unique<om::ProgramT>(*programs[0]));
    for (auto& t : programs.back()->tasks) t->programs.clear();
  }
  // Each runs the next one.
  for (size_t k = first; k + 1 < programs.size(); ++k) programs[k]->tasks[0]->programs = {static_cast<int>(k) + 1};
  EXPECT_TRUE(om::check(p).ok() == false);
  for (size_t k = first; k + 1 < programs.size(); ++k) programs[k]->tasks[0]->programs.clear();
  EXPECT_TRUE(om::check(p).ok());
  task(*programs[0])[0] = static_cast<int>(first);
  EXPECT_TRUE(om::check(p).ok());
}

// Metadata changed at random and signed anew: opening and running give an error or values.
TEST(FlowOm, HostileMetadataNeverCrash) {
  auto bytes = om::to_bytes(package());
  uint64_t s = 99;
  int opened = 0, ran = 0;
  for (int round = 0; round < 1200; ++round) {
    auto m = runtime::Model::open(hostile(bytes, s, round, true), {1, false, false});
    if (!m.ok()) continue;
    ++opened;
    auto inputs = small_inputs(**m, 3, 1 << 16);
    if (!inputs) continue;
    // Twice, as a run must not trust what the one before left.
    for (int k = 0; k < 2; ++k) ran += run(**m, *inputs).ok();
  }
  EXPECT_GT(opened, 100);
  EXPECT_GT(ran, 20);
}

}  // namespace
}  // namespace ge
