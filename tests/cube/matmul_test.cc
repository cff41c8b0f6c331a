#include <limits>

#include "cube/cube_util.h"
#include "kernels/cube/microkernel.h"
#include "kernels/cube/pack.h"
#include "kernels/vector/program.h"

namespace ge::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// B [batch..., K, N] packed by cube.pack_b.
Tensor<> packed(Tensor<>& b) {
  Dims d = b.dims;
  const int64_t n = d.back();
  d.back() = 16;
  d.insert(d.end() - 2, div_up(n, 16));
  Tensor<> p = Tensor<>::dense(d);
  Task t;
  t.in = {b.view()}, t.out = {p.view()};
  run_task("cube.pack_b", t);
  return p;
}

TEST(Pack, EveryStrideAndSize) {
  for (int round = 0; round < 200; ++round) {
    Dims d = {pick_of({1, 2, 3}), pick_of({0, 1, 4, 5, 16, 19, 33}), pick_of({0, 1, 4, 15, 16, 17, 40})};
    if (pick(0, 3) == 0) d.erase(d.begin());
    Tensor<> b = Tensor<>::random(d, true);
    Tensor<> p = packed(b);
    for (int64_t i = 0; i < p.count(); ++i) {
      Dims at(p.dims.size());
      int64_t rest = i;
      for (size_t a = at.size(); a-- > 0; rest /= p.dims[a]) at[a] = rest % p.dims[a];
      const int64_t column = at[at.size() - 3] * 16 + at.back();
      Dims source(at.begin(), at.end() - 3);
      source.push_back(at[at.size() - 2]), source.push_back(column);
      const float want = column < d.back() ? b.at(source) : 0.f;
      ASSERT_EQ(p.at(at), want) << "element " << i;
    }
    p.expect_gaps_kept();
    if (d.size() == 2) {
      std::vector<float> direct(static_cast<size_t>(cube::packed_floats(d[0], d[1])));
      cube::pack_b(b.view(), direct.data());
      for (int64_t i = 0; i < p.count(); ++i) ASSERT_EQ(direct[static_cast<size_t>(i)], p.memory[static_cast<size_t>(p.base + i)]);
    }
  }
}

TEST(Pack, LargeIsCutIntoChunks) {
  Tensor<> b({3, 300, 500}, {1, 2, 0}, 5, 1, DType::f32);
  Tensor<> p = Tensor<>::dense({3, 32, 300, 16});
  Task t;
  t.in = {b.view()}, t.out = {p.view()};
  ASSERT_GE(prepare_task("cube.pack_b", t)->chunks, 4);
  run_task("cube.pack_b", t);
  for (int64_t x = 0; x < 3; ++x)
    for (int64_t k = 0; k < 300; ++k)
      for (int64_t n = 0; n < 512; ++n) ASSERT_EQ(p.at({x, n / 16, k, n % 16}), n < 500 ? b.at({x, k, n}) : 0.f);
}

double apply(int64_t act, double x, const std::vector<double>& f) {
  if (act == 1) return x < 0 ? 0 : x;
  if (act == 2) return std::min(std::max(x, f[0]), f[1]);
  if (act == 3) return x < 0 ? f[0] * x : x;
  return x;
}

struct Matmul {
  Tensor<> a, b, bias, residual, c;
  bool has_bias = false, has_residual = false;
  int64_t act = 0;
  std::vector<double> floats = {0, 0, 1};

  // With B in panels and with B as it lies.
  void run_and_check(const char* what) {
    Tensor<> p = packed(b);
    const Tensor<> old = c;
    run_one(p.view(), 0, std::string(what) + ", panels");
    if (::testing::Test::HasFailure()) return;
    c = old;
    run_one(b.view(), 1, std::string(what) + ", plain");
  }

