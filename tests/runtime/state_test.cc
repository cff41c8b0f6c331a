// States: where a run appends and where it copies, what it may touch, and what damaged files say about them.
#include "runtime/state.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "driver/compare.h"
#include "driver/notes.h"
#include "ir/parse.h"
#include "om/check.h"
#include "om/om_util.h"

namespace ge {
namespace {

using Dims = std::vector<std::vector<int64_t>>;

// Appends n rows to what is held and gives the sum over all rows so far.
constexpr const char* kAppend = R"(graph main(%x: f32[b,2,n,4], %past: f32[b,2,p,4]) -> (%y, %present) {
  %one: f32[] = [1]
  %axes: i64[1] = [2]
  %new = Add(%x, %one)
  %present = Concat(%past, %new) {axis=2}
  %y = ReduceSum(%present, %axes) {keepdims=0}
})";

Compiled compiled(const char* text, const std::string& state, Options o = {}) {
  auto g = ir::parse(text);
  EXPECT_TRUE(g.ok()) << (g.ok() ? "" : g.error().text());
  o.state = state;
  o.verify_ir = true;
  auto c = compile_graph(*std::move(g), o);
  EXPECT_TRUE(c.ok()) << (c.ok() ? "" : c.error().text());
  return *std::move(c);
}

std::string update_of(const Compiled& c, size_t i = 0) { return notes_of(c.package)["states"][i]["update"].get<std::string>(); }
std::string why_of(const Compiled& c, size_t i = 0) { return notes_of(c.package)["states"][i]["why"].get<std::string>(); }

std::string refusal(const char* text, const std::string& state) {
  auto g = ir::parse(text);
  EXPECT_TRUE(g.ok());
  Options o;
  o.state = state;
  auto c = compile_graph(*std::move(g), o);
  EXPECT_FALSE(c.ok()) << "compiled with " << state;
  if (c.ok()) return "";
  EXPECT_FALSE(c.error().fix.empty()) << c.error().text();
  return c.error().text();
}

// The outputs of one run.
Result<std::vector<Tensor>> step(runtime::Model& m, const std::vector<Tensor>& inputs, runtime::State* state) {
  std::vector<runtime::Value> in;
  for (auto& t : inputs) in.push_back(runtime::Value::tensor(t.dtype(), t.dims(), t.data()));
  GE_TRY(auto out, m.run(in, nullptr, nullptr, state));
  std::vector<Tensor> tensors;
  for (auto& v : out) tensors.push_back(Tensor::borrow(v.dtype, v.dims, v.data, v.keep));
  return tensors;
}

