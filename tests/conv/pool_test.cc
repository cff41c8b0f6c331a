// vector.pool and vector.global_pool against plain loops.
#include "conv/conv_test_util.h"

namespace ge::kernels::testing {
namespace {

struct PoolCase {
  int rank = 2;
  int64_t kind = 0, n = 1, c = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, k[3] = {1, 1, 1}, stride[3] = {1, 1, 1};
  int64_t dilation[3] = {1, 1, 1}, begin[3] = {0, 0, 0}, end[3] = {0, 0, 0};
  int64_t order = 0;
  bool ceil_mode = false;

  std::vector<int64_t> dims(const int64_t (&sp)[3]) const {
    std::vector<int64_t> d = {n, c};
    for (int a = 3 - rank; a < 3; ++a) d.push_back(sp[a]);
    return d;
  }
  std::vector<int64_t> ints() const {
    std::vector<int64_t> v = {rank, kind};
    for (auto* p : {&k, &stride, &dilation, &begin, &end})
      for (int a = 3 - rank; a < 3; ++a) v.push_back((*p)[a]);
    v.push_back(order);
    return v;
  }
  std::string text() const {
    std::string s;
    for (int64_t v : ints()) s += std::to_string(v) + ' ';
    for (int64_t v : dims(in)) s += 'x' + std::to_string(v);
    return s;
  }
};

// One window, straight from ONNX's text: start and end of the window, clipped to the padded input.
void reference(const PoolCase& p, const std::vector<double>& x, std::vector<double>& y,
               std::vector<int64_t>& index) {
  int64_t plane = p.in[0] * p.in[1] * p.in[2];
  for (int64_t nc = 0; nc < p.n * p.c; ++nc)
    for (int64_t od = 0; od < p.out[0]; ++od)
      for (int64_t oh = 0; oh < p.out[1]; ++oh)
        for (int64_t ow = 0; ow < p.out[2]; ++ow) {
          int64_t o[3] = {od, oh, ow}, inside = 0, padded = 0, at = 0;
          double sum = 0, most = -INFINITY;
          bool nan = false, any = false;
          for (int64_t t = 0; t < p.k[0] * p.k[1] * p.k[2]; ++t) {
            int64_t tap[3] = {t / (p.k[1] * p.k[2]), t / p.k[2] % p.k[1], t % p.k[2]}, i[3];
            bool in = true, pad = true;
            for (int a = 0; a < 3; ++a) {
              i[a] = o[a] * p.stride[a] + tap[a] * p.dilation[a] - p.begin[a];
              if (i[a] < 0 || i[a] >= p.in[a]) in = false;
              if (i[a] < -p.begin[a] || i[a] >= p.in[a] + p.end[a]) pad = false;
            }
            padded += pad;
            if (!in) continue;
            ++inside;
            double v =
                x[static_cast<size_t>(nc * plane + (i[0] * p.in[1] + i[1]) * p.in[2] + i[2])];
            sum += v;
            if (nan) continue;
            if (std::isnan(v)) nan = true;
            if (!any || nan || v > most) {
              most = v, any = true;
              at = p.order == 0  ? (i[0] * p.in[1] + i[1]) * p.in[2] + i[2]
                   : p.rank == 1 ? i[2]
                   : p.rank == 2 ? i[1] + p.in[1] * i[2]
                                 : i[0] + p.in[0] * (i[1] + p.in[1] * i[2]);
            }
          }
          int64_t div = p.kind == 2 ? padded : inside;
          y.push_back(p.kind == 0 ? most : div ? sum / static_cast<double>(div) : 0.0);
          index.push_back(nc * plane + at);
        }
}

bool size_outputs(PoolCase& p) {
  for (int a = 0; a < 3; ++a) {
    int64_t span = p.in[a] + p.begin[a] + p.end[a] - ((p.k[a] - 1) * p.dilation[a] + 1);
    if (span < 0) return false;
    p.out[a] = span / p.stride[a] + 1;
    if (p.ceil_mode && span % p.stride[a] && p.out[a] * p.stride[a] < p.in[a] + p.begin[a])
      ++p.out[a];
  }
  return true;
}

void check(const PoolCase& p, Layout lx, Layout ly, bool nans, std::mt19937& rng) {
  Floats x = floats(p.dims(p.in), lx);
  x.fill(rng);
  if (nans)
    x.each([&](float& v) {
      if (rng() % 9 == 0) v = rng() % 2 ? NAN : -INFINITY;
    });
  std::vector<float> xv = x.values();
  std::vector<double> want;
  std::vector<int64_t> index;
  reference(p, std::vector<double>(xv.begin(), xv.end()), want, index);
  for (bool with_indices : {false, true}) {
    if (with_indices && p.kind != 0) continue;
    Floats y = floats(p.dims(p.out), ly);
    Operand<int64_t> at(DType::i64, p.dims(p.out), lx);
    Task t{{x.view()}, {y.view()}, p.ints(), {}, {}};
    if (with_indices) t.out.push_back(at.view());
    run_kernel("vector.pool", t, rng);
    expect_close(y.values(), want, 2e-6, p.text());
    EXPECT_TRUE(y.guards_intact()) << p.text();
    if (with_indices) {
      EXPECT_EQ(at.values(), index) << p.text();
    }
  }
}

TEST(Pool, RandomShapes) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(7);
    int done = 0;
    while (done < 400) {
      PoolCase p;
      p.rank = static_cast<int>(pick(rng, {1, 2, 2, 3}));
      p.kind = pick(rng, {0, 1, 2});
      p.n = pick(rng, {0, 1, 1, 2, 3});
      p.c = pick(rng, {1, 2, 3, 7, 8, 16, 17, 33, 64, 67, 130});
      p.order = pick(rng, {0, 1});
      p.ceil_mode = rng() % 2;
      for (int a = 3 - p.rank; a < 3; ++a) {
        p.in[a] = pick(rng, {1, 2, 3, 5, 7, 8, 13, 17});
        p.k[a] = pick(rng, {1, 2, 3, 3, 5});
        p.stride[a] = pick(rng, {1, 2, 3});
        p.dilation[a] = pick(rng, {1, 1, 1, 2});
        p.begin[a] = pick(rng, {0, 0, 1, 2});
        p.end[a] = pick(rng, {0, 0, 1, 2});
      }
      if (!size_outputs(p)) continue;
      Layout layouts[] = {Layout::first, Layout::last, Layout::odd};
      ++done;
      Layout l = layouts[rng() % 3];
      const bool nans = rng() % 4 == 0 && p.kind == 0;
      const Layout to = rng() % 4 ? l : layouts[rng() % 3];
      check(p, l, to, nans, rng);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Pool, CeilModeDividesByWhatLiesInThePaddedInput) {
  // 1-D, size 4, window 3, stride 3, pads 1/1: windows start at -1 and 2; the second covers 2, 3
  // and one end pad. With pads 0/0 and ceil mode the second window covers 3 alone.
  std::mt19937 rng(1);
  Floats x = floats({1, 1, 4});
  for (int64_t i = 0; i < 4; ++i) x.at({0, 0, i}) = static_cast<float>(i + 1);
  auto run = [&](std::vector<int64_t> ints) {
    Floats y = floats({1, 1, 2});
    run_kernel("vector.pool", {{x.view()}, {y.view()}, ints, {}, {}}, rng);
    return y.values();
  };
  EXPECT_EQ(run({1, 2, 3, 3, 1, 1, 1}), (std::vector<float>{1.0f, 7.0f / 3}));
  EXPECT_EQ(run({1, 1, 3, 3, 1, 1, 1}), (std::vector<float>{1.5f, 3.5f}));
  EXPECT_EQ(run({1, 2, 3, 3, 1, 0, 0}), (std::vector<float>{2.0f, 4.0f}));
}

TEST(GlobalPool, RandomShapes) {
  for (Isa i : isas()) {
    UseIsa use(i);
    std::mt19937 rng(11);
    for (int done = 0; done < 250; ++done) {
      std::vector<int64_t> dims = {pick(rng, {0, 1, 2, 3}),
                                   pick(rng, {1, 2, 3, 16, 31, 64, 70, 200})};
      int rank = static_cast<int>(pick(rng, {0, 1, 2, 3}));
      for (int a = 0; a < rank; ++a) dims.push_back(pick(rng, {0, 1, 3, 7, 14, 37}));
      bool max = rng() % 2;
      Layout layouts[] = {Layout::first, Layout::last, Layout::odd};
      Floats x = floats(dims, layouts[rng() % 3]);
      x.fill(rng);
      if (rng() % 4 == 0)
        x.each([&](float& v) {
          if (rng() % 50 == 0) v = NAN;
        });
      std::vector<int64_t> out = dims;
      std::fill(out.begin() + 2, out.end(), 1);
      Floats y = floats(out, layouts[rng() % 3]);
      std::vector<float> xv = x.values();
      int64_t planes = dims[0] * dims[1];
      std::vector<double> want;
      for (int64_t p = 0; p < planes; ++p) {
        int64_t n = x.count() / planes;
        double sum = 0, most = -INFINITY;
        for (int64_t e = 0; e < n; ++e) {
          double v = xv[static_cast<size_t>(p * n + e)];
          sum += v;
          if (!(v <= most)) most = std::isnan(most) ? most : v;
        }
        want.push_back(max ? most : sum / static_cast<double>(n));
      }
      run_kernel("vector.global_pool", {{x.view()}, {y.view()}, {max ? 0 : 1}, {}, {}}, rng);
      expect_close(y.values(), want, 2e-6, "global pool");
      EXPECT_TRUE(y.guards_intact());
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Pool, PrepareIsTotal) {
  Floats x = floats({2, 3, 8, 8}), y = floats({2, 3, 4, 4});
  Operand<int64_t> at(DType::i64, {2, 3, 4, 4});
  expect_total(
      "vector.pool",
      {{x.view()}, {y.view(), at.view()}, {2, 0, 2, 2, 2, 2, 1, 1, 0, 0, 0, 0, 0}, {}, {}});
  expect_total("vector.pool",
               {{x.view()}, {y.view()}, {2, 1, 2, 2, 2, 2, 1, 1, 0, 0, 0, 0}, {}, {}});
  Floats g = floats({2, 3, 1, 1});
  expect_total("vector.global_pool", {{x.view()}, {g.view()}, {1}, {}, {}});
}

}  // namespace
}  // namespace ge::kernels::testing