  void run_one(const View& right, int64_t plain, const std::string& what) {
    Task t;
    t.in = {a.view(), right, has_bias ? bias.view() : View{}, has_residual ? residual.view() : View{}};
    t.out = {c.view()}, t.ints = {act, plain}, t.floats = floats;
    run_task("cube.matmul", t);
    if (::testing::Test::HasFatalFailure()) return;
    c.expect_gaps_kept();
    const int64_t k = a.dims.back();
    double worst = 0, top = 1e-3;
    for (int64_t i = 0; i < c.count(); ++i) {
      Dims at(c.dims.size());
      int64_t rest = i;
      for (size_t x = at.size(); x-- > 0; rest /= c.dims[x]) at[x] = rest % c.dims[x];
      double sum = 0, size = 0;   // size: of the terms, which rounding errors go by where they cancel
      Dims ai = at, bi = at;
      ai.back() = 0, bi[bi.size() - 2] = 0;
      const float *ap = k ? a.pointer(ai) : nullptr, *bp = k ? b.pointer(bi) : nullptr;
      const int64_t a_step = a.strides.back(), b_step = b.strides[b.strides.size() - 2];
      for (int64_t j = 0; j < k; ++j) {
        const double term = static_cast<double>(ap[j * a_step]) * bp[j * b_step];
        sum += term, size += term * term;
      }
      sum *= floats[2];
      if (has_bias) sum += bias.at({at.back()});
      if (has_residual) sum += residual.at(at);
      top = std::max({top, std::abs(sum), std::sqrt(size) * std::abs(floats[2])});
      worst = std::max(worst, std::abs(apply(act, sum, floats) - c.at(at)));
    }
    EXPECT_LE(worst, 1e-5 * top) << what;
  }
};

std::string text(const Dims& d) {
  std::string s;
  for (int64_t x : d) s += std::to_string(x) + " ";
  return s;
}

// Sizes 1 at random: broadcasting.
Dims thinned(Dims d, size_t keep) {
  for (size_t i = 0; i + keep < d.size(); ++i)
    if (pick(0, 2) == 0) d[i] = 1;
  if (d.size() > keep && pick(0, 3) == 0) d.erase(d.begin());
  return d;
}

TEST(Matmul, RandomShapesOnEveryIsa) {
  each_isa([] {
    for (int round = 0; round < 250; ++round) {
      const int64_t m = pick_of({0, 1, 2, 3, 4, 5, 7, 8, 13, 31, 97}), n = pick_of({0, 1, 3, 15, 16, 17, 33, 64, 79, 80, 131});
      const int64_t k = pick_of({0, 1, 2, 3, 5, 8, 31, 64, 127});
      Dims batch;
      for (int64_t r = pick(0, 3); r > 0; --r) batch.push_back(pick_of({1, 1, 2, 3}));
      auto with = [&](int64_t x, int64_t y) {
        Dims d = batch;
        d.push_back(x), d.push_back(y);
        return d;
      };
      Matmul t;
      t.a = Tensor<>::random(thinned(with(m, k), 2), pick(0, 2) == 0);
      t.b = Tensor<>::random(thinned(with(k, n), 2), true);
      t.c = Tensor<>::random(with(m, n), pick(0, 3) == 0);
      t.has_bias = pick(0, 1), t.has_residual = pick(0, 1);
      t.bias = Tensor<>::dense({n});
      Dims rd = with(m, n);
      if (pick(0, 4) == 0) rd.back() = 1;
      t.residual = Tensor<>::random(thinned(rd, 1), pick(0, 3) == 0);
      t.act = pick(0, 3);
      t.floats = {t.act == 3 ? 0.2 : -0.7, 0.9, pick(0, 1) ? 1.0 : 0.37};
      t.run_and_check(("m n k " + text({m, n, k}) + "batch " + text(batch)).c_str());
      if (::testing::Test::HasFatalFailure() || ::testing::Test::HasFailure()) return;
    }
  });
}

TEST(Matmul, LargerShapesInManyChunks) {
  each_isa([] {
    for (Dims s : {Dims{1, 900, 1300}, Dims{2, 130, 2500}, Dims{201, 333, 1111}, Dims{1000, 48, 64}, Dims{97, 16, 1500}, Dims{3, 5, 5000}}) {
      Matmul t;
      t.a = Tensor<>::random({s[0], s[2]}, false);
      t.b = Tensor<>::random({s[2], s[1]}, true);
      t.c = Tensor<>::random({s[0], s[1]}, false);
      t.has_bias = t.has_residual = true;
      t.bias = Tensor<>::dense({s[1]});
      t.residual = Tensor<>::random({s[0], s[1]}, false);
      t.run_and_check(text(s).c_str());
      const Tensor<> first = t.c;  // the chunks run in another order now: the same bits
      t.run_and_check(text(s).c_str());
      ASSERT_EQ(0, std::memcmp(first.memory.data(), t.c.memory.data(), first.memory.size() * sizeof(float)));
    }
  });
}