Tensor filled(std::vector<int64_t> dims, float first) {
  Tensor t(DType::f32, dims);
  for (int64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = first + static_cast<float>(i % 7);
  return t;
}

// The same steps with what is held handed in and out.
struct Handed {
  std::shared_ptr<runtime::Model> model;
  Tensor past;
  explicit Handed(const char* text, std::vector<int64_t> dims) : model(*open_compiled(*compile_graph(*ir::parse(text), {}))), past(DType::f32, dims) {
    std::memset(past.mutable_data(), 0, past.bytes());
  }
  Tensor operator()(const Tensor& x) {
    auto y = run(*model, {x, past});
    EXPECT_TRUE(y.ok()) << (y.ok() ? "" : y.error().text());
    past = (*y)[1];
    return (*y)[0];
  }
};

TEST(State, AppendsWhereItLies) {
  auto c = compiled(kAppend, "past:present");
  EXPECT_EQ(update_of(c), "appended");
  auto& p = *c.package.model.programs[0];
  ASSERT_EQ(p.inputs.size(), 1u);
  ASSERT_EQ(p.outputs.size(), 1u);
  auto& s = *c.package.model.states[0];
  EXPECT_EQ(s.dims, (std::vector<int64_t>{-1, 2, 32768, 4}));
  EXPECT_EQ(s.axis, 2);
  auto m = *open_compiled(c);
  Handed handed(kAppend, {2, 2, 0, 4});
  auto state = *m->new_state();
  for (int64_t n : {3, 1, 1, 0, 7, 1}) {
    auto x = filled({2, 2, n, 4}, static_cast<float>(n));
    auto y = step(*m, {x}, state.get());
    ASSERT_TRUE(y.ok()) << y.error().text();
    EXPECT_LE(difference((*y)[0], handed(x)), 1e-6);
  }
  EXPECT_EQ(state->length(), 13);
}

// A process may have some 65,000 pieces of address space: many states leave most of them to others.
TEST(State, ManyAtOneTime) {
  auto m = *open_compiled(compiled(kAppend, "past:present"));
  std::vector<std::shared_ptr<runtime::State>> states;
  auto x = filled({1, 2, 3, 4}, 1);
  auto want = *step(*m, {x}, (*m->new_state()).get());
  for (int i = 0; i < 5000; ++i) {
    states.push_back(*m->new_state());
    auto y = step(*m, {x}, states.back().get());
    ASSERT_TRUE(y.ok()) << i << y.error().text();
    ASSERT_TRUE((*y)[0].same_bytes(want[0]));
  }
  std::ifstream maps("/proc/self/maps");
  int64_t pieces = std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
  EXPECT_GT(pieces, 1000);
  EXPECT_LT(pieces, 25000);
  EXPECT_LT(m->memory().state, int64_t{5000} * 4 * 4096);
  states.clear();
  EXPECT_EQ(m->memory().state, 0);
}

// What a step writes into states, by its program: rows of them. Copies tasks from states are counted apart.
struct Moved {
  int64_t written = 0, read_by_copies = 0;
};
Moved moved(const runtime::Model& m, const runtime::Binding& b) {
  Moved sum;
  for (auto& t : b.tasks) {
    for (int32_t k = 0; k < t.inputs + t.outputs; ++k) {
      auto& at = b.placed[static_cast<size_t>(t.view0 + k)];
      if (at.buffer < 0 || m.program().buffers[static_cast<size_t>(at.buffer)]->kind != om::BufferKind::state) continue;
      auto& v = b.views[static_cast<size_t>(t.view0 + k)];
      int64_t bytes = v.count() * size_of(v.dtype);
      if (k >= t.inputs) sum.written += bytes;
      else if (t.kernel->name == "move.copy") sum.read_by_copies += bytes;
    }
  }
  return sum;
}

TEST(State, AStepMovesWhatATokenTakes) {
  auto m = *open_compiled(compiled(kAppend, "past:present"));
  for (int64_t length : {0, 5, 1000}) {
    auto b = m->bind(Dims{{1, 2, 1, 4}}, {{1, 2, length, 4}});
    ASSERT_TRUE(b.ok()) << b.error().text();
    auto sum = moved(*m, **b);
    EXPECT_EQ(sum.written, 2 * 4 * 4) << length;
    EXPECT_EQ(sum.written, m->memory().state_token);
    EXPECT_EQ(sum.read_by_copies, 0);
  }
}

TEST(State, WhatIsReadAsItWasBefore) {
  // Readers of the past beside the Concat, before and after it, and outputs that are what is held.
  constexpr const char* kText = R"(graph main(%x: f32[1,n,4], %past: f32[1,p,4]) -> (%y, %present, %before, %again) {
  %axes: i64[1] = [1]
  %present = Concat(%past, %x) {axis=1}
  %all = ReduceSum(%present, %axes) {keepdims=1}
  %old = ReduceSum(%past, %axes) {keepdims=1}
  %y = Sub(%all, %old)
  %before = Neg(%past)
  %again = Identity(%present)
})";
  auto m = *open_compiled(compiled(kText, "past:present:1:40"));
  auto state = *m->new_state();
  auto plain = *open_compiled(*compile_graph(*ir::parse(kText), {}));
  Tensor past(DType::f32, {1, 0, 4});
  for (int64_t n : {2, 1, 5, 1}) {
    auto x = filled({1, n, 4}, static_cast<float>(n));
    auto y = step(*m, {x}, state.get());
    auto want = run(*plain, {x, past});
    ASSERT_TRUE(y.ok() && want.ok()) << y.error().text();
    for (size_t i : {0u, 1u, 2u}) EXPECT_LE(difference((*y)[i], (*want)[i == 0 ? 0 : i + 1]), 1e-6) << i;
    past = (*want)[1];
  }
}

