#include <cmath>

#include "cube/cube_util.h"

namespace ge::kernels {
namespace {

TEST(Softmax, AgreesWithItsDefinitionOnEveryIsa) {
  each_isa([] {
    for (int round = 0; round < 300; ++round) {
      const Dims dims = {pick(0, 3), pick(1, 5), pick_of({0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 64, 100, 248})};
      Tensor<> x = Tensor<>::random(dims, false), y = Tensor<>::random(dims, false);
      constexpr float kOdd[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 200.f};
      Task task;
      task.in = {x.view()}, task.out = {y.view()};
      const int64_t n = dims[2];
      if (n > 2 && dims[0] > 0 && round % 5 == 1) const_cast<float&>(*x.pointer({0, 0, pick(0, n - 1)})) = kOdd[pick(0, 5)];
      if (n > 0 && dims[0] > 0 && round % 7 == 1)
        for (int64_t i = 0; i < n; ++i) const_cast<float&>(*x.pointer({0, 0, i})) = -INFINITY;
      run_task("vector.softmax", task);
      if (::testing::Test::HasFatalFailure()) return;
      for (int64_t a = 0; a < dims[0]; ++a)
        for (int64_t b = 0; b < dims[1]; ++b) {
          float top = -INFINITY;
          double sum = 0;
          for (int64_t i = 0; i < n; ++i) top = std::isnan(top) || x.at({a, b, i}) > top || std::isnan(x.at({a, b, i})) ? x.at({a, b, i}) : top;
          for (int64_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(x.at({a, b, i}) - top));
          for (int64_t i = 0; i < n; ++i) {
            const double below = x.at({a, b, i}) - top, want = std::exp(below) / sum, got = y.at({a, b, i});
            if (std::isnan(want)) ASSERT_TRUE(std::isnan(got)) << n;
            else ASSERT_NEAR(got, want, (6e-7 + 2e-8 * std::abs(std::max(below, -100.0))) * want + 1e-37) << n;
          }
        }
    }
  });
}

TEST(Softmax, RefusesWhatItCannotDo) {
  Tensor<> x = Tensor<>::dense({2, 3, 8}), other = Tensor<>::dense({2, 3, 7});
  Task t;
  t.in = {x.view()}, t.out = {x.view()};
  EXPECT_TRUE(prepare_task("vector.softmax", t).ok());
  t.out = {other.view()};
  EXPECT_FALSE(prepare_task("vector.softmax", t).ok());
  t.in = {x.view(), x.view()}, t.out = {x.view()};
  EXPECT_FALSE(prepare_task("vector.softmax", t).ok());
}

}  // namespace
}  // namespace ge::kernels
