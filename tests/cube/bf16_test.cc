// Products on bf16 operands: pair panels, rounding, the tiles of every path, cube.matmul. Operands are rounded
// first where a sum is checked, so that the kernel's products are exact and only the order of sums differs.
#include "kernels/cube/bf16.h"

#include <bit>
#include <limits>

#include "cube/cube_util.h"
#include "kernels/cube/pack.h"
#include "kernels/vector/program.h"
#include "tensor/half.h"

namespace ge::kernels {
namespace {

using Half = Tensor<uint16_t>;

void round_all(Tensor<>& t) {
  t.each([](float& x) { x = bf16_to_f32(f32_to_bf16(x)); });
  t.before = t.memory;
}

Half empty_pairs(const Dims& d) {
  Dims p = d;
  p.pop_back(), p.pop_back();
  p.insert(p.end(), {div_up(d.back(), 16), div_up(d[d.size() - 2], 2), 32});
  return Half::dense(p, DType::bf16);
}

Half packed(Tensor<>& b) {
  Half p = empty_pairs(b.dims);
  Task t;
  t.in = {b.view()}, t.out = {p.view()};
  run_task("cube.pack_b", t);
  return p;
}

TEST(Bf16, RoundsToNearestEvenOnEveryIsa) {
  std::vector<float> x = {0.f, -0.f, 1.f, 1.00390625f, 1.01171875f, -1.00390625f, 3.3895314e38f, 3.4028235e38f,
                          std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(), std::bit_cast<float>(0x7f800001u), 1.1754944e-38f};
  for (int i = 0; i < 500; ++i) {
    const auto exponent = static_cast<int>(pick(-100, 100));
    x.push_back(std::ldexp(std::normal_distribution<float>()(rng()), exponent));
  }
  each_isa([&] {
    for (int64_t n : {0, 1, 7, 13, 16, 17, 31, 32, 33, 100, 513}) {
      std::vector<uint16_t> got(static_cast<size_t>(n) + 8, 0x1234);
      cube::round_to_bf16(x.data(), n, got.data());
      for (int64_t i = 0; i < n; ++i) {
        const float v = x[static_cast<size_t>(i)];
        if (std::isnan(v)) ASSERT_TRUE(std::isnan(bf16_to_f32(got[static_cast<size_t>(i)])));
        else ASSERT_EQ(got[static_cast<size_t>(i)], f32_to_bf16(v)) << v;
      }
      for (size_t i = static_cast<size_t>(n); i < got.size(); ++i) ASSERT_EQ(got[i], 0x1234);
    }
  });
}

TEST(Bf16, PackEveryStrideAndSize) {
  each_isa([] {
    for (int round = 0; round < 150; ++round) {
      Dims d = {pick_of({1, 2, 3}), pick_of({0, 1, 4, 5, 16, 19, 33, 64, 65, 131}), pick_of({0, 1, 4, 15, 16, 17, 40})};
      if (pick(0, 3) == 0) d.erase(d.begin());
      Tensor<> b = Tensor<>::random(d, true);
      Half p = packed(b);
      p.expect_gaps_kept();
      const int64_t k = d[d.size() - 2];
      for (int64_t i = 0; i < p.count(); ++i) {
        Dims at(p.dims.size());
        int64_t rest = i;
        for (size_t a = at.size(); a-- > 0; rest /= p.dims[a]) at[a] = rest % p.dims[a];
        const int64_t column = at[at.size() - 3] * 16 + at.back() / 2, row = at[at.size() - 2] * 2 + at.back() % 2;
        Dims source(at.begin(), at.end() - 3);
        source.push_back(row), source.push_back(column);
        const float want = column < d.back() && row < k ? b.at(source) : 0.f;
        ASSERT_EQ(p.at(at), f32_to_bf16(want)) << "element " << i;
      }
      if (d.size() != 2) continue;
      // The compiler's way: f32 panels first.
      std::vector<float> panels(static_cast<size_t>(cube::packed_floats(k, d[1])));
      cube::pack_b(b.view(), panels.data());
      std::vector<uint16_t> direct(static_cast<size_t>(p.count()));
      cube::pair_panels(panels.data(), div_up(d[1], 16), k, k, direct.data());
      for (int64_t i = 0; i < p.count(); ++i) ASSERT_EQ(direct[static_cast<size_t>(i)], p.memory[static_cast<size_t>(p.base + i)]);
    }
  });
}

// Runs of an odd number of values are padded one by one: as the taps of a convolution of three channels.
TEST(Bf16, OddRunsArePadded) {
  std::vector<float> panel(6 * 16);
  for (size_t i = 0; i < panel.size(); ++i) panel[i] = static_cast<float>(i + 1);
  std::vector<uint16_t> out(8 * 16);
  ASSERT_EQ(cube::pair_rows(6, 3), 4);
  cube::pair_panels(panel.data(), 1, 6, 3, out.data());
  for (int64_t row = 0; row < 8; ++row)
    for (int64_t j = 0; j < 16; ++j) {
      const int64_t tap = row / 4, c = row % 4;
      ASSERT_EQ(bf16_to_f32(out[static_cast<size_t>(row / 2 * 32 + j * 2 + row % 2)]), c == 3 ? 0.f : panel[static_cast<size_t>((tap * 3 + c) * 16 + j)]);
    }
}

// Every implementation that this CPU runs, with segments, row offsets and accumulation.
TEST(Bf16, TilesOfEveryPath) {
  std::vector<void (*)(const cube::Bf16Block&)> paths = {cube::bf16::portable::multiply};
#if defined(__x86_64__)
  if (best_isa() >= Isa::avx2) paths.push_back(cube::bf16::avx2::multiply);
  if (best_isa() >= Isa::avx512) paths.push_back(cube::bf16::avx512::multiply);
  if (has_avx512_bf16()) paths.push_back(cube::bf16::dot::multiply);
#endif
  for (size_t path = 0; path < paths.size(); ++path)
    for (int round = 0; round < 120; ++round) {
      const int64_t m = pick_of({1, 2, 3, 4, 5, 6, 7, 8, 11, 100}), n = pick_of({1, 15, 16, 20, 32, 48, 64, 80, 96, 130});
      const int64_t segments = pick(1, 5), sk = 2 * pick_of({1, 2, 5, 24, 150}), k = segments * sk;
      std::vector<uint16_t> a(static_cast<size_t>(4000 + m * 64)), b(static_cast<size_t>(cube::packed_floats(k, n)));
      std::vector<float> c(static_cast<size_t>(m * (n + 3)));
      std::normal_distribution<float> g;
      for (auto* v : {&a, &b})
        for (uint16_t& x : *v) x = f32_to_bf16(g(rng()));
      for (float& x : c) x = g(rng());
      std::vector<int64_t> so, ro;
      for (int64_t s = 0; s < segments; ++s) so.push_back(pick(0, 3000));
      for (int64_t i = 0; i < m; ++i) ro.push_back(pick(0, 60 * m));
      const bool rows = pick(0, 1), groups = rows && pick(0, 1), accumulate = pick(0, 1);
      std::vector<int64_t> start = ro;
      if (groups)
        for (int64_t i = 0; i < m; ++i) start[static_cast<size_t>(i)] = ro[static_cast<size_t>(i / cube::kRowGroup)] + i % cube::kRowGroup * 6;
      cube::Bf16Block t;
      t.m = m, t.n = n, t.a16 = a.data(), t.lda = groups ? 6 : rows ? 0 : 37, t.segments = segments, t.segment_k = sk;
      if (rows) t.row_offset = ro.data();
      t.segment_offset = so.data();
      t.b16 = b.data(), t.b_stride = k * 16, t.c = c.data(), t.ldc = n + 3;
      t.epilogue.accumulate = accumulate;
      const std::vector<float> old = c;
      paths[path](t);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n + 3; ++j) {
          const size_t at = static_cast<size_t>(i * (n + 3) + j);
          if (j >= n) {
            ASSERT_EQ(c[at], old[at]);
            continue;
          }
          double sum = accumulate ? old[at] : 0, size = 1;
          for (int64_t s = 0; s < segments; ++s)
            for (int64_t x = 0; x < sk; ++x) {
              const int64_t row = s * sk + x;
              const double p = static_cast<double>(bf16_to_f32(a[static_cast<size_t>((rows ? start[static_cast<size_t>(i)] : i * 37) + so[static_cast<size_t>(s)] + x)])) *
                               bf16_to_f32(b[static_cast<size_t>((j / 16 * k + row / 2 * 2) * 16 + j % 16 * 2 + row % 2)]);
              sum += p, size += std::abs(p);
            }
          ASSERT_NEAR(c[at], sum, 2e-6 * size) << "path " << path << ": " << m << " " << n << " " << k;
        }
    }
}

struct Matmul {
  Tensor<> a, b, bias, residual, c;
  bool has_bias = false, has_residual = false;
  std::vector<double> floats = {0, 0, 1};
  int64_t act = 0;

