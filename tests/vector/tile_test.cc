// run_tile() against the scalar meaning of programs: random programs over types, sizes and broadcasts,
// on every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/text.h"
#include "vector/scalar_program.h"

namespace ge::kernels::vector {
namespace {

using namespace testing;  // NOLINT

struct alignas(64) Line { std::byte b[64]; };

using Rng = std::mt19937;

const DType kFloatLoads[] = {DType::f32, DType::f32, DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64,
                             DType::u8, DType::i8, DType::u16, DType::i16, DType::boolean};
const DType kIntLoads[] = {DType::i32, DType::i32, DType::u8, DType::i8, DType::u16, DType::i16, DType::boolean};
const DType kFloatStores[] = {DType::f32, DType::f32, DType::f16, DType::bf16};
const DType kIntStores[] = {DType::i32, DType::i64, DType::u8, DType::i8, DType::u16, DType::i16, DType::boolean};

struct Case {
  Program program;
  std::vector<OperandSpec> specs;
};

template <class T, size_t N>
T pick(const T (&a)[N], Rng& rng) {
  return a[rng() % N];
}

// Random typed programs. cheap: only operators that the scalar reference computes quickly.
Case random_case(Rng& rng, int length, bool reductions) {
  ProgramBuilder b;
  Case c;
  std::vector<Reg> f, i;  // registers by lane
  std::vector<bool> uniform(kMaxRegs, false);
  int inputs = 1 + static_cast<int>(rng() % 4);
  auto add = [&](Reg r, Lane lane, bool same) {
    (lane == Lane::f32 ? f : i).push_back(r);
    uniform[r] = same;
  };
  for (int k = 0; k < inputs; ++k) {
    bool is_int = k && rng() % 3 == 0, broadcast = k && rng() % 4 == 0;
    c.specs.push_back({is_int ? pick(kIntLoads, rng) : pick(kFloatLoads, rng), broadcast});
    add(b.load(k, is_int ? Lane::i32 : Lane::f32), is_int ? Lane::i32 : Lane::f32, broadcast);
  }
  add(b.constant(std::uniform_real_distribution<float>(-3, 3)(rng)), Lane::f32, true);
  add(b.constant_i32(static_cast<int32_t>(rng() % 9) - 4), Lane::i32, true);
  for (int n = 0; n < length; ++n) {
    const OpInfo& o = kOps[rng() % std::size(kOps)];
    if (o.sig[0] == '-' || o.sig.size() == 1 || (is_reduction(o.op) && (!reductions || rng() % 2))) continue;
    Lane x = rng() % 3 ? Lane::f32 : Lane::i32;
    auto lane = [&](char s) { return s == 'x' ? x : s == 'i' ? Lane::i32 : Lane::f32; };
    Reg args[3] = {kNoReg, kNoReg, kNoReg};
    bool same = true;
    for (size_t k = 1; k < o.sig.size(); ++k) {
      auto& from = lane(o.sig[k]) == Lane::f32 ? f : i;
      // Mostly recent values, so that chains form; sometimes any.
      size_t back = rng() % 3 ? rng() % std::min<size_t>(3, from.size()) : rng() % from.size();
      args[k - 1] = from[from.size() - 1 - back];
      same = same && uniform[args[k - 1]];
    }
    add(b.op(o.op, args[0], args[1], args[2]), lane(o.sig[0]), same || is_reduction(o.op));
  }
  int outputs = 1 + static_cast<int>(rng() % 3);
  for (int k = 0; k < outputs; ++k) {
    bool is_int = rng() % 4 == 0;
    auto& from = is_int ? i : f;
    Reg r = k ? from[rng() % from.size()] : from.back();
    c.specs.push_back({is_int ? pick(kIntStores, rng) : pick(kFloatStores, rng), uniform[r] && rng() % 2});
    b.store(k, r);
  }
  auto p = b.finish(inputs, outputs);
  if (p.ok()) c.program = *p;  // too many phases: the caller draws again
  return c;
}

void fill(std::vector<std::byte>& data, DType t, Rng& rng) {
  size_t size = static_cast<size_t>(size_of(t));
  const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-42f, -1e-40f, 3e38f, 0.5f, 1.5f, -2.5f, 1.0f};
  for (size_t k = 0; k * size < data.size(); ++k) {
    float v = rng() % 10 ? std::uniform_real_distribution<float>(-6, 6)(rng) : pick(special, rng);
    std::byte* p = data.data() + k * size;
    auto put = [&](auto x) { std::memcpy(p, &x, sizeof x); };
    if (t == DType::f32) put(v);
    else if (t == DType::f16) put(f32_to_f16(v));
    else if (t == DType::bf16) put(f32_to_bf16(v));
    else if (size == 8) put(rng() % 2 ? static_cast<int64_t>(rng()) << rng() % 32 : static_cast<int64_t>(rng() % 7));
    else if (size == 4) put(rng() % 3 ? static_cast<int32_t>(rng() % 21) - 10 : static_cast<int32_t>(rng()));
    else if (size == 2) put(static_cast<uint16_t>(rng()));
    else put(static_cast<uint8_t>(t == DType::boolean ? rng() % 3 == 0 : rng()));
  }
}

// NaNs need not carry the same bits.
bool same(const std::byte* a, const std::byte* b, DType t) {
  uint32_t x = load_element(a, t, is_float(t) ? Lane::f32 : Lane::i32), y = load_element(b, t, is_float(t) ? Lane::f32 : Lane::i32);
  if (is_float(t)) return as_f(x) == as_f(y) || (std::isnan(as_f(x)) && std::isnan(as_f(y)));
  return std::memcmp(a, b, static_cast<size_t>(size_of(t))) == 0;
}

struct Buffers {
  std::vector<std::vector<std::byte>> data;  // exactly as large as the tile reaches, for the sanitizers
  std::vector<TileOperand> tiles;
};

Buffers make_buffers(const Case& c, int64_t rows, int64_t cols, Rng& rng) {
  Buffers b;
  for (size_t k = 0; k < c.specs.size(); ++k) {
    bool input = k < c.program.inputs;
    int64_t size = size_of(c.specs[k].dtype);
    bool broadcast = c.specs[k].broadcast || (input && rng() % 6 == 0);
    int64_t width = broadcast ? 1 : cols;
    int64_t stride = input && rng() % 5 == 0 ? 0 : (width + (rng() % 2 ? 0 : static_cast<int64_t>(rng() % 5))) * size;
    int64_t bytes = rows && width ? (rows - 1) * stride + width * size : 0;
    b.data.emplace_back(static_cast<size_t>(bytes));
    fill(b.data.back(), c.specs[k].dtype, rng);
    b.tiles.push_back({nullptr, stride, broadcast ? 0 : 1});
  }
  return b;
}

std::vector<TileOperand> bind(Buffers& b) {
  for (size_t k = 0; k < b.data.size(); ++k) b.tiles[k].data = b.data[k].data();
  return b.tiles;
}

void compare(const Case& c, const Buffers& want, const Buffers& got, const std::string& what) {
  for (size_t k = c.program.inputs; k < c.specs.size(); ++k) {
    size_t size = static_cast<size_t>(size_of(c.specs[k].dtype));
    for (size_t at = 0; at + size <= want.data[k].size(); at += size) {
      if (same(&want.data[k][at], &got.data[k][at], c.specs[k].dtype)) continue;
      auto lane = is_float(c.specs[k].dtype) ? Lane::f32 : Lane::i32;
      uint32_t w = load_element(&want.data[k][at], c.specs[k].dtype, lane), g = load_element(&got.data[k][at], c.specs[k].dtype, lane);
      FAIL() << what << "\n" << print(c.program) << "\noutput " << k - c.program.inputs << " (" << ge::name(c.specs[k].dtype)
             << ") element " << at / size << ": want " << w << " (" << as_f(w) << ") got " << g << " (" << as_f(g) << ")";
    }
  }
}

void run(const Case& c, std::vector<TileOperand> t, int64_t rows, int64_t cols, CompileOptions options = {}) {
  auto compiled = compile(c.program, c.specs, options);
  ASSERT_TRUE(compiled.ok()) << compiled.error().text() << "\n" << print(c.program);
  std::vector<Line> scratch(static_cast<size_t>(scratch_bytes(**compiled, cols)) / 64);
  run_tile(**compiled, t.data(), rows, cols, scratch.data()->b);
}

class Tile : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { set_isa(GetParam()); }
  void TearDown() override { set_isa(best_isa()); }
};