// Shapes that decode steps have: few rows against a large B with contiguous rows, contiguous columns, or neither.
TEST(Matmul, FewRowsReadBAsItLies) {
  each_isa([] {
    for (const std::vector<int>& order : {std::vector<int>{1, 0}, std::vector<int>{0, 1}})
      for (int64_t m = 1; m <= 18; ++m)
        for (Dims s : {Dims{1300, 65}, Dims{67, 2100}, Dims{4099, 8}, Dims{1, 300}, Dims{300, 1}, Dims{17, 3}}) {
          Matmul t;
          t.a = Tensor<>::random({m, s[1]}, false);
          const int64_t inner = pick_of({1, 1, 1, 2}), gap = pick_of({0, 3});
          t.b = Tensor<>({s[1], s[0]}, order, gap, inner, DType::f32);
          t.c = Tensor<>::random({m, s[0]}, pick(0, 4) == 0);
          t.has_bias = pick(0, 1), t.has_residual = pick(0, 1);
          t.bias = Tensor<>::dense({s[0]});
          t.residual = Tensor<>::random({m, s[0]}, false);
          t.act = pick(0, 3);
          t.floats = {0.1, 0.9, 0.5};
          t.run_and_check(("m n k " + text({m, s[0], s[1]})).c_str());
          if (::testing::Test::HasFailure()) return;
        }
  });
}

// What lies in the gaps of B and beyond its end has no part in the result.
TEST(Matmul, FewRowsDoNotSeeWhatIsNotB) {
  each_isa([] {
    for (const std::vector<int>& order : {std::vector<int>{1, 0}, std::vector<int>{0, 1}})
      for (int64_t m : {1, 3, 8}) {
        Matmul t;
        t.a = Tensor<>::dense({m, 21}), t.b = Tensor<>({21, 37}, order, 5, 1, DType::f32), t.c = Tensor<>::dense({m, 37});
        std::vector<float> kept = t.b.memory;
        std::fill(t.b.memory.begin(), t.b.memory.end(), kNan);
        for (int64_t i = 0; i < 21; ++i)
          for (int64_t j = 0; j < 37; ++j) {
            const auto at = static_cast<size_t>(t.b.pointer({i, j}) - t.b.memory.data());
            t.b.memory[at] = kept[at];
          }
        t.run_one(t.b.view(), 1, "gaps of NaN");
      }
  });
}

TEST(Matmul, BatchesFoldAndBroadcast) {
  each_isa([] {
    Matmul t;
    t.a = Tensor<>::dense({4, 7, 1, 33});   // M = 1, shared B: one matmul of 28 rows
    t.b = Tensor<>::dense({33, 50});
    t.c = Tensor<>::dense({4, 7, 1, 50});
    t.run_and_check("fold");
    t.a = Tensor<>::dense({12, 5, 9});
    t.b = Tensor<>::dense({12, 9, 20});
    t.c = Tensor<>::dense({12, 5, 20});
    t.run_and_check("batched B");
    t.a = Tensor<>::dense({1, 5, 9});
    t.run_and_check("A broadcast");
    t.has_residual = true;
    t.residual = Tensor<>::dense({5, 20});
    t.run_and_check("residual broadcast");
  });
}

TEST(Matmul, ResidualMayBeTheOutput) {
  each_isa([] {
    Matmul t;
    t.a = Tensor<>::dense({37, 19}), t.b = Tensor<>::dense({19, 45}), t.c = Tensor<>::dense({37, 45});
    t.has_residual = true;
    t.residual = t.c;
    Tensor<> p = packed(t.b);
    Task task;
    task.in = {t.a.view(), p.view(), View{}, t.c.view()}, task.out = {t.c.view()};
    task.ints = {1}, task.floats = {0, 0, 1};
    run_task("cube.matmul", task);
    for (int64_t i = 0; i < 37; ++i)
      for (int64_t j = 0; j < 45; ++j) {
        double sum = t.residual.at({i, j});
        for (int64_t k = 0; k < 19; ++k) sum += static_cast<double>(t.a.at({i, k})) * t.b.at({k, j});
        ASSERT_NEAR(t.c.at({i, j}), std::max(sum, 0.0), 1e-4);
      }
  });
}

