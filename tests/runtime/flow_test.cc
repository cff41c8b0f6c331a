// Programs that are more than a task list: nested graphs, sizes that data decide, values that are no tensors.
#include <numeric>
#include <set>

#include "driver/compare.h"
#include "ir/parse.h"
#include "runtime/value.h"

namespace ge {
namespace {

using runtime::Value;

std::shared_ptr<runtime::Model> model_of(const char* text, bool reuse = true, int threads = 2) {
  auto g = ir::parse(text);
  EXPECT_TRUE(g.ok()) << (g.ok() ? "" : g.error().text());
  Options o;
  o.reuse_memory = reuse;
  auto c = compile_graph(*std::move(g), o);
  EXPECT_TRUE(c.ok()) << (c.ok() ? "" : c.error().text());
  auto m = open_compiled(*c, threads);
  EXPECT_TRUE(m.ok()) << (m.ok() ? "" : m.error().text());
  return *m;
}

template <class T>
Tensor list(DType t, std::vector<T> v) {
  return Tensor::of<T>(t, {static_cast<int64_t>(v.size())}, std::span<const T>(v));
}
Tensor scalar(bool b) {
  Tensor t(DType::boolean, {});
  t.as<uint8_t>()[0] = b;
  return t;
}

template <class T>
std::vector<T> values(const Tensor& t) {
  return {t.as<T>(), t.as<T>() + t.count()};
}

constexpr const char* kIf = R"(graph main(%c: bool[], %x: f32[n], %k: f32[n]) -> (%y) {
  %e = Exp(%x)
  %y = If(%c, %e, %k) {captures=2, then_branch={graph t(%a: f32[?], %b: f32[?]) -> (%z) {
    %m = Mul(%a, %b)
    %z = Neg(%m)
  }}, else_branch={graph e(%a: f32[?], %b: f32[?]) -> (%z) {
    %z = Concat(%b, %b) {axis=0}
  }}}
})";

TEST(Flow, AnIfRunsOneBranchAndItsOutputHasTheSizesOfThatBranch) {
  for (bool reuse : {true, false}) {
    auto m = model_of(kIf, reuse);
    for (int64_t n : {1, 3, 1000}) {
      std::vector<float> x(static_cast<size_t>(n)), k(x.size());
      std::iota(k.begin(), k.end(), 1.0f);
      auto yes = run(*m, {scalar(true), list(DType::f32, x), list(DType::f32, k)});
      ASSERT_TRUE(yes.ok()) << yes.error().text();
      auto no = run(*m, {scalar(false), list(DType::f32, x), list(DType::f32, k)});
      ASSERT_TRUE(no.ok()) << no.error().text();
      ASSERT_EQ((*yes)[0].dims(), std::vector<int64_t>{n});
      ASSERT_EQ((*no)[0].dims(), std::vector<int64_t>{2 * n});
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_EQ((*yes)[0].at(i), -(i + 1.0));
        EXPECT_EQ((*no)[0].at(i), i + 1.0);
        EXPECT_EQ((*no)[0].at(n + i), i + 1.0);
      }
    }
  }
}

TEST(Flow, ALoopCarriesAndStacksAndMayNotRunAtAll) {
  auto m = model_of(R"(graph main(%n: i64[], %x: f32[2]) -> (%y, %s) {
    %none: bool[] = [1]
    %y, %s = Loop(%n, %none, %x, %x) {captures=1, body={graph b(%i: i64[], %c: bool[], %v: f32[?], %w: f32[?]) -> (%c, %o, %p) {
      %o = Add(%v, %w)
      %p = Neg(%o)
    }}}
  })");
  for (int64_t n : {0, 1, 5}) {
    Tensor trips = Tensor::scalar_i64(n);
    auto got = run(*m, {trips, list<float>(DType::f32, {1, 10})});
    ASSERT_TRUE(got.ok()) << got.error().text();
    EXPECT_EQ(values<float>((*got)[0]), (std::vector<float>{1.0f + static_cast<float>(n), 10.0f + 10.0f * static_cast<float>(n)}));
    ASSERT_EQ((*got)[1].dims(), (std::vector<int64_t>{n, 2}));
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ((*got)[1].at(2 * i), -2.0 - static_cast<double>(i));
  }
  auto bad = run(*m, {Tensor::scalar_i64(2), list<float>(DType::f32, {1, 2, 3})});
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, code::kInputMismatch);
}

constexpr const char* kSelect = R"(graph main(%x: f32[n]) -> (%y, %i, %s) {
  %zero: f32[] = [0]
  %one: i64[1] = [1]
  %p = Greater(%x, %zero)
  %i = NonZero(%p)
  %t = Transpose(%i) {perm=[1, 0]}
  %g = GatherND(%x, %t)
  %e = Exp(%g)
  %u = Unsqueeze(%e, %one)
  %y = Add(%u, %e)
  %s = Shape(%y)
})";

TEST(Flow, SizesFromDataGoThroughTheKernelsThatFollow) {
  for (int threads : {1, 2}) {
    auto m = model_of(kSelect, true, threads);
    for (auto& x : std::vector<std::vector<float>>{{}, {-1}, {2}, {0, 1, -1, 3, 2}, std::vector<float>(300, 0.5f)}) {
      std::vector<int64_t> where;
      for (size_t i = 0; i < x.size(); ++i)
        if (x[i] > 0) where.push_back(static_cast<int64_t>(i));
      auto n = static_cast<int64_t>(where.size());
      auto got = run(*m, {list(DType::f32, x)});
      ASSERT_TRUE(got.ok()) << got.error().text();
      ASSERT_EQ((*got)[0].dims(), (std::vector<int64_t>{n, n}));
      ASSERT_EQ((*got)[1].dims(), (std::vector<int64_t>{1, n}));
      EXPECT_EQ(values<int64_t>((*got)[1]), where);
      EXPECT_EQ(values<int64_t>((*got)[2]), (std::vector<int64_t>{n, n}));
      for (int64_t r = 0; r < n; ++r)
        for (int64_t k = 0; k < n; ++k)
          EXPECT_NEAR((*got)[0].at(r * n + k), std::exp(x[static_cast<size_t>(where[static_cast<size_t>(r)])]) + std::exp(x[static_cast<size_t>(where[static_cast<size_t>(k)])]), 1e-4);
    }
  }
}

