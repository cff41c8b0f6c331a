#include "cube/cube_util.h"

namespace ge::kernels {
namespace {

TEST(Rotary, AgreesWithItsDefinitionOnEveryIsa) {
  each_isa([] {
    for (int round = 0; round < 200; ++round) {
      const int64_t width = pick_of({0, 2, 4, 10, 32, 34, 64, 128});
      const Dims dims = {pick(0, 2), pick(1, 3), pick(1, 9), width};
      auto table = [&] {
        Dims d = dims;
        for (size_t a = 0; a < 3; ++a)
          if (pick(0, 1)) d[a] = 1;
        if (pick(0, 1)) d[3] = width / 2;
        return Tensor<>::random(d, pick(0, 3) == 0);
      };
      Tensor<> x = Tensor<>::random(dims, pick(0, 3) == 0), y = Tensor<>::random(dims, pick(0, 3) == 0), cos = table(), sin = table();
      Task task;
      task.in = {x.view(), cos.view(), sin.view()}, task.out = {y.view()};
      run_task("vector.rotary", task);
      if (::testing::Test::HasFatalFailure()) return;
      y.expect_gaps_kept();
      for (int64_t r = 0; r < dims[0] * dims[1] * dims[2]; ++r)
        for (int64_t i = 0; i < width; ++i) {
          const int64_t a = r / (dims[1] * dims[2]), b = r / dims[2] % dims[1], c = r % dims[2], half = width / 2;
          const float other = x.at({a, b, c, (i + half) % width});
          const float k = cos.at({a, b, c, i % cos.dims[3]}), s = sin.at({a, b, c, i % sin.dims[3]});
          const float want = x.at({a, b, c, i}) * k + (i < half ? -other : other) * s;
          ASSERT_NEAR(y.at({a, b, c, i}), want, 1e-5);
        }
    }
  });
}

TEST(Rotary, RefusesWhatItCannotDo) {
  Tensor<> x = Tensor<>::dense({1, 2, 3, 8}), table = Tensor<>::dense({1, 1, 3, 8}), odd = Tensor<>::dense({1, 2, 3, 7}),
           wide = Tensor<>::dense({1, 1, 2, 8}), narrow = Tensor<>::dense({1, 1, 3, 1});
  auto fails = [](Tensor<>& in, Tensor<>& cos, Tensor<>& out) {
    Task t;
    t.in = {in.view(), cos.view(), cos.view()}, t.out = {out.view()};
    return !prepare_task("vector.rotary", t).ok();
  };
  EXPECT_FALSE(fails(x, table, x));
  EXPECT_TRUE(fails(odd, table, odd));
  EXPECT_TRUE(fails(x, wide, x));
  EXPECT_TRUE(fails(x, narrow, x));
  EXPECT_TRUE(fails(x, table, table));
}

}  // namespace
}  // namespace ge::kernels
