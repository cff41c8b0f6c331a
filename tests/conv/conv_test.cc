// cube.conv against plain loops.
#include "conv/conv_case.h"

namespace ge::kernels::testing {
namespace {

TEST(Conv, RandomShapes) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(3);
    for (int done = 0; done < 500;) {
      ConvCase p;
      p.groups = pick(rng, {1, 1, 1, 2, 3, 8, 21});
      p.c = p.groups * pick(rng, {1, 2, 3, 4, 7, 8, 16, 19, 40});
      p.m = p.groups * pick(rng, {1, 3, 8, 16, 17, 33, 50, 64, 81, 130});
      if (p.groups > 1 && rng() % 3 == 0) p.m = p.c;
      if (!random_geometry(p, rng) || p.c * p.m * p.taps_times_pixels() > 8'000'000) continue;
      ++done;
      check_conv(p, "cube.conv", rng);
      if (HasFailure()) return;
    }
  }
}

// Sizes that cross the limits of the plan: rows wider than a buffer, many blocks, long K, small
// maps.
TEST(Conv, LargeShapes) {
  auto image = [](int64_t c, int64_t m, int64_t h, int64_t w, int64_t k, int64_t s, int64_t pad) {
    ConvCase p;
    p.c = c, p.m = m, p.in[1] = h, p.in[2] = w, p.k[1] = p.k[2] = k, p.stride[1] = p.stride[2] = s;
    p.begin[1] = p.begin[2] = p.end[1] = p.end[2] = pad;
    return p;
  };
  std::vector<ConvCase> cases = {
      image(3, 64, 61, 60, 7, 2, 3),   image(64, 64, 56, 56, 3, 1, 1),
      image(512, 40, 7, 7, 3, 1, 1),   image(300, 70, 9, 9, 1, 1, 0),
      image(700, 5, 3, 200, 3, 1, 1),  image(16, 48, 40, 41, 3, 2, 1),
      image(64, 130, 28, 28, 1, 2, 0), image(2100, 20, 2, 2, 1, 1, 0),
      image(1500, 16, 1, 70, 3, 1, 1),
  };
  ConvCase line;
  line.rank = 1, line.c = 64, line.m = 64, line.in[2] = 2048, line.k[2] = 5,
  line.begin[2] = line.end[2] = 2;
  cases.push_back(line);
  ConvCase batch = image(32, 100, 7, 7, 3, 1, 1);
  batch.n = 5;
  cases.push_back(batch);
  ConvCase shuffled = image(64, 64, 20, 20, 3, 1, 1);
  shuffled.groups = 16;
  cases.push_back(shuffled);
  ConvCase planar = image(3, 64, 64, 64, 7, 2, 3);
  planar.lx = planar.ly = planar.lr = Layout::first;
  cases.push_back(planar);
  planar.c = planar.m = 70, planar.k[1] = planar.k[2] = 1, planar.begin[1] = planar.begin[2] = 0;
  cases.push_back(planar);
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(5);
    for (ConvCase p : cases) {
      ASSERT_TRUE(p.size_output());
      p.act = 1, p.residual = rng() % 2;
      check_conv(p, "cube.conv", rng);
      if (HasFailure()) return;
    }
  }
}

// Taps that lie above, below, before or behind the input are skipped, up to whole windows; they must
// not touch the sums even where weights are infinite.
TEST(Conv, PaddedRows) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(13);
    for (int done = 0; done < 150;) {
      ConvCase p;
      p.rank = static_cast<int>(pick(rng, {1, 2, 2, 2, 3})), p.n = pick(rng, {1, 2});
      p.groups = pick(rng, {1, 1, 2});
      p.c = pick(rng, {2, 30, 180}) * p.groups, p.m = pick(rng, {5, 16, 70}) * p.groups;
      for (int a = 3 - p.rank; a < 3; ++a) {
        p.in[a] = pick(rng, {1, 2, 4, 7}), p.k[a] = pick(rng, {2, 3, 5}), p.stride[a] = pick(rng, {1, 2});
        p.dilation[a] = pick(rng, {1, 1, 2});
        p.begin[a] = pick(rng, {0, 1, 3, 12}), p.end[a] = pick(rng, {0, 1, 3, 12});
      }
      if (!p.size_output() || p.m * p.taps_times_pixels() * p.c > 30'000'000) continue;
      ++done;
      p.residual = rng() % 2, p.act = pick(rng, {0, 1});
      rng() % 3 ? check_conv(p, "cube.conv", rng) : check_program(p, "cube.conv", rng);
      if (HasFailure()) return;
    }
    ConvCase p;
    p.c = 4, p.m = 20, p.in[1] = p.in[2] = 6, p.k[1] = p.k[2] = 3, p.begin[1] = p.end[1] = 1;
    ASSERT_TRUE(p.size_output());
    ConvOperands o(p, false, rng);
    for (int64_t m = 0; m < p.m; ++m) o.w.at({m, 1, 0, 1}) = std::numeric_limits<float>::infinity();
    cube::pack_conv_weights(o.w.view(), 1, o.packed.view().as<float>());
    run_kernel("cube.conv", o.task(p), rng);
    for (int64_t m = 0; m < p.m; ++m)
      for (int64_t w = 0; w < p.out[2]; ++w) {
        EXPECT_TRUE(std::isfinite(o.y.at({0, m, 0, w}))) << name(i);
        EXPECT_FALSE(std::isfinite(o.y.at({0, m, 1, w}))) << name(i);
      }
  }
}

