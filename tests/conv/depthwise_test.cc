// cube.depthwise against plain loops.
#include "conv/conv_case.h"

namespace ge::kernels::testing {
namespace {

TEST(Depthwise, RandomShapes) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(4);
    for (int done = 0; done < 700;) {
      ConvCase p;
      p.c = p.groups = pick(rng, {1, 2, 3, 8, 15, 16, 17, 24, 32, 64, 67, 130});
      p.m = p.c * pick(rng, {1, 1, 1, 1, 2, 3});
      if (!random_geometry(p, rng) || p.m * p.taps_times_pixels() * p.groups > 2'000'000) continue;
      ++done;
      check_conv(p, "cube.depthwise", rng);
      if (!HasFailure() && done % 2) check_conv_halves(p, "cube.depthwise", rng);
      if (HasFailure()) return;
    }
  }
}

// Every kernel width and stride that has tiles of its own, at every width up to three tiles, with
// every combination of cut-off columns.
TEST(Depthwise, EveryEdge) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(6);
    for (int64_t k : {3, 5, 7})
      for (int64_t s : {1, 2})
        for (int64_t w = 1; w <= 25; ++w)
          for (int64_t pads = 0; pads < 9; ++pads) {
            ConvCase p;
            p.c = p.groups = p.m = 33;
            p.in[1] = 3, p.in[2] = w, p.k[1] = 3, p.k[2] = k, p.stride[2] = s;
            p.begin[1] = p.end[1] = 1, p.begin[2] = pads % 3 * (k / 2) / 2,
            p.end[2] = pads / 3 * (k / 2) / 2;
            if (!p.size_output()) continue;
            check_conv(p, "cube.depthwise", rng);
            if (!HasFailure()) check_conv_halves(p, "cube.depthwise", rng);
            if (HasFailure()) return;
          }
  }
}

// 3x3 windows take several output rows together: every height, with and without rows that are cut
// off, in several images, on operands with gaps, with a residual and with a vector program.
TEST(Depthwise, RowsTogether) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(8);
    for (int64_t s : {1, 2})
      for (int64_t h = 1; h <= 12; ++h)
        for (int64_t pads = 0; pads < 9; ++pads)
          for (int64_t c : {16, 33}) {
            ConvCase p;
            p.n = pick(rng, {1, 2}), p.c = p.groups = p.m = c;
            p.in[1] = h, p.in[2] = pick(rng, {3, 7, 8, 15, 22});
            p.k[1] = p.k[2] = 3, p.stride[1] = p.stride[2] = s;
            p.begin[1] = pads % 3, p.end[1] = pads / 3;
            p.begin[2] = pick(rng, {0, 1}), p.end[2] = pick(rng, {0, 1});
            if (!p.size_output()) continue;
            if (rng() % 4 == 0) p.rank = 3, p.in[0] = 3, p.begin[0] = pick(rng, {0, 1}), p.size_output();
            p.act = pick(rng, {0, 1, 2, 3}), p.residual = rng() % 2;
            p.lx = pick(rng, {1, 1, 2}) == 2 ? Layout::odd : Layout::last;
            rng() % 4 ? check_conv(p, "cube.depthwise", rng) : check_program(p, "cube.depthwise", rng);
            if (!HasFailure()) check_conv_halves(p, "cube.depthwise", rng);
            if (HasFailure()) return;
          }
  }
}

// Pixels that lie a multiple of half a page apart are copied, all rows at once or as many as fit.
TEST(Depthwise, PixelsThatCollide) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(14);
    for (int done = 0; done < 60;) {
      ConvCase p;
      p.n = pick(rng, {1, 2}), p.c = p.groups = p.m = pick(rng, {512, 1024});
      p.in[1] = pick(rng, {1, 2, 6, 17}), p.in[2] = pick(rng, {4, 7, 15});
      p.k[1] = pick(rng, {3, 3, 5}), p.k[2] = pick(rng, {3, 3, 5}), p.stride[1] = pick(rng, {1, 2}), p.stride[2] = pick(rng, {1, 2});
      p.dilation[1] = pick(rng, {1, 1, 2}), p.begin[1] = pick(rng, {0, 1, 3}), p.end[1] = pick(rng, {0, 1, 4});
      p.begin[2] = pick(rng, {0, 1}), p.end[2] = pick(rng, {0, 1});
      if (!p.size_output() || p.m * p.taps_times_pixels() > 4'000'000) continue;
      ++done;
      p.act = pick(rng, {0, 1, 2, 3}), p.residual = rng() % 2, p.lx = p.ly = p.lr = Layout::last;
      rng() % 4 ? check_conv(p, "cube.depthwise", rng) : check_program(p, "cube.depthwise", rng);
      if (!HasFailure() && done % 4 == 0) check_conv_halves(p, "cube.depthwise", rng);
      if (HasFailure()) return;
    }
  }
}

// 3x3 windows whose pixels lie far apart take pairs of vectors: odd numbers of vectors, parts of one, every width of
// a tile, odd heights.
TEST(Depthwise, Pairs) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(16);
    for (int64_t s : {1, 2})
      for (int64_t w = 4; w <= 24; ++w)
        for (int64_t pads = 0; pads < 4; ++pads)
          for (int64_t c : {16, 32, 48, 77}) {
            ConvCase p;
            p.n = pick(rng, {1, 2}), p.c = p.groups = p.m = c;
            p.in[1] = pick(rng, {1, 2, 5, 6, 30}), p.in[2] = w;
            p.k[1] = p.k[2] = 3, p.stride[1] = p.stride[2] = s;
            p.begin[1] = pick(rng, {0, 1, 2}), p.end[1] = pick(rng, {0, 1, 2});
            p.begin[2] = pads % 2, p.end[2] = pads / 2;
            if (!p.size_output()) continue;
            p.act = pick(rng, {0, 1, 2, 3}), p.residual = rng() % 2, p.bias = rng() % 4;
            p.lx = Layout::apart, p.ly = pick(rng, {0, 1}) ? Layout::last : Layout::apart;
            rng() % 4 ? check_conv(p, "cube.depthwise", rng) : check_program(p, "cube.depthwise", rng);
            if (!HasFailure() && rng() % 4 == 0) check_conv_halves(p, "cube.depthwise", rng);
            if (HasFailure()) return;
          }
  }
}

TEST(Depthwise, VectorProgram) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(12);
    for (int done = 0; done < 150;) {
      ConvCase p;
      p.c = p.groups = pick(rng, {1, 3, 16, 24, 64, 67}), p.m = p.c * pick(rng, {1, 1, 2});
      if (!random_geometry(p, rng)) continue;
      ++done;
      check_program(p, "cube.depthwise", rng);
      if (HasFailure()) return;
    }
  }
}

TEST(Depthwise, PrepareIsTotal) {
  std::mt19937 rng(10);
  ConvCase p;
  p.c = p.groups = 6, p.m = 12, p.in[1] = p.in[2] = 9, p.k[1] = p.k[2] = 3, p.begin[1] = 1;
  ASSERT_TRUE(p.size_output());
  ConvOperands o(p, true, rng);
  expect_total("cube.depthwise", o.task(p));
}

}  // namespace
}  // namespace ge::kernels::testing