  // exact: a and b are rounded here; else the reference rounds as the kernel should.
  void run_and_check(const std::string& what) {
    round_all(b);
    Half p = packed(b);
    Task t;
    t.in = {a.view(), p.view(), has_bias ? bias.view() : View{}, has_residual ? residual.view() : View{}};
    t.out = {c.view()}, t.ints = {act}, t.floats = floats;
    run_task("cube.matmul", t);
    if (::testing::Test::HasFatalFailure()) return;
    c.expect_gaps_kept();
    const int64_t k = a.dims.back();
    double worst = 0, top = 1e-3;
    for (int64_t i = 0; i < c.count(); ++i) {
      Dims at(c.dims.size());
      int64_t rest = i;
      for (size_t x = at.size(); x-- > 0; rest /= c.dims[x]) at[x] = rest % c.dims[x];
      double sum = 0;
      Dims ai = at, bi = at;
      for (int64_t j = 0; j < k; ++j) {
        ai.back() = j, bi[bi.size() - 2] = j;
        sum += static_cast<double>(bf16_to_f32(f32_to_bf16(a.at(ai)))) * b.at(bi);
      }
      sum *= floats[2];
      if (has_bias) sum += bias.at({at.back()});
      if (has_residual) sum += residual.at(at);
      if (act == 1) sum = std::max(sum, 0.0);
      top = std::max(top, std::abs(sum));
      worst = std::max(worst, std::abs(sum - c.at(at)));
    }
    EXPECT_LE(worst, 1e-5 * top) << what;
  }
};

TEST(Bf16, MatmulRandomShapesOnEveryIsa) {
  each_isa([] {
    for (int round = 0; round < 120; ++round) {
      const int64_t m = pick_of({0, 1, 2, 3, 4, 5, 7, 8, 13, 31, 97, 130}), n = pick_of({0, 1, 3, 15, 16, 17, 33, 64, 79, 80, 131});
      const int64_t k = pick_of({0, 1, 2, 3, 5, 8, 31, 64, 127});
      Dims batch;
      for (int64_t r = pick(0, 2); r > 0; --r) batch.push_back(pick_of({1, 1, 2, 3}));
      auto with = [&](int64_t x, int64_t y, bool thin) {
        Dims d = batch;
        for (auto& s : d)
          if (thin && pick(0, 2) == 0) s = 1;
        d.push_back(x), d.push_back(y);
        return d;
      };
      Matmul t;
      t.a = Tensor<>::random(with(m, k, true), pick(0, 2) == 0);
      t.b = Tensor<>::random(with(k, n, true), true);
      t.c = Tensor<>::random(with(m, n, false), pick(0, 3) == 0);
      t.has_bias = pick(0, 1), t.has_residual = pick(0, 1), t.act = pick(0, 1);
      t.bias = Tensor<>::dense({n});
      t.residual = Tensor<>::random(with(m, n, true), pick(0, 3) == 0);
      t.floats[2] = pick(0, 1) ? 1.0 : 0.37;
      t.run_and_check("m n k " + std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k));
      if (::testing::Test::HasFailure()) return;
    }
  });
}