const int64_t kCols[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 257, 300, 1000};

TEST_P(Tile, RandomPrograms) {
  Rng rng(11);
  for (int round = 0; round < 2500; ++round) {
    Case c = random_case(rng, 3 + static_cast<int>(rng() % 25), round % 2);
    if (c.program.phases.empty()) continue;
    int64_t rows = static_cast<int64_t>(rng() % 4), cols = pick(kCols, rng);
    Buffers want = make_buffers(c, rows, cols, rng), got = want;
    run_scalar(c.program, c.specs, bind(want).data(), rows, cols);
    run(c, bind(got), rows, cols, {.stream = rng() % 2 == 0});
    compare(c, want, got, ge::format("round {} rows {} cols {}", round, rows, cols));
    if (HasFatalFailure()) return;
  }
}

TEST_P(Tile, RandomLongPrograms) {
  Rng rng(12);
  for (int round = 0; round < 60; ++round) {
    Case c = random_case(rng, 300, false);
    if (c.program.phases.empty()) continue;
    int64_t rows = 1 + static_cast<int64_t>(rng() % 2), cols = pick(kCols, rng);
    Buffers want = make_buffers(c, rows, cols, rng), got = want;
    run_scalar(c.program, c.specs, bind(want).data(), rows, cols);
    run(c, bind(got), rows, cols);
    compare(c, want, got, ge::format("round {} rows {} cols {}", round, rows, cols));
    if (HasFatalFailure()) return;
  }
}

