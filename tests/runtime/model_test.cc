// Running a Model: no allocation on a seen shape, the same bits for any number of threads, many callers,
// clear errors for inputs that do not fit.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "driver/compare.h"
#include "ir/parse.h"

namespace {
std::atomic<int64_t> allocations{0};
}

// Every allocation of the process passes here: operator new ends in malloc.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* malloc(size_t n) {
  ++allocations;
  return __libc_malloc(n);
}
void* calloc(size_t n, size_t m) {
  ++allocations;
  return __libc_calloc(n, m);
}
void* realloc(void* p, size_t n) {
  ++allocations;
  return __libc_realloc(p, n);
}
void* aligned_alloc(size_t a, size_t n) {
  ++allocations;
  return __libc_memalign(a, n);
}
#endif
}

namespace ge {
namespace {

constexpr const char* kModel = R"(graph main(%x: f32[n,3,32,32]) -> (%y) {
  %w: f32[32,3,3,3] = random(1)
  %w2: f32[32,32,3,3] = random(2)
  %b: f32[32] = random(3)
  %v: f32[32,50] = random(4)
  %axes: i64[2] = [2, 3]
  %t = Conv(%x, %w, %b) {pads=[1, 1, 1, 1]}
  %r = Relu(%t)
  %u = Conv(%r, %w2) {pads=[1, 1, 1, 1]}
  %s = Add(%u, %r)
  %p = MaxPool(%s) {kernel_shape=[2, 2], strides=[2, 2]}
  %a = ReduceMean(%p, %axes) {keepdims=0}
  %m = MatMul(%a, %v)
  %y = Softmax(%m) {axis=-1}
})";

std::shared_ptr<runtime::Model> model(int threads) {
  auto c = compile_graph(*ir::parse(kModel), {});
  EXPECT_TRUE(c.ok()) << (c.ok() ? "" : c.error().text());
  auto m = open_compiled(*c, threads);
  EXPECT_TRUE(m.ok());
  return *m;
}

TEST(Model, ASeenShapeRunsWithoutAllocation) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  for (int threads : {1, 2}) {
    auto m = model(threads);
    std::vector<float> x(3 * 3 * 32 * 32, 0.5f), y(3 * 50);
    const void* in[] = {x.data()};
    void* out[] = {y.data()};
    std::vector<std::vector<int64_t>> small = {{1, 3, 32, 32}}, large = {{3, 3, 32, 32}};
    for (auto& shape : {small, large, small, large}) {
      auto b = m->bind(shape);
      ASSERT_TRUE(b.ok());
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(m->run(*b, in, out).ok());
    }
    int64_t before = allocations;
    for (int i = 0; i < 20; ++i)
      for (auto* shape : {&small, &large}) {
        auto b = m->bind(*shape);
        ASSERT_TRUE(m->run(*b, in, out).ok());
      }
    EXPECT_EQ(allocations - before, 0) << threads << " threads";
    // The counter counts.
    before = allocations;
    std::vector<int> something(1000);
    EXPECT_GT(allocations - before, 0) << something.size();
  }
#endif
}

TEST(Model, TheSameBitsForAnyNumberOfThreads) {
  auto inputs = seeded_inputs(*model(1), {{"n", 3}});
  auto want = run(*model(1), *inputs);
  ASSERT_TRUE(want.ok());
  runtime::set_threads_for_test(4);
  for (int threads : {2, 3, 4})
    for (int i = 0; i < 5; ++i) {
      auto got = run(*model(threads), *inputs);
      ASSERT_TRUE(got.ok());
      EXPECT_TRUE((*got)[0].same_bytes((*want)[0])) << threads;
    }
  runtime::set_threads_for_test(0);
}

TEST(Model, ManyCallersAtOnce) {
  auto m = model(1);
  std::vector<std::vector<Tensor>> inputs, want;
  for (int64_t n = 1; n <= 4; ++n) {
    inputs.push_back(*seeded_inputs(*m, {{"n", n}}, 4, static_cast<uint64_t>(n)));
    want.push_back(*run(*m, inputs.back()));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (size_t t = 0; t < 4; ++t)
    callers.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        size_t k = (t + static_cast<size_t>(i)) % inputs.size();
        auto got = run(*m, inputs[k]);
        if (!got.ok() || !(*got)[0].same_bytes(want[k][0])) ++wrong;
      }
    });
  for (auto& c : callers) c.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(m->memory().contexts, 5);
}

TEST(Model, InputsThatDoNotFit) {
  auto m = model(1);
  auto message = [&](std::vector<std::vector<int64_t>> dims) {
    auto b = m->bind(dims);
    EXPECT_FALSE(b.ok());
    return b.ok() ? std::string() : b.error().text();
  };
  EXPECT_NE(message({{1, 3, 32}}).find("3 axes instead of 4"), std::string::npos);
  EXPECT_NE(message({{1, 4, 32, 32}}).find("axis 1 is 4 instead of 3"), std::string::npos);
  EXPECT_NE(message({}).find("takes 1 inputs, got 0"), std::string::npos);
  EXPECT_NE(message({{-1, 3, 32, 32}}).find("negative"), std::string::npos);
}

TEST(Model, NoRowsNoTrouble) {
  auto m = model(2);
  auto y = run(*m, *seeded_inputs(*m, {{"n", 0}}));
  ASSERT_TRUE(y.ok()) << y.error().text();
  EXPECT_EQ((*y)[0].dims(), (std::vector<int64_t>{0, 50}));
}

}  // namespace
}  // namespace ge