// Every graph gives what it gives with its state handed in, however the state is brought up to date.
void expect_same(const char* text, const std::string& option, const std::string& update, std::vector<int64_t> empty, const std::vector<std::vector<int64_t>>& xs, const std::string& why = "") {
  for (bool reuse : {true, false})
    for (bool reference : {false, true}) {
      Options o;
      o.reuse_memory = reuse, o.reference = reference;
      auto c = compiled(text, option, o);
      if (reuse && !reference) {
        EXPECT_EQ(update_of(c), update) << text << why_of(c);
        EXPECT_NE(why_of(c).find(why), std::string::npos) << why_of(c);
      }
      auto m = *open_compiled(c);
      auto state = *m->new_state();
      Handed handed(text, empty);
      float first = 0;
      for (auto& dims : xs) {
        auto x = filled(dims, first += 1);
        auto y = step(*m, {x}, state.get());
        ASSERT_TRUE(y.ok()) << text << y.error().text();
        EXPECT_LE(difference((*y)[0], handed(x)), 1e-6) << text;
        EXPECT_EQ(state->shapes()[0].second, handed.past.dims());
      }
    }
}

TEST(State, WhatCannotBeAppendedIsCopied) {
  const std::vector<std::vector<int64_t>> xs = {{2, 3}, {1, 3}, {4, 3}, {0, 3}, {1, 3}};
  expect_same("graph main(%x: f32[n,3], %past: f32[p,3]) -> (%y, %present) {\n  %present = Concat(%x, %past) {axis=0}\n  %y = Neg(%present)\n}", "past:present:0:20", "copied", {0, 3}, xs, "does not begin with past");
  expect_same("graph main(%x: f32[n,3], %past: f32[p,3]) -> (%y, %present) {\n  %c = Concat(%past, %x) {axis=0}\n  %present = Exp(%c)\n  %y = Neg(%c)\n}", "past:present:0:20", "copied", {0, 3}, {{2, 3}, {1, 3}}, "Exp");
  // The last two rows of all: a window, seen through what is held and what is new.
  expect_same(R"(graph main(%x: f32[n,3], %past: f32[p,3]) -> (%y, %present) {
  %from: i64[1] = [-2]
  %to: i64[1] = [9223372036854775807]
  %axes: i64[1] = [0]
  %c = Concat(%past, %x) {axis=0}
  %present = Slice(%c, %from, %to, %axes)
  %y = Neg(%c)
})", "past:present:0:20", "copied", {0, 3}, xs);
  // Twice the same in it.
  expect_same("graph main(%x: f32[n,3], %past: f32[p,3]) -> (%y, %present) {\n  %present = Concat(%past, %x, %past) {axis=0}\n  %y = Neg(%present)\n}", "past:present:0:60", "appended", {0, 3}, xs);
  // A view as what is new, and one that something else reads too.
  expect_same("graph main(%x: f32[n,3], %past: f32[p,1,3]) -> (%y, %present) {\n  %axes: i64[1] = [1]\n  %u = Unsqueeze(%x, %axes)\n  %present = Concat(%past, %u) {axis=0}\n  %y = Neg(%present)\n}", "past:present:0:20", "appended", {0, 1, 3}, xs);
}