// Groups of 2, 4 and 8 channels have loops of their own: every row width up to three tiles and
// every edge.
TEST(Conv, NarrowGroupsEveryEdge) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(13);
    for (int64_t q : {2, 4, 8})
      for (int64_t s : {1, 2})
        for (int64_t w = 1; w <= 25; w += w < 10 ? 1 : 3)
          for (int64_t pads = 0; pads < 4; ++pads) {
            ConvCase p;
            p.groups = pick(rng, {2, 5, 6}), p.c = p.m = p.groups * q;
            p.in[1] = 3, p.in[2] = w, p.k[1] = 3, p.k[2] = 3, p.stride[2] = s;
            p.begin[1] = p.end[1] = 1, p.begin[2] = pads % 2, p.end[2] = pads / 2,
            p.residual = pads == 1;
            if (!p.size_output()) continue;
            check_conv(p, "cube.conv", rng);
            if (HasFailure()) return;
          }
  }
}

// The same bits whatever the order of the chunks.
TEST(Conv, OrderOfChunksDoesNotMatter) {
  std::mt19937 rng(14);
  for (int64_t groups : {1, 4, 16}) {
    ConvCase p;
    p.c = p.m = 64, p.groups = groups, p.in[1] = p.in[2] = 60, p.k[1] = p.k[2] = 3,
    p.begin[1] = p.begin[2] = 1;
    ASSERT_TRUE(p.size_output());
    ConvOperands o(p, false, rng);
    Task t = o.task(p);
    auto work = find("cube.conv")->prepare(make_call(t));
    ASSERT_TRUE(work.ok() && work->chunks > 1);
    run_kernel("cube.conv", t, rng);
    std::vector<float> first = o.y.values();
    for (int i = 0; i < 5; ++i) {
      o.y.each([](float& v) { v = NAN; });
      run_kernel("cube.conv", t, rng);
      EXPECT_EQ(o.y.values(), first);
    }
  }
}

TEST(Conv, VectorProgram) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(12);
    for (int done = 0; done < 150;) {
      ConvCase p;
      p.groups = pick(rng, {1, 1, 2});
      p.c = p.groups * pick(rng, {1, 3, 16, 20}),
      p.m = p.groups * pick(rng, {1, 5, 16, 64, 81, 150});
      if (!random_geometry(p, rng) || p.c * p.m * p.taps_times_pixels() > 4'000'000) continue;
      ++done;
      check_program(p, "cube.conv", rng);
      if (HasFailure()) return;
    }
  }
}

// The output may be the residual's own memory.
TEST(Conv, ResidualInPlace) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(8);
    for (int done = 0; done < 60;) {
      ConvCase p;
      p.c = pick(rng, {3, 16, 20}), p.m = pick(rng, {5, 16, 64, 67});
      if (!random_geometry(p, rng)) continue;
      ++done;
      p.residual = true, p.lr = p.ly;
      ConvOperands o(p, false, rng);
      std::vector<double> want = o.want(p);
      Task t = o.task(p);
      t.out[0] = t.in[3];
      run_kernel("cube.conv", t, rng);
      expect_close(o.r.values(), want, 1e-5, p.text(), o.most);
      EXPECT_TRUE(o.r.guards_intact());
      if (HasFailure()) return;
    }
  }
}

// NaN and infinity stay in the windows that contain them, whatever pads and padded channels do.
TEST(Conv, NonFiniteInputs) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(9);
    ConvCase p;
    p.c = 5, p.m = 19, p.in[1] = p.in[2] = 9, p.k[1] = p.k[2] = 3;
    p.begin[1] = p.begin[2] = p.end[1] = p.end[2] = 1, p.bias = false;
    ASSERT_TRUE(p.size_output());
    ConvOperands o(p, false, rng);
    o.x.at({0, 2, 4, 4}) = NAN;
    o.x.at({0, 1, 0, 8}) = INFINITY;
    run_kernel("cube.conv", o.task(p), rng);
    expect_close(o.y.values(), o.want(p), 1e-5, p.text());
  }
}

TEST(Conv, PrepareIsTotal) {
  std::mt19937 rng(10);
  ConvCase p;
  p.c = 6, p.m = 10, p.groups = 2, p.in[1] = p.in[2] = 9, p.k[1] = p.k[2] = 3, p.begin[1] = 1,
  p.act = 2;
  ASSERT_TRUE(p.size_output());
  ConvOperands o(p, false, rng);
  expect_total("cube.conv", o.task(p));
  Task t = o.task(p);
  t.numbers.clear();
  EXPECT_FALSE(find("cube.conv")->prepare(make_call(t)).ok());
  t = o.task(p);
  t.blob = std::vector<std::byte>(13, std::byte{0x41});
  EXPECT_FALSE(find("cube.conv")->prepare(make_call(t)).ok());
}

}  // namespace
}  // namespace ge::kernels::testing