TEST(Bf16, MatmulInManyChunksGivesTheSameBits) {
  each_isa([] {
    for (Dims s : {Dims{1, 900, 1301}, Dims{130, 2500, 64}, Dims{201, 333, 1111}, Dims{700, 48, 64}}) {
      Matmul t;
      t.a = Tensor<>::random({s[0], s[2]}, false), t.b = Tensor<>::random({s[2], s[1]}, true), t.c = Tensor<>::random({s[0], s[1]}, false);
      t.has_bias = true, t.bias = Tensor<>::dense({s[1]});
      t.run_and_check("large");
      const Tensor<> first = t.c;
      t.run_and_check("large, again");
      ASSERT_EQ(0, std::memcmp(first.memory.data(), t.c.memory.data(), first.memory.size() * sizeof(float)));
    }
  });
}

TEST(Bf16, MatmulProgramAndNan) {
  auto program = vector::parse("io 2 1; v0 = load 0; v1 = load 1; v2 = mul v0 v1; store 0 v2");
  ASSERT_TRUE(program.ok());
  each_isa([&] {
    Tensor<> a = Tensor<>::dense({103, 20}), b = Tensor<>::dense({20, 300}), c = Tensor<>::dense({103, 300}), x = Tensor<>::dense({300});
    round_all(a), round_all(b);
    a.memory[static_cast<size_t>(a.base + 7 * 20 + 3)] = std::numeric_limits<float>::quiet_NaN();
    Half p = packed(b);
    Task t;
    t.in = {a.view(), p.view(), View{}, View{}, x.view()}, t.out = {c.view()}, t.ints = {0}, t.floats = {0, 0, 1};
    t.blob = vector::encode(*program);
    run_task("cube.matmul", t);
    for (int64_t i = 0; i < 103; ++i)
      for (int64_t j = 0; j < 300; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < 20; ++k) sum += static_cast<double>(a.at({i, k})) * b.at({k, j});
        if (i == 7) ASSERT_TRUE(std::isnan(c.at({i, j})));
        else ASSERT_NEAR(c.at({i, j}), sum * x.at({j}), 1e-4);
      }
  });
}

TEST(Bf16, MatmulRefusesPanelsThatDoNotFit) {
  Tensor<> a = Tensor<>::dense({5, 9}), c = Tensor<>::dense({5, 20});
  auto prepared = [&](Dims d, DType type) {
    Half b = Half::dense(std::move(d), type);
    Task t;
    t.in = {a.view(), b.view()}, t.out = {c.view()}, t.ints = {0}, t.floats = {0, 0, 1};
    return prepare_task("cube.matmul", t).ok();
  };
  EXPECT_TRUE(prepared({2, 5, 32}, DType::bf16));
  EXPECT_FALSE(prepared({2, 4, 32}, DType::bf16));
  EXPECT_FALSE(prepared({2, 9, 16}, DType::bf16));
  EXPECT_FALSE(prepared({1, 5, 32}, DType::bf16));
  EXPECT_FALSE(prepared({2, 5, 32}, DType::f16));
}

}  // namespace
}  // namespace ge::kernels