TEST(State, WhatIsHeldStaysAndReads) {
  // The second state is handed on, the third only read.
  constexpr const char* kText = R"(graph main(%x: f32[1,n,4], %past: f32[1,p,4], %cross: f32[1,q,4], %only: f32[1,r,4]) -> (%y, %present, %kept) {
  %axes: i64[1] = [1]
  %present = Concat(%past, %x) {axis=1}
  %a = ReduceSum(%present, %axes) {keepdims=1}
  %b = ReduceSum(%cross, %axes) {keepdims=1}
  %c = ReduceSum(%only, %axes) {keepdims=1}
  %ab = Add(%a, %b)
  %y = Add(%ab, %c)
  %kept = Identity(%cross)
})";
  auto fill = compiled("graph main(%x: f32[1,n,4]) -> (%present, %kept, %only) {\n  %one: f32[] = [1]\n  %present = Add(%x, %one)\n  %kept = Exp(%x)\n  %only = Neg(%x)\n}", ":present:1:30;:kept:1:30;:only:1:30");
  for (size_t i : {0u, 1u, 2u}) EXPECT_EQ(update_of(fill, i), "written");
  auto c = compiled(kText, "past:present:1:30;cross:kept:1:30;only::1:30");
  EXPECT_EQ(update_of(c, 0), "appended");
  EXPECT_EQ(update_of(c, 1), "kept");
  EXPECT_EQ(update_of(c, 2), "kept");
  auto prefill = *open_compiled(fill), decode = *open_compiled(c);
  auto state = *prefill->new_state();
  auto x = filled({1, 3, 4}, 0.25f);
  ASSERT_TRUE(step(*prefill, {x}, state.get()).ok());
  for (int64_t i = 0; i < 3; ++i) {
    auto y = step(*decode, {filled({1, 2, 4}, 1)}, state.get());
    ASSERT_TRUE(y.ok()) << y.error().text();
    for (int64_t k = 0; k < 4; ++k) {
      double want = 0;
      for (int64_t r = 0; r < 3; ++r) want += 1 + x.at(r * 4 + k) + std::exp(x.at(r * 4 + k)) - x.at(r * 4 + k);
      for (int64_t r = 0; r < 2 * (i + 1); ++r) want += 1 + static_cast<double>((r % 2 * 4 + k) % 7);
      EXPECT_NEAR((*y)[0].at(k), want, 1e-4 * want);
    }
  }
  EXPECT_EQ(state->lengths(), (std::vector<std::pair<std::string, int64_t>>{{"present", 9}, {"kept", 3}, {"only", 3}}));
}

TEST(State, TwoThatChangePlaces) {
  constexpr const char* kText = R"(graph main(%x: f32[2], %a: f32[2], %b: f32[2]) -> (%y, %c, %d) {
  %y = Add(%x, %a)
  %c = Identity(%b)
  %d = Identity(%a)
})";
  auto c = compiled(kText, "a:c;b:d");
  auto m = *open_compiled(c);
  auto state = *m->new_state();
  // Zeros at first: swapped they are zeros. Bring something in by way of another program with the same states.
  auto fill = *open_compiled(compiled("graph main(%x: f32[2], %a: f32[2], %b: f32[2]) -> (%y, %c, %d) {\n  %y = Neg(%x)\n  %c = Add(%a, %x)\n  %d = Sub(%b, %x)\n}", "a:c;b:d"));
  ASSERT_TRUE(step(*fill, {filled({2}, 5)}, state.get()).ok());
  for (int i = 0; i < 4; ++i) {
    Tensor zero(DType::f32, {2});
    std::memset(zero.mutable_data(), 0, zero.bytes());
    auto y = step(*m, {zero}, state.get());
    ASSERT_TRUE(y.ok()) << y.error().text();
    EXPECT_EQ((*y)[0].at(0), i % 2 ? -5 : 5);
    EXPECT_EQ((*y)[0].at(1), i % 2 ? -6 : 6);
  }
}