// Every output in the place of an input of the same type, one after another.
TEST_P(Tile, InPlace) {
  Rng rng(13);
  int done = 0;
  for (int round = 0; round < 3000; ++round) {
    Case c = random_case(rng, 3 + static_cast<int>(rng() % 20), round % 2);
    if (c.program.phases.empty()) continue;
    int64_t rows = 1 + static_cast<int64_t>(rng() % 3), cols = pick(kCols, rng);
    Buffers want = make_buffers(c, rows, cols, rng);
    for (size_t k = 0; k < c.specs.size(); ++k)
      if (!c.specs[k].broadcast) {
        int64_t size = size_of(c.specs[k].dtype);
        want.data[k].resize(static_cast<size_t>(rows * cols * size));
        fill(want.data[k], c.specs[k].dtype, rng);
        want.tiles[k] = {nullptr, cols * size, 1};
      }
    Buffers got = want;
    bind(want), bind(got);
    std::vector<bool> taken(c.specs.size(), false);
    bool any = false;
    for (size_t o = c.program.inputs; o < c.specs.size(); ++o)
      for (size_t k = 0; k < c.program.inputs; ++k)
        if (!taken[k] && !c.specs[k].broadcast && !c.specs[o].broadcast && size_of(c.specs[k].dtype) == size_of(c.specs[o].dtype) && rng() % 2) {
          taken[k] = any = true;
          got.tiles[o].data = got.tiles[k].data;
          break;
        }
    if (!any) continue;
    ++done;
    run_scalar(c.program, c.specs, want.tiles.data(), rows, cols);
    run(c, got.tiles, rows, cols);
    for (size_t o = c.program.inputs; o < c.specs.size(); ++o)
      if (!got.data[o].empty()) std::memcpy(got.data[o].data(), got.tiles[o].data, got.data[o].size());
    compare(c, want, got, ge::format("round {} rows {} cols {}", round, rows, cols));
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(done, 500);
}

TEST_P(Tile, LongRowsSumInBlocks) {
  Rng rng(14);
  for (int64_t cols : {8191, 8192, 8193, 8192 + 127, 8192 + 128, 3 * 8192, 50000}) {
    Case c;
    c.program = *parse("v0 = load 0; v1 = row_mean v0; v2 = row_max v0; v3 = row_sum v0 | v4 = sub v0 v1; v5 = row_min v4 | "
                       "v6 = sub v4 v5; store 0 v6; store 1 v1; store 2 v2; store 3 v3");
    c.specs = {{DType::f32}, {DType::f32}, {DType::f32, true}, {DType::f32, true}, {DType::f32, true}};
    Buffers want;
    for (size_t k = 0; k < c.specs.size(); ++k) {
      int64_t width = c.specs[k].broadcast ? 1 : cols;
      want.data.emplace_back(static_cast<size_t>(width * 8));
      for (size_t i = 0; i < want.data[k].size() / 4; ++i) {
        float v = std::uniform_real_distribution<float>(0, 1)(rng);
        std::memcpy(want.data[k].data() + 4 * i, &v, 4);
      }
      want.tiles.push_back({nullptr, width * 4, c.specs[k].broadcast ? 0 : 1});
    }
    Buffers got = want;
    run_scalar(c.program, c.specs, bind(want).data(), 2, cols);
    run(c, bind(got), 2, cols);
    compare(c, want, got, ge::format("cols {}", cols));
  }
}

TEST_P(Tile, SumOfAMillionIsAccurate) {
  size_t n = 1 << 20;
  std::vector<float> x(n), out(1);
  Rng rng(15);
  double want = 0;
  for (float& v : x) want += v = std::uniform_real_distribution<float>(0, 1)(rng);
  Case c{*parse("v0 = load 0; v1 = row_sum v0 | store 0 v1"), {{DType::f32}, {DType::f32, true}}};
  run(c, {{reinterpret_cast<std::byte*>(x.data())}, {reinterpret_cast<std::byte*>(out.data()), 0, 0}}, 1, static_cast<int64_t>(n));
  EXPECT_NEAR(out[0] / want, 1.0, 2e-6);
}

TEST_P(Tile, NanRules) {
  Case c{*parse("v0 = load 0; v1 = load 1; v2 = max v0 v1; v3 = min v0 v1; v4 = ne v0 v1; v5 = ge v0 v1; v6 = relu v0; "
                "v7 = row_max v0 | store 0 v2; store 1 v3; store 2 v4; store 3 v5; store 4 v6; store 5 v7"),
         {{DType::f32}, {DType::f32}, {DType::f32}, {DType::f32}, {DType::i32}, {DType::boolean}, {DType::f32}, {DType::f32, true}}};
  float nan = NAN;
  std::vector<float> a(40, 1.0f), b(40, 2.0f), o0(40), o1(40), o4(40), o5(1);
  std::vector<int32_t> o2(40);
  std::vector<uint8_t> o3(40);
  a[1] = nan, b[39] = nan, a[33] = b[33] = nan;
  auto t = [](auto& v) { return TileOperand{reinterpret_cast<std::byte*>(v.data()), 0, 1}; };
  run(c, {t(a), t(b), t(o0), t(o1), t(o2), t(o3), t(o4), t(o5)}, 1, 40);
  for (size_t i = 0; i < 40; ++i) {
    bool n = i == 1 || i == 39 || i == 33;
    EXPECT_EQ(std::isnan(o0[i]), n) << i;
    EXPECT_EQ(std::isnan(o1[i]), n) << i;
    EXPECT_EQ(o2[i], 1);
    EXPECT_EQ(o3[i], 0);
    EXPECT_EQ(std::isnan(o4[i]), i == 1 || i == 33);
  }
  EXPECT_TRUE(std::isnan(o5[0]));
}

TEST_P(Tile, CompileRefusesWrongStorage) {
  Program p = *parse("v0 = load 0; v1 = lt v0 v0; store 0 v0; store 1 v1");
  auto fails = [&](std::vector<OperandSpec> specs) { return !compile(p, specs).ok(); };
  EXPECT_FALSE(fails({{DType::f32}, {DType::f32}, {DType::boolean}}));
  EXPECT_TRUE(fails({{DType::f32}, {DType::i32}, {DType::boolean}}));
  EXPECT_TRUE(fails({{DType::f32}, {DType::f32}, {DType::f32}}));
  EXPECT_TRUE(fails({{DType::f64}, {DType::f32}, {DType::boolean}}));
  EXPECT_TRUE(fails({{DType::f32}, {DType::f32}}));
  EXPECT_TRUE(fails({{DType::f32}, {DType::f32, true}, {DType::boolean}}));
}

INSTANTIATE_TEST_SUITE_P(Isas, Tile, ::testing::ValuesIn(isas()),
                         [](const auto& i) { return std::string(ge::kernels::name(i.param)); });

}  // namespace
}  // namespace ge::kernels::vector