TEST(Matmul, NanPassesThroughActivations) {
  each_isa([] {
    for (int64_t act = 0; act < 4; ++act)
      for (int64_t n : {5, 16, 70}) {
        Tensor<> a = Tensor<>::dense({3, 4}), b = Tensor<>::dense({4, n}), c = Tensor<>::dense({3, n});
        a.memory[static_cast<size_t>(a.base + 4)] = kNan;
        Tensor<> p = packed(b);
        Task t;
        t.in = {a.view(), p.view()}, t.out = {c.view()}, t.ints = {act}, t.floats = {0.1, 0.9, 1};
        run_task("cube.matmul", t);
        for (int64_t j = 0; j < n; ++j) {
          ASSERT_FALSE(std::isnan(c.at({0, j})));
          ASSERT_TRUE(std::isnan(c.at({1, j}))) << act;
          ASSERT_FALSE(std::isnan(c.at({2, j})));
        }
      }
  });
}

TEST(Matmul, LongSumsStayAccurate) {
  each_isa([] {
    for (int64_t m : {1, 5}) {
      Tensor<> a = Tensor<>::dense({m, 9001}), b = Tensor<>::dense({9001, 70}), c = Tensor<>::dense({m, 70});
      for (auto* x : {&a, &b}) x->each([](float& v) { v = std::abs(v); });
      Tensor<> p = packed(b);
      Task t;
      t.in = {a.view(), p.view()}, t.out = {c.view()}, t.ints = {0}, t.floats = {0, 0, 1};
      run_task("cube.matmul", t);
      for (int64_t j = 0; j < 70; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < 9001; ++k) sum += static_cast<double>(a.at({0, k})) * b.at({k, j});
        // A single chain of 9001 positive terms is off by about 1e-5; blocks of 512 by a tenth.
        ASSERT_NEAR(c.at({0, j}) / sum, 1, 3e-6);
      }
    }
  });
}

// Whichever tiles the columns fall into, as the last ones are narrower.
TEST(Matmul, EqualColumnsOfFewRowsHaveEqualSums) {
  each_isa([] {
    for (int64_t m : {1, 2, 3, 4, 5, 6})
      for (int64_t n : {17, 80, 100, 1000}) {
        Tensor<> a = Tensor<>::dense({m, 1000}), b = Tensor<>::dense({1000, n}), c = Tensor<>::dense({m, n});
        b.each([](float& v) { v = 0.02f; });
        Tensor<> p = packed(b);
        for (int64_t plain : {0, 1}) {
          Task t;
          t.in = {a.view(), plain ? b.view() : p.view()}, t.out = {c.view()}, t.ints = {0, plain}, t.floats = {0, 0, 1};
          run_task("cube.matmul", t);
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 1; j < n; ++j) ASSERT_EQ(c.at({i, j}), c.at({i, 0})) << m << " x " << n << ", column " << j;
        }
      }
  });
}

TEST(Matmul, VectorProgramAsEpilogue) {
  auto program = vector::parse("io 3 2; v0 = load 0; v1 = load 1; v2 = load 2; v3 = mul v0 v1; v4 = add v3 v2; "
                               "v5 = sigmoid v0; store 0 v4; store 1 v5");
  ASSERT_TRUE(program.ok()) << program.error().text();
  each_isa([&] {
    for (Dims s : {Dims{1, 1, 7, 5, 9}, Dims{2, 3, 100, 70, 40}, Dims{1, 2, 1, 300, 8}, Dims{3, 1, 17, 16, 0}, Dims{1, 1, 3, 1200, 30}})
      for (int64_t plain : {0, 1}) {
        Tensor<> a = Tensor<>::random({s[0], s[1], s[2], s[4]}, false), b = Tensor<>::dense({s[4], s[3]});
        Tensor<> c = Tensor<>::random({s[0], s[1], s[2], s[3]}, false), c2 = Tensor<>::dense({s[0], s[1], s[2], s[3]});
        Tensor<> x = Tensor<>::random({s[1], s[2], s[3]}, false), y = Tensor<>::dense({s[0], 1, s[2], 1});
        Tensor<> p = packed(b);
        Task t;
        t.in = {a.view(), plain ? b.view() : p.view(), View{}, View{}, x.view(), y.view()}, t.out = {c.view(), c2.view()};
        t.ints = {0, plain}, t.floats = {0, 0, 1};
        t.blob = vector::encode(*program);
        run_task("cube.matmul", t);
        if (::testing::Test::HasFatalFailure()) return;
        c.expect_gaps_kept();
        for (int64_t i = 0; i < c.count(); ++i) {
          const Dims at = {i / (s[1] * s[2] * s[3]), i / (s[2] * s[3]) % s[1], i / s[3] % s[2], i % s[3]};
          double sum = 0;
          for (int64_t k = 0; k < s[4]; ++k) sum += static_cast<double>(a.at({at[0], at[1], at[2], k})) * b.at({k, at[3]});
          ASSERT_NEAR(c.at(at), sum * x.at(at) + y.at(at), 1e-4);
          ASSERT_NEAR(c2.at(at), 1 / (1 + std::exp(-sum)), 1e-5);
        }
      }
  });
}