// A cache of a fixed size, in which some rows are replaced.
TEST(State, FixedSizesAreUpdatedWhereTheyLie) {
  constexpr const char* kNd = R"(graph main(%x: f32[2,3], %at: i64[2,1], %past: f32[8,3]) -> (%y, %present) {
  %old = ArgMax(%past) {axis=0}
  %present = ScatterND(%past, %at, %x)
  %axes: i64[1] = [0]
  %new = ReduceSum(%present, %axes) {keepdims=1}
  %o = Cast(%old) {to=1}
  %y = Add(%o, %new)
})";
  constexpr const char* kElements = R"(graph main(%x: f32[2,3], %at: i64[2,3], %past: f32[8,3]) -> (%y, %present) {
  %present = ScatterElements(%past, %at, %x) {axis=0, reduction="add"}
  %y = Neg(%present)
})";
  constexpr const char* kTensor = R"(graph main(%x: f32[b,2,3], %at: i64[b], %past: f32[b,8,3]) -> (%y, %present) {
  %present = TensorScatter(%past, %x, %at) {axis=1}
  %y = Neg(%present)
})";
  // Reads what was there after it is gone: that needs a copy.
  constexpr const char* kLate = R"(graph main(%x: f32[2,3], %at: i64[2,1], %past: f32[8,3]) -> (%y, %present) {
  %present = ScatterND(%past, %at, %x)
  %p = Exp(%present)
  %axes: i64[1] = [0]
  %v = Transpose(%past) {perm=[1, 0]}
  %w = Transpose(%p) {perm=[1, 0]}
  %y = Sub(%w, %v)
})";
  struct Case {
    const char* text;
    std::vector<int64_t> x, at, past;
    const char* update;
  };
  for (auto& c : {Case{kNd, {2, 3}, {2, 1}, {8, 3}, "replaced"}, Case{kElements, {2, 3}, {2, 3}, {8, 3}, "replaced"}, Case{kTensor, {2, 2, 3}, {2}, {2, 8, 3}, "replaced"}, Case{kLate, {2, 3}, {2, 1}, {8, 3}, "copied"}})
    for (bool reuse : {true, false})
      for (bool reference : {false, true}) {
        Options o;
        o.reuse_memory = reuse, o.reference = reference;
        auto done = compiled(c.text, "past:present", o);
        if (reuse) EXPECT_EQ(update_of(done), c.update) << why_of(done);
        auto m = *open_compiled(done);
        auto plain = *open_compiled(*compile_graph(*ir::parse(c.text), {}));
        auto state = *m->new_state();
        Tensor past(DType::f32, c.past);
        std::memset(past.mutable_data(), 0, past.bytes());
        for (int64_t i = 0; i < 4; ++i) {
          Tensor at(DType::i64, c.at);
          for (int64_t k = 0; k < at.count(); ++k) at.as<int64_t>()[k] = (3 * i + 2 * (k % 2)) % 6;
          auto x = filled(c.x, static_cast<float>(i + 1));
          auto y = step(*m, {x, at}, state.get());
          auto want = run(*plain, {x, at, past});
          ASSERT_TRUE(y.ok() && want.ok()) << c.text << (y.ok() ? want : y).error().text();
          EXPECT_LE(difference((*y)[0], (*want)[0]), 1e-6) << c.text << reuse << reference;
          past = (*want)[1];
        }
        ASSERT_TRUE(state->reset().ok());
        EXPECT_EQ(state->shapes()[0].second, c.past[0] == 2 ? std::vector<int64_t>() : c.past);
        auto saved = *state->fork();
        EXPECT_EQ(saved->shapes(), state->shapes());
      }
}

