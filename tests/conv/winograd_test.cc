// cube.winograd against plain loops.
#include "conv/conv_case.h"
#include "kernels/cube/winograd.h"

namespace ge::kernels::testing {
namespace {

// Windows of 3x3 or 1x3 with any padding.
bool random_window(ConvCase& p, std::mt19937& rng) {
  p.rank = static_cast<int>(pick(rng, {1, 2, 2, 2, 3}));
  p.n = pick(rng, {0, 1, 1, 1, 2, 3});
  for (int a = 3 - p.rank; a < 3; ++a) {
    p.in[a] = pick(rng, {1, 2, 3, 4, 5, 7, 8, 13, 17, 23});
    p.k[a] = a == 0 ? 1 : 3;
    p.begin[a] = pick(rng, {0, 0, 1, 1, 2, 3});
    p.end[a] = pick(rng, {0, 0, 1, 1, 2, 3});
    if (a > 0) p.dilation[a] = pick(rng, {1, 1, 1, 2, 3, 5});
  }
  if (p.rank > 1 && rng() % 4 == 0) p.k[1] = 1;
  p.act = pick(rng, {0, 1, 2, 3});
  p.bias = rng() % 4;
  p.residual = rng() % 3 == 0;
  p.lx = any_layout(rng), p.ly = any_layout(rng), p.lr = rng() % 2 ? p.ly : any_layout(rng);
  return p.size_output();
}

struct WinogradOperands : ConvOperands {
  WinogradOperands(const ConvCase& p, int tile, std::mt19937& rng) : ConvOperands(p, false, rng), u(floats({cube::packed_winograd_floats(w.view(), tile)})) {
    cube::pack_winograd_weights(w.view(), tile, u.view().as<float>());
  }
  Task winograd_task(const ConvCase& p) {
    Task t = task(p);
    t.in[1] = u.view();
    return t;
  }
  Floats u;
};

void check(const ConvCase& p, int tile, std::mt19937& rng) {
  WinogradOperands o(p, tile, rng);
  run_kernel("cube.winograd", o.winograd_task(p), rng);
  if (::testing::Test::HasFatalFailure()) return;
  std::vector<double> want = o.want(p);
  expect_close(o.y.values(), want, 1e-5, p.text() + " tile " + std::to_string(tile), o.most);
  EXPECT_TRUE(o.y.guards_intact() && o.x.guards_intact()) << p.text();
}

TEST(Winograd, RandomShapes) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(17);
    for (int done = 0; done < 300;) {
      ConvCase p;
      p.c = pick(rng, {1, 3, 4, 7, 16, 19, 40});
      p.m = pick(rng, {1, 3, 16, 17, 50, 64, 81, 130});
      if (!random_window(p, rng) || p.c * p.m * p.taps_times_pixels() > 4'000'000) continue;
      ++done;
      check(p, rng() % 3 ? 4 : 2, rng);
      if (HasFailure()) return;
    }
  }
}

TEST(Winograd, ProgramsRunOnTheTiles) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(19);
    for (int done = 0; done < 60;) {
      ConvCase p;
      p.c = pick(rng, {3, 16, 24}), p.m = pick(rng, {16, 17, 72});
      if (!random_window(p, rng) || p.n == 0) continue;
      ++done;
      int tile = rng() % 2 ? 4 : 2;
      WinogradOperands o(p, tile, rng);
      auto program = vector::parse("v0 = load 0; v1 = load 1; v2 = mul v0 v1; v3 = load 2; v4 = add v2 v3; store 0 v4");
      ASSERT_TRUE(program.ok());
      std::vector<int64_t> per_channel(p.dims(1, p.out).size() - 1, 1);
      per_channel[0] = p.m;
      Floats a = floats(per_channel), b = floats(p.dims(1, p.out), p.lx);
      a.fill(rng), b.fill(rng);
      Task t = o.winograd_task(p);
      t.blob = vector::encode(*program);
      t.in.push_back(a.view()), t.in.push_back(b.view());
      run_kernel("cube.winograd", t, rng);
      if (::testing::Test::HasFatalFailure()) return;
      std::vector<double> want = o.want(p);
      std::vector<float> av = a.values(), bv = b.values();
      auto pixels = static_cast<size_t>(p.out[0] * p.out[1] * p.out[2]), m = static_cast<size_t>(p.m);
      for (size_t k = 0; k < want.size(); ++k) want[k] = want[k] * av[k / pixels % m] + bv[k / pixels / m * pixels + k % pixels];
      expect_close(o.y.values(), want, 1e-5, p.text(), o.most);
      if (HasFailure()) return;
    }
  }
}