TEST(Matmul, OneOutputProgramRunsInPlace) {
  auto program = vector::parse("io 1 1; v0 = load 0; v1 = tanh v0; store 0 v1");
  ASSERT_TRUE(program.ok());
  auto check = [&](int64_t m, int64_t n, bool plain) {
    Tensor<> a = Tensor<>::dense({m, 12}), b = Tensor<>::dense({12, n}), c = Tensor<>::random({m, n}, false);
    Tensor<> p = packed(b);
    Task t;
    t.in = {a.view(), plain ? b.view() : p.view()}, t.out = {c.view()}, t.ints = {1, plain}, t.floats = {0, 0, 1};
    t.blob = vector::encode(*program);
    run_task("cube.matmul", t);
    c.expect_gaps_kept();
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < 12; ++k) sum += static_cast<double>(a.at({i, k})) * b.at({k, j});
        ASSERT_NEAR(c.at({i, j}), std::tanh(std::max(0.0, sum)), 1e-5);
      }
  };
  each_isa([&] {
    for (bool plain : {false, true}) check(101, 90, plain), check(4, 1100, plain), check(30, 500, plain);
  });
}

TEST(Matmul, RefusesWhatItCannotDo) {
  Tensor<> a = Tensor<>::dense({5, 9}), b = Tensor<>::dense({2, 9, 16}), c = Tensor<>::dense({5, 20}), bias = Tensor<>::dense({20});
  Task good;
  good.in = {a.view(), b.view(), bias.view()}, good.out = {c.view()}, good.ints = {0}, good.floats = {0, 0, 1};
  ASSERT_TRUE(prepare_task("cube.matmul", good).ok());
  auto refuse = [&](const char* what, auto change) {
    Task t = good;
    change(t);
    EXPECT_FALSE(prepare_task("cube.matmul", t).ok()) << what;
  };
  Tensor<> other = Tensor<>::dense({5, 8}), rank3 = Tensor<>::dense({2, 5, 20}), rank1 = Tensor<>::dense({20});
  Tensor<> huge = other;
  huge.dims = {int64_t{1} << 40, int64_t{1} << 40};
  Tensor<> far = other;
  far.strides = {INT64_MAX / 2, INT64_MIN};
  refuse("no inputs", [](Task& t) { t.in.clear(); });
  refuse("no outputs", [](Task& t) { t.out.clear(); });
  refuse("one input", [](Task& t) { t.in.resize(1); });
  refuse("K differs", [&](Task& t) { t.in[0] = other.view(); });
  refuse("M differs", [&](Task& t) { t.out[0] = rank3.view(), t.in[0] = huge.view(); });
  refuse("sizes overflow", [&](Task& t) { t.in[0] = huge.view(); });
  refuse("strides overflow", [&](Task& t) { t.in[0] = far.view(); });
  refuse("rank 1", [&](Task& t) { t.out[0] = rank1.view(); });
  refuse("type", [](Task& t) { t.in[0].dtype = DType::f16; });
  refuse("type none", [](Task& t) { t.in[1].dtype = DType::none; });
  refuse("bias size", [&](Task& t) { t.in[2] = other.view(); });
  refuse("residual", [&](Task& t) { t.in.push_back(other.view()); });
  refuse("activation", [](Task& t) { t.ints[0] = 4; });
  refuse("activation", [](Task& t) { t.ints[0] = -1; });
  refuse("ints", [](Task& t) { t.ints.clear(); });
  refuse("floats", [](Task& t) { t.floats.pop_back(); });
  refuse("extra input without program", [&](Task& t) { t.in.push_back(View{}), t.in.push_back(c.view()); });
  refuse("program is garbage", [](Task& t) { t.blob.assign(10, std::byte{7}); });
  auto reduces = vector::parse("io 1 1; v0 = load 0; v1 = row_sum v0 | v2 = sub v0 v1; store 0 v2");
  ASSERT_TRUE(reduces.ok());
  refuse("program reduces rows", [&](Task& t) { t.blob = vector::encode(*reduces); });
  auto two = vector::parse("io 2 1; v0 = load 0; v1 = load 1; v2 = add v0 v1; store 0 v2");
  refuse("program of another arity", [&](Task& t) { t.blob = vector::encode(*two); });
  refuse("null dims", [](Task& t) { t.out[0].dims = nullptr; });
  refuse("rank beyond the limit", [](Task& t) { t.out[0].rank = 1000; });
  refuse("negative rank", [](Task& t) { t.in[0].rank = -3; });
}