TEST(State, SizesFromData) {
  // Appends the rows of x that begin with a positive number: how many only the run tells.
  constexpr const char* kText = R"(graph main(%x: f32[n,2], %past: f32[p,2]) -> (%y, %present) {
  %zero: f32[] = [0]
  %start: i64[1] = [0]
  %end: i64[1] = [1]
  %axes: i64[1] = [1]
  %first = Slice(%x, %start, %end, %axes)
  %good = Greater(%first, %zero)
  %flat: i64[1] = [-1]
  %mask = Reshape(%good, %flat)
  %rows = Compress(%x, %mask) {axis=0}
  %present = Concat(%past, %rows) {axis=0}
  %y = Neg(%present)
})";
  auto m = *open_compiled(compiled(kText, "past:present:0:6"));
  EXPECT_FALSE(m->plain());
  auto state = *m->new_state();
  Tensor x(DType::f32, {4, 2});
  for (int64_t i = 0; i < 8; ++i) x.as<float>()[i] = i % 4 == 0 ? -1.f : static_cast<float>(i);
  for (int64_t i = 1; i <= 3; ++i) {
    auto y = step(*m, {x}, state.get());
    ASSERT_TRUE(y.ok()) << y.error().text();
    EXPECT_EQ((*y)[0].dims(), (std::vector<int64_t>{2 * i, 2}));
    EXPECT_EQ((*y)[0].at(2 * i * 2 - 1), -7);
  }
  auto y = step(*m, {x}, state.get());
  ASSERT_FALSE(y.ok());
  EXPECT_NE(y.error().text().find("would hold 8 entries along axis 0, allowed are 6"), std::string::npos) << y.error().text();
  EXPECT_EQ(state->length(), 6);
}

TEST(State, WhatCannotBeAState) {
  constexpr const char* kText = R"(graph main(%x: f32[b,2,n,4], %past: f32[b,2,p,4], %fixed: f32[1,2,8,4], %half: f16[b,2,p,4], %wide: f32[b,h,p,4]) -> (%present, %longer, %whole, %w) {
  %present = Concat(%past, %x) {axis=2}
  %longer = Concat(%fixed, %x) {axis=2}
  %whole = Cast(%half) {to=1}
  %w = Concat(%wide, %wide) {axis=2}
})";
  EXPECT_NE(refusal(kText, "pasd:present").find("did you mean 'past'"), std::string::npos);
  EXPECT_NE(refusal(kText, "past:presend").find("did you mean 'present'"), std::string::npos);
  EXPECT_NE(refusal(kText, "past").find("in:out"), std::string::npos);
  EXPECT_NE(refusal(kText, ":").find("does not have"), std::string::npos);
  EXPECT_NE(refusal(kText, "fixed:longer").find("fixed size 8"), std::string::npos);
  EXPECT_NE(refusal(kText, "half:present").find("f16"), std::string::npos);
  EXPECT_NE(refusal(kText, "wide:w").find("axis 1"), std::string::npos);
  EXPECT_NE(refusal(kText, "past:present;past:whole").find("another state"), std::string::npos);
  EXPECT_NE(refusal(kText, "past:present:1").find("axis 2"), std::string::npos);
  auto bad = [&](const char* option) {
    auto g = ir::parse(kText);
    Options o;
    o.state = option;
    auto c = compile_graph(*std::move(g), o);
    return c.ok() ? std::string() : c.error().code;
  };
  EXPECT_EQ(bad("past:present:7"), code::kInvalidValue);
  EXPECT_EQ(bad("past:present:2:0"), code::kInvalidValue);
  EXPECT_EQ(bad("auto:0"), code::kInvalidValue);
}

TEST(State, NamesWithColons) {
  auto c = compiled("graph main(%x:0: f32[n,3], %past:0: f32[p,3]) -> (%present:0) {\n  %present:0 = Concat(%past:0, %x:0) {axis=0}\n}", "past:0:present:0:0:12");
  EXPECT_EQ(c.package.model.states[0]->dims, (std::vector<int64_t>{12, 3}));
}

// ---- files

om::Package package() { return compiled(kAppend, "past:present:2:16").package; }