// Many blocks; few tiles with many channels.
TEST(Winograd, LargeShapes) {
  auto image = [](int64_t c, int64_t m, int64_t h, int64_t w) {
    ConvCase p;
    p.c = c, p.m = m, p.in[1] = h, p.in[2] = w, p.k[1] = p.k[2] = 3;
    p.begin[1] = p.begin[2] = p.end[1] = p.end[2] = 1;
    p.act = 1, p.residual = true;
    return p;
  };
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(23);
    for (ConvCase p : {image(64, 64, 57, 56), image(512, 136, 7, 7), image(8, 80, 90, 91), image(256, 64, 14, 14)}) {
      ASSERT_TRUE(p.size_output());
      for (int tile : {2, 4}) check(p, tile, rng);
      if (HasFailure()) return;
    }
  }
}

// Both tiles are as accurate as a direct sum: the largest error over the largest value, normal numbers.
TEST(Winograd, Accuracy) {
  std::mt19937 rng(29);
  std::normal_distribution<float> normal;
  ConvCase p;
  p.c = 256, p.m = 32, p.in[1] = p.in[2] = 16, p.k[1] = p.k[2] = 3, p.bias = false;
  p.begin[1] = p.begin[2] = p.end[1] = p.end[2] = 1;
  ASSERT_TRUE(p.size_output());
  for (auto [tile, bound] : {std::pair(2, 1e-6), std::pair(4, 5e-6)}) {
    WinogradOperands o(p, tile, rng);
    run_kernel("cube.winograd", o.winograd_task(p), rng);
    std::vector<double> want = o.want(p);
    std::vector<float> got = o.y.values();
    double worst = 0, most = 0;
    for (size_t i = 0; i < want.size(); ++i) worst = std::max(worst, std::fabs(want[i] - got[i])), most = std::max(most, std::fabs(want[i]));
    EXPECT_LT(worst / most, bound) << "tile " << tile;
  }
}

// Weights transformed by the kernel and while compiling are the same but for rounding.
TEST(Winograd, FiltersOfTheRun) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(37);
    for (int round = 0; round < 20; ++round) {
      ConvCase p;
      p.rank = round % 2 ? 2 : 1;
      p.c = pick(rng, {1, 3, 16, 20}), p.m = pick(rng, {1, 16, 40}), p.in[2] = 8, p.k[2] = 3;
      if (p.rank == 2) p.in[1] = 8, p.k[1] = 3;
      ASSERT_TRUE(p.size_output());
      const int tile = round % 4 < 2 ? 4 : 2;
      WinogradOperands o(p, tile, rng);
      const int64_t panels = (p.m + 15) / 16, taps = p.rank == 2 ? 9 : 3, edge = tile + 2;
      Floats packed = floats({panels, taps, p.c, 16}), made = floats({p.rank == 2 ? edge * edge : edge, panels, p.c, 16});
      std::copy_n(o.packed.view().as<float>(), packed.view().count(), packed.view().as<float>());
      run_kernel("cube.winograd_filters", Task{{packed.view()}, {made.view()}, {tile, p.rank}, {}, {}}, rng);
      if (HasFatalFailure()) return;
      std::vector<float> got = made.values(), want = o.u.values();
      for (size_t k = 0; k < want.size(); ++k) ASSERT_NEAR(got[k], want[k], 2e-6) << k;
    }
  }
}