// The microkernel's own features that matmul does not use: segments, row offsets, accumulate.
TEST(Microkernel, SegmentsRowOffsetsAccumulate) {
  each_isa([] {
    for (int round = 0; round < 300; ++round) {
      const int64_t m = pick_of({1, 2, 3, 5, 6, 7, 8, 11, 16, 24, 31, 100}), n = pick_of({1, 15, 16, 20, 32, 48, 64, 80, 96, 130});
      const int64_t segments = pick(1, 5), sk = pick_of({1, 3, 9, 48, 300}), k = segments * sk;
      std::vector<float> a(static_cast<size_t>(4000 + m * 64)), c(static_cast<size_t>(m * (n + 3))), b(static_cast<size_t>(cube::packed_floats(k, n)));
      std::vector<int64_t> so, ro;
      std::normal_distribution<float> g;
      for (auto* v : {&a, &b, &c})
        for (float& x : *v) x = g(rng());
      for (int64_t s = 0; s < segments; ++s) so.push_back(pick(0, 3000));
      for (int64_t i = 0; i < m; ++i) ro.push_back(pick(0, 60 * m));
      const bool rows = pick(0, 1), groups = rows && pick(0, 1), accumulate = pick(0, 1);
      std::vector<int64_t> start = ro;
      if (groups)
        for (int64_t i = 0; i < m; ++i) start[static_cast<size_t>(i)] = ro[static_cast<size_t>(i / cube::kRowGroup)] + i % cube::kRowGroup * 5;
      cube::Block t;
      t.m = m, t.n = n, t.a = a.data(), t.lda = groups ? 5 : rows ? 0 : 37, t.segments = segments, t.segment_k = sk;
      if (rows) t.row_offset = ro.data();
      t.segment_offset = so.data();
      t.b = b.data(), t.b_stride = k * 16, t.c = c.data(), t.ldc = n + 3;
      t.epilogue.accumulate = accumulate;
      const std::vector<float> old = c;
      cube::multiply(t);
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
              const double p = static_cast<double>(a[static_cast<size_t>((rows ? start[static_cast<size_t>(i)] : i * 37) + so[static_cast<size_t>(s)] + x)]) *
                               b[static_cast<size_t>((j / 16 * k + s * sk + x) * 16 + j % 16)];
              sum += p, size += std::abs(p);
            }
          ASSERT_NEAR(c[at], sum, 2e-6 * size) << m << " " << n << " " << k;
        }
    }
  });
}

TEST(Microkernel, FinishSeesEveryElementOnce) {
  struct Seen {
    std::vector<int> count;
    int64_t n;
  };
  each_isa([] {
    for (Dims s : {Dims{1, 1}, Dims{100, 130}, Dims{193, 80}, Dims{7, 16}}) {
      Seen seen{std::vector<int>(static_cast<size_t>(s[0] * s[1])), s[1]};
      std::vector<float> a(static_cast<size_t>(s[0] * 3), 1.f), b(static_cast<size_t>(cube::packed_floats(3, s[1])), 1.f), c(seen.count.size());
      cube::Block t;
      t.m = s[0], t.n = s[1], t.a = a.data(), t.lda = 3, t.segment_k = 3, t.b = b.data(), t.b_stride = 48;
      t.c = c.data(), t.ldc = s[1];
      t.epilogue.context = &seen;
      t.epilogue.finish = [](const void* x, float* c0, int64_t ldc, int64_t row, int64_t rows, int64_t column, int64_t columns) {
        auto* q = const_cast<Seen*>(static_cast<const Seen*>(x));
        EXPECT_LE(rows, cube::kBlockRows);
        EXPECT_EQ(column % 16, 0);
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns; ++j) {
            EXPECT_EQ(c0[i * ldc + j], 3.f);
            ++q->count[static_cast<size_t>((row + i) * q->n + column + j)];
          }
      };
      cube::multiply(t);
      for (int x : seen.count) ASSERT_EQ(x, 1);
    }
  });
}

}  // namespace
}  // namespace ge::kernels