TEST(State, DamagedTablesAreRefused) {
  EXPECT_TRUE(om::check(package()).ok());
  auto refused = [](auto change) {
    auto p = package();
    change(p.model, *p.model.programs[0]);
    EXPECT_FALSE(om::check(p).ok());
  };
  refused([](auto&, auto& p) { p.states[0]->state = 1; });
  refused([](auto&, auto& p) { p.states[0]->state = -1; });
  refused([](auto&, auto& p) { p.states[0]->in.pop_back(); });
  refused([](auto&, auto& p) { p.states[0]->out[1] = static_cast<int>(p.exprs.size()); });
  refused([](auto&, auto& p) { p.states[0]->capacity.clear(); });
  refused([](auto& m, auto&) { m.states[0]->axis = 4; });
  refused([](auto& m, auto&) { m.states[0]->dtype = 200; });
  refused([](auto& m, auto&) { m.states[0]->dims[1] = -1; });
  refused([](auto& m, auto&) { m.states[0]->name = "\xff"; });
}

// A program may touch the rows that it holds or writes, and no others: the rest is not there.
TEST(State, ViewsBeyondTheRowsAreRefused) {
  auto bound = [](auto change) {
    auto p = package();
    change(*p.model.programs[0]);
    auto m = runtime::Model::from(std::move(p), {});
    if (!m.ok()) return m.error().code;
    auto b = (*m)->bind(Dims{{1, 2, 1, 4}}, {{1, 2, 3, 4}});
    return b.ok() ? std::string("bound") : b.error().code;
  };
  EXPECT_EQ(bound([](auto&) {}), "bound");
  auto state_views = [](om::ProgramT& p, auto f) {
    for (auto& t : p.tasks)
      for (auto* list : {&t->alternatives[0]->ins, &t->alternatives[0]->outs})
        for (auto& v : *list)
          if (v->buffer >= 0 && p.buffers[static_cast<size_t>(v->buffer)]->kind == om::BufferKind::state) f(*v);
  };
  auto constant = [](om::ProgramT& p, int64_t n) {
    p.exprs.push_back(om::Expr(n, 0, 0, 0, om::ExprOp::constant));
    return static_cast<int>(p.exprs.size()) - 1;
  };
  int views = 0;
  EXPECT_EQ(bound([&](auto& p) { int e = constant(p, 9 * 4); state_views(p, [&](auto& v) { v.offset = e, ++views; }); }), code::kParse);
  EXPECT_GE(views, 2);
  EXPECT_NE(bound([&](auto& p) { int e = constant(p, -4); state_views(p, [&](auto& v) { v.offset = e; }); }), "bound");
  EXPECT_NE(bound([&](auto& p) { int e = constant(p, 12); state_views(p, [&](auto& v) { if (!v.strides.empty()) v.strides[2] = e; }); }), "bound");
  EXPECT_NE(bound([&](auto& p) { int e = constant(p, 64 * 1000); state_views(p, [&](auto& v) { if (!v.strides.empty()) v.strides[1] = e; }); }), "bound");
  EXPECT_NE(bound([&](auto& p) { p.states[0]->capacity[2] = constant(p, 1000); }), "bound");
  EXPECT_NE(bound([&](auto& p) { p.states[0]->out[2] = constant(p, 17); }), "bound");
  EXPECT_NE(bound([&](auto& p) { p.states[0]->out[2] = constant(p, -1); }), "bound");
}

// Metadata changed at random and signed anew: opening and running give an error or values.
TEST(State, HostileMetadataNeverCrash) {
  auto bytes = om::to_bytes(package());
  uint64_t s = 7;
  int opened = 0, ran = 0;
  for (int round = 0; round < 3000; ++round) {
    auto m = runtime::Model::open(hostile(bytes, s, round, true), {1, false, false});
    if (!m.ok()) continue;
    ++opened;
    auto inputs = small_inputs(**m, 3, 1 << 16);
    if (!inputs) continue;
    for (int k = 0; k < 3; ++k) ran += run(**m, *inputs).ok();
    // None where what the file says of its size cannot be had.
    if (auto state = (*m)->default_state(); state.ok() && *state) (void)(*state)->to_bytes();
  }
  EXPECT_GT(opened, 300);
  EXPECT_GT(ran, 300);
}

TEST(State, TheSameBytesTwice) { EXPECT_EQ(om::to_bytes(package()), om::to_bytes(package())); }

}  // namespace
}  // namespace ge