TEST(Flow, BuffersThatTheCallerGivesNeedSizesThatTheInputsGive) {
  auto m = model_of(kSelect);
  auto b = m->bind(std::vector<std::vector<int64_t>>{{4}});
  ASSERT_TRUE(b.ok());
  EXPECT_TRUE((*b)->open_outputs);
  std::vector<float> x(4), y(16);
  const void* in[] = {x.data()};
  void* out[] = {y.data(), y.data(), y.data()};
  auto s = m->run(*b, in, out);
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().code, code::kUnsupportedOp);
}

TEST(Flow, MemoryIsBoundedByTheLargestRun) {
  auto m = model_of(kSelect, true, 1);
  std::vector<float> large(500, 1.0f);
  ASSERT_TRUE(run(*m, {list(DType::f32, large)}).ok());
  int64_t held = m->memory().pool;
  EXPECT_GT(held, 500 * 12);   // indices and entries
  for (int round = 0; round < 300; ++round) {
    std::vector<float> x(static_cast<size_t>(1 + round * 7 % 499), round % 3 ? 1.0f : -1.0f);
    ASSERT_TRUE(run(*m, {list(DType::f32, x)}).ok());
  }
  EXPECT_LE(m->memory().pool, 4 * held);
  m->trim();
  EXPECT_EQ(m->memory().pool, 0);
}

TEST(Flow, SequencesHoldTensorsOfAnySize) {
  auto m = model_of(R"(graph main(%x: f32[n], %at: i64[]) -> (%s, %e, %j) {
    %two = Concat(%x, %x) {axis=0}
    %a = SequenceConstruct(%x, %two)
    %b = SequenceInsert(%a, %x, %at)
    %s = SequenceErase(%b)
    %e = SequenceAt(%b, %at)
    %j = ConcatFromSequence(%b) {axis=0}
  })");
  std::vector<float> x{1, 2};
  int64_t at = 0;
  auto got = m->run(std::vector{Value::tensor(DType::f32, std::array<int64_t, 1>{2}, x.data()), Value::tensor(DType::i64, {}, &at)});
  ASSERT_TRUE(got.ok()) << got.error().text();
  ASSERT_EQ((*got)[0].kind, Value::Kind::sequence);
  ASSERT_EQ((*got)[0].items.size(), 2u);
  EXPECT_EQ((*got)[0].items[0].dims, (std::vector<int64_t>{2}));
  EXPECT_EQ((*got)[1].dims, (std::vector<int64_t>{2}));
  EXPECT_EQ((*got)[2].dims, (std::vector<int64_t>{8}));
  EXPECT_EQ(reinterpret_cast<const float*>((*got)[2].data)[3], 2.0f);
  at = 7;
  auto bad = m->run(std::vector{Value::tensor(DType::f32, std::array<int64_t, 1>{2}, x.data()), Value::tensor(DType::i64, {}, &at)});
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().message.find("position 7 of a sequence of 2"), std::string::npos);
}

TEST(Flow, ValuesOfAnotherKindOrTypeAreRefused) {
  auto m = model_of(kIf);
  std::vector<float> x{1};
  bool c = true;
  auto condition = Value::tensor(DType::boolean, {}, &c), good = Value::tensor(DType::f32, std::array<int64_t, 1>{1}, x.data());
  Value sequence;
  sequence.kind = Value::Kind::sequence;
  sequence.dtype = DType::f32;
  EXPECT_TRUE(m->run(std::vector{condition, good, good}).ok());
  for (auto& wrong : {sequence, Value::tensor(DType::i64, std::array<int64_t, 1>{1}, x.data()), Value{}}) {
    auto r = m->run(std::vector{condition, good, wrong});
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.error().code, code::kInputMismatch);
  }
  EXPECT_FALSE(m->run(std::vector{condition, good}).ok());
}

TEST(Blocks, SizesThatAreNoLongerAskedForMakeRoomForThoseThatAre) {
  runtime::Blocks blocks;
  auto run = [&](std::vector<int64_t> sizes) {
    std::vector<std::shared_ptr<std::byte>> held;
    std::set<std::byte*> at;
    for (int64_t n : sizes) held.push_back(*blocks.take(n)), at.insert(held.back().get());
    return at;
  };
  run({1 << 20, 3 << 20});
  const int64_t most = blocks.bytes();
  for (int i = 0; i < 40; ++i) run({400 << 10, 2500 << 10});
  auto first = run({400 << 10, 2500 << 10});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run({400 << 10, 2500 << 10}), first);
  EXPECT_LE(blocks.bytes(), most);
  // A small block after the large one was given back does not drive it out.
  std::byte* large = blocks.take(3 << 20)->get();
  for (int i = 0; i < 3; ++i) {
    blocks.take(1 << 10)->reset();
    EXPECT_EQ(blocks.take(3 << 20)->get(), large);
  }
}

}  // namespace
}  // namespace ge