// Sizes of the run decide: both kernels that read them agree on the way, and either way gives the convolution.
TEST(Winograd, ChosenByTheRun) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(43);
    int direct = 0, filtered = 0;
    for (int done = 0; done < 40;) {
      ConvCase p;
      p.c = pick(rng, {1, 16, 40}), p.m = pick(rng, {3, 17, 64});
      if (!random_window(p, rng)) continue;
      if (done % 2) p.n = 2, p.in[p.rank == 1 ? 2 : 1] = 40, p.in[2] = 40;
      if (!p.size_output() || p.c * p.m * p.taps_times_pixels() > 15'000'000) continue;
      ++done;
      ConvOperands o(p, false, rng);
      const bool two_axes = p.k[1] == 3;
      const int64_t tile = rng() % 3 ? 4 : 2, edge = tile + 2, panels = (p.m + 15) / 16;
      Floats packed = floats({panels, two_axes ? 9 : 3, p.c, 16}), made = floats({two_axes ? edge * edge : edge, panels, p.c, 16});
      std::copy_n(o.packed.view().as<float>(), packed.view().count(), packed.view().as<float>());
      std::vector<int64_t> sizes = {tile, two_axes ? 2 : 1, p.m, p.n * p.out[0], p.out[1], p.out[2], p.dilation[1], p.dilation[2], done % 3 == 0};
      Task filters{{packed.view()}, {made.view()}, sizes, {}, {}};
      auto work = find("cube.winograd_filters")->prepare(make_call(filters));
      ASSERT_TRUE(work.ok());
      EXPECT_EQ(work->once, done % 3 == 0);
      ++(work->chunks == 0 ? direct : filtered);
      run_kernel("cube.winograd_filters", filters, rng);
      Task t = o.task(p);
      t.in.resize(std::max<size_t>(t.in.size(), 4));
      t.in[1] = made.view();
      t.in.push_back(packed.view());
      t.ints.push_back(done % 3 == 0);
      run_kernel("cube.winograd_or_direct", t, rng);
      if (HasFatalFailure()) return;
      std::vector<double> want = o.want(p);
      expect_close(o.y.values(), want, 1e-5, p.text(), o.most);
      EXPECT_TRUE(o.y.guards_intact() && o.x.guards_intact()) << p.text();
      if (HasFailure()) return;
    }
    EXPECT_GE(direct, 10);
    EXPECT_GE(filtered, 10);
  }
}

TEST(Winograd, PrepareIsTotal) {
  std::mt19937 rng(41);
  ConvCase p;
  p.c = 6, p.m = 20, p.in[1] = p.in[2] = 9, p.k[1] = p.k[2] = 3, p.begin[1] = 1, p.act = 2;
  ASSERT_TRUE(p.size_output());
  WinogradOperands o(p, 4, rng);
  expect_total("cube.winograd", o.winograd_task(p));
  Floats packed = floats({2, 9, 6, 16}), made = floats({36, 2, 6, 16});
  packed.fill(rng);
  expect_total("cube.winograd_filters", Task{{packed.view()}, {made.view()}, {4, 2}, {}, {}});
  expect_total("cube.winograd_filters", Task{{packed.view()}, {made.view()}, {4, 2, 20, 1, 30, 30, 1, 1, 1}, {}, {}});
  Task either = o.winograd_task(p);
  either.in.resize(std::max<size_t>(either.in.size(), 4));
  either.in[1] = made.view();
  either.in.push_back(packed.view());
  either.ints.push_back(0);
  expect_total("cube.winograd_or_direct", either);
}

TEST(Winograd, RefusesWhatItCannotDo) {
  std::mt19937 rng(31);
  ConvCase p;
  p.c = 4, p.m = 8, p.in[1] = p.in[2] = 8, p.k[1] = p.k[2] = 3;
  ASSERT_TRUE(p.size_output());
  WinogradOperands o(p, 4, rng);
  auto refused = [&](auto change) {
    Task t = o.winograd_task(p);
    change(t);
    return !find("cube.winograd")->prepare(make_call(t)).ok();
  };
  EXPECT_FALSE(refused([](Task&) {}));
  EXPECT_TRUE(refused([](Task& t) { t.ints[4] = 2; }));             // stride
  EXPECT_TRUE(refused([](Task& t) { t.ints[3] = 5; }));             // window
  EXPECT_TRUE(refused([](Task& t) { t.ints[1] = 2; }));             // groups
  EXPECT_TRUE(refused([](Task& t) { t.ints.pop_back(); }));
  EXPECT_TRUE(refused([&](Task& t) { t.in[1] = o.packed.view(); }));
  EXPECT_TRUE(refused([](Task& t) { t.in.resize(1); }));
}

}  // namespace
}  // namespace ge::kernels::testing
