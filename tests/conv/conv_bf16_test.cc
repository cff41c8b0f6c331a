// cube.conv with weights in pair panels against plain loops, on inputs and weights that bf16 holds exactly.
#include "conv/conv_case.h"
#include "kernels/cube/bf16.h"
#include "tensor/half.h"

namespace ge::kernels::testing {
namespace {

struct Rounded {
  Rounded(const ConvCase& p, std::mt19937& rng) : o(p, false, rng) {
    auto round = [](float& v) { v = bf16_to_f32(f32_to_bf16(v)); };
    o.x.each(round), o.w.each(round), o.r.each(round);
    const int64_t cg = p.c / p.groups, taps = p.k[0] * p.k[1] * p.k[2], mg = (p.m / p.groups + 15) / 16;
    std::vector<float> panels(static_cast<size_t>(cube::packed_conv_floats(o.w.view(), p.groups)));
    cube::pack_conv_weights(o.w.view(), p.groups, panels.data());
    pairs.resize(static_cast<size_t>(p.groups * mg * cube::pair_rows(taps * cg, cg) * 32));
    cube::pair_panels(panels.data(), p.groups * mg, taps * cg, cg, pairs.data());
    size = static_cast<int64_t>(pairs.size());
  }
  Task task(const ConvCase& p) {
    Task t = o.task(p);
    t.in[1] = View{reinterpret_cast<std::byte*>(pairs.data()), DType::bf16, 1, &size, &one};
    return t;
  }
  ConvOperands o;
  std::vector<uint16_t> pairs;
  int64_t size = 0, one = 1;
};

void check(const ConvCase& p, std::mt19937& rng) {
  Rounded r(p, rng);
  run_kernel("cube.conv", r.task(p), rng);
  if (::testing::Test::HasFatalFailure()) return;
  std::vector<double> want = r.o.want(p);
  expect_close(r.o.y.values(), want, 1e-5, p.text(), r.o.most);
  EXPECT_TRUE(r.o.y.guards_intact() && r.o.x.guards_intact()) << p.text();
  check_halves(p, r.o, r.task(p), "cube.conv", rng() % 8, want, rng);
  if (::testing::Test::HasFatalFailure()) return;
  Task t = r.task(p);
  ProgramOperands program(p, rng);
  program.add_to(t);
  program.apply(want);
  check_halves(p, r.o, t, "cube.conv", rng() % 8, want, rng);
}

TEST(ConvBf16, RandomShapes) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(7);
    for (int done = 0; done < 300;) {
      ConvCase p;
      p.groups = pick(rng, {1, 1, 1, 2, 3});
      p.c = p.groups * pick(rng, {1, 2, 3, 4, 7, 8, 16, 19, 40});
      p.m = p.groups * pick(rng, {1, 3, 8, 16, 17, 33, 50, 64, 81, 130});
      if (cube::narrow_groups(p.c, p.m, p.groups)) continue;
      if (!random_geometry(p, rng) || p.c * p.m * p.taps_times_pixels() > 8'000'000) continue;
      ++done;
      check(p, rng);
      if (HasFailure()) return;
    }
  }
}

TEST(ConvBf16, LargeShapes) {
  auto image = [](int64_t c, int64_t m, int64_t h, int64_t w, int64_t k, int64_t s, int64_t pad) {
    ConvCase p;
    p.c = c, p.m = m, p.in[1] = h, p.in[2] = w, p.k[1] = p.k[2] = k, p.stride[1] = p.stride[2] = s;
    p.begin[1] = p.begin[2] = p.end[1] = p.end[2] = pad;
    return p;
  };
  std::vector<ConvCase> cases = {image(3, 64, 61, 60, 7, 2, 3), image(64, 64, 28, 28, 3, 1, 1), image(300, 70, 9, 9, 1, 1, 0),
                                 image(64, 130, 28, 28, 1, 2, 0), image(1501, 16, 1, 70, 3, 1, 1), image(16, 48, 40, 41, 1, 1, 0)};
  cases.push_back(image(3, 64, 33, 33, 7, 2, 3));
  cases.back().lx = cases.back().ly = cases.back().lr = Layout::first;
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(9);
    for (ConvCase p : cases) {
      ASSERT_TRUE(p.size_output());
      p.act = 1, p.residual = rng() % 2;
      check(p, rng);
      if (HasFailure()) return;
    }
  }
}

// A window of infinite values must not reach its neighbours: rows of an odd number of channels end in a zero.
TEST(ConvBf16, OddChannelsDoNotMix) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(11);
    for (int64_t k : {1, 3}) {
      ConvCase p;
      p.c = 3, p.m = 20, p.in[1] = 5, p.in[2] = 9, p.k[1] = p.k[2] = k, p.begin[1] = p.begin[2] = p.end[1] = p.end[2] = k / 2;
      ASSERT_TRUE(p.size_output());
      Rounded r(p, rng);
      r.o.x.at({0, 0, 2, 4}) = std::numeric_limits<float>::infinity();
      run_kernel("cube.conv", r.task(p), rng);
      for (int64_t y = 0; y < 5; ++y)
        for (int64_t x = 0; x < 9; ++x)
          ASSERT_EQ(std::isfinite(r.o.y.at({0, 1, y, x})), std::abs(y - 2) > k / 2 || std::abs(x - 4) > k / 2) << y << " " << x;
    }
  }
}

TEST(ConvBf16, RefusesWeightsOfAnotherSize) {
  std::mt19937 rng(1);
  ConvCase p;
  p.c = 3, p.m = 20, p.in[1] = p.in[2] = 6, p.k[1] = p.k[2] = 3;
  ASSERT_TRUE(p.size_output());
  Rounded r(p, rng);
  Task t = r.task(p);
  EXPECT_TRUE(find("cube.conv")->prepare(make_call(t)).ok());
  r.size -= 32;
  EXPECT_FALSE(find("cube.conv")->prepare(make_call(t)).ok());
  expect_total("cube.conv", r.task(p));
}

}  // namespace
}  // namespace ge::kernels::testing
