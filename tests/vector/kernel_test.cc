// The kernel "vector.program" over whole tensors: broadcasts, permuted and sliced views, row axes,
// against the scalar meaning of the program on plain copies of the operands.
#include "kernels/kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "base/text.h"
#include "vector/scalar_program.h"

namespace ge::kernels::vector {
namespace {

using namespace testing;  // NOLINT

using Rng = std::mt19937;

// A view with storage of its own, in any layout.
struct Operand {
  std::vector<int64_t> dims, strides;
  DType dtype = DType::f32;
  std::vector<std::byte> data;
  int64_t base = 0;  // element of index 0

  View view() {
    return {data.data() + base * size_of(dtype), dtype, static_cast<int32_t>(dims.size()), dims.data(), strides.data()};
  }
  int64_t at(const std::vector<int64_t>& index) const {  // byte offset
    int64_t e = base;
    size_t skip = index.size() - dims.size();
    for (size_t a = 0; a < dims.size(); ++a) e += dims[a] == 1 ? 0 : index[skip + a] * strides[a];
    return e * size_of(dtype);
  }
};

// Random layout: axes in any order in memory, with gaps, sometimes reversed.
Operand make(std::vector<int64_t> dims, DType t, Rng& rng, bool plain) {
  Operand o;
  o.dims = dims;
  o.dtype = t;
  o.strides.resize(dims.size());
  std::vector<size_t> order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  if (!plain && rng() % 2) std::shuffle(order.begin(), order.end(), rng);
  int64_t step = plain || rng() % 4 ? 1 : 1 + static_cast<int64_t>(rng() % 3), count = step;
  for (size_t n = order.size(); n-- > 0;) {
    size_t a = order[n];
    o.strides[a] = step;
    step *= std::max<int64_t>(dims[a], 1);
    if (!plain && rng() % 4 == 0) step += static_cast<int64_t>(rng() % 3);
  }
  count += step;
  o.data.resize(static_cast<size_t>(count * size_of(t)));
  for (size_t a = 0; a < dims.size(); ++a) {
    if (plain || rng() % 8 || dims[a] == 0) continue;
    o.base += (dims[a] - 1) * o.strides[a];
    o.strides[a] = -o.strides[a];
  }
  for (size_t i = 0; i + 4 <= o.data.size(); i += 4) {
    float v = std::uniform_real_distribution<float>(-4, 4)(rng);
    if (t == DType::f32) std::memcpy(&o.data[i], &v, 4);
    else if (t == DType::f16) for (size_t h = 0; h < 4; h += 2) { uint16_t x = f32_to_f16(v); std::memcpy(&o.data[i + h], &x, 2); }
    else if (t == DType::boolean) for (size_t h = 0; h < 4; ++h) o.data[i + h] = static_cast<std::byte>(rng() % 2);
    else { int32_t x = static_cast<int32_t>(rng() % 100) - 50; std::memcpy(&o.data[i], &x, 4); }
  }
  return o;
}

// All elements of the common shape, in row-major order.
template <class F>
void each(const std::vector<int64_t>& dims, F f) {
  std::vector<int64_t> index(dims.size(), 0);
  for (int64_t d : dims)
    if (!d) return;
  while (true) {
    f(index);
    size_t a = dims.size();
    while (a-- > 0) {
      if (++index[a] < dims[a]) break;
      index[a] = 0;
    }
    if (a == static_cast<size_t>(-1)) return;
  }
}

struct Task {
  Program program;
  std::vector<Operand> in, out;
  std::vector<int64_t> common;
  int64_t row_axes = 0;
};

Result<Work> run_kernel(Task& t, Rng& rng, bool in_place = false) {
  const Kernel* k = find("vector.program");
  std::vector<View> in, out;
  for (Operand& o : t.in) in.push_back(o.view());
  for (Operand& o : t.out) out.push_back(o.view());
  if (in_place) out[0].data = in[0].data;
  auto blob = encode(t.program);
  int64_t ints[] = {t.row_axes};
  std::vector<View> in_sizes = in, out_sizes = out;
  for (View& v : in_sizes) v.data = nullptr;
  for (View& v : out_sizes) v.data = nullptr;
  Call call;
  call.in = in_sizes, call.out = out_sizes, call.ints = ints, call.blob = blob;
  auto work = k->prepare(call);
  if (!work.ok()) return work;
  call.in = in, call.out = out;
  call.state = work->state.get();
  struct alignas(64) Line { std::byte b[64]; };
  std::vector<int64_t> chunks(static_cast<size_t>(work->chunks));
  std::iota(chunks.begin(), chunks.end(), 0);
  std::shuffle(chunks.begin(), chunks.end(), rng);
  for (int64_t c : chunks) {
    std::vector<Line> scratch(static_cast<size_t>(work->scratch + 63) / 64);
    call.scratch = scratch.data()->b;
    EXPECT_TRUE(k->run(call, c).ok());
  }
  return work;
}

// What the outputs must be, from dense copies.
std::vector<std::vector<std::byte>> expected(Task& t) {
  size_t split = t.common.size() - static_cast<size_t>(t.row_axes ? t.row_axes : 0);
  int64_t rows = 1, cols = 1;
  for (size_t a = 0; a < t.common.size(); ++a) (a < split ? rows : cols) *= t.common[a];
  std::vector<std::vector<std::byte>> dense;
  std::vector<TileOperand> tiles;
  std::vector<OperandSpec> specs;
  for (Operand& o : t.in) {
    auto size = static_cast<size_t>(size_of(o.dtype));
    auto& d = dense.emplace_back();
    each(t.common, [&](const auto& index) {
      d.resize(d.size() + size);
      std::memcpy(d.data() + d.size() - size, o.data.data() + o.at(index), size);
    });
    specs.push_back({o.dtype, false});
  }
  for (Operand& o : t.out) {
    int64_t own = 1;
    for (size_t a = split; a < t.common.size(); ++a) own *= o.dims[a];
    bool single = t.row_axes && own == 1 && cols != 1;
    dense.emplace_back(static_cast<size_t>(rows * (single ? 1 : cols) * size_of(o.dtype)));
    specs.push_back({o.dtype, single});
  }
  for (size_t k = 0; k < dense.size(); ++k)
    tiles.push_back({dense[k].data(), (specs[k].broadcast ? 1 : cols) * size_of(specs[k].dtype), 1});
  run_scalar(t.program, specs, tiles.data(), rows, cols);
  return {dense.begin() + static_cast<long>(t.in.size()), dense.end()};
}

void compare(Task& t, const std::vector<std::vector<std::byte>>& want, const std::string& what, const std::byte* in_place = nullptr) {
  for (size_t k = 0; k < t.out.size(); ++k) {
    Operand& o = t.out[k];
    auto size = static_cast<size_t>(size_of(o.dtype));
    size_t n = 0;
    each(o.dims, [&](const auto& index) {
      const std::byte *w = want[k].data() + n++ * size, *g = (in_place ? in_place - o.base * size_of(o.dtype) : o.data.data()) + o.at(index);
      if (::testing::Test::HasFatalFailure() || std::memcmp(w, g, size) == 0) return;
      if (o.dtype == DType::f32 && std::isnan(read<float>(w)) && std::isnan(read<float>(g))) return;
      // Rows of several axes are summed in the order in which they lie in memory.
      if (o.dtype == DType::f32 && t.row_axes > 1 && std::fabs(read<float>(w) - read<float>(g)) < 2e-5f + 1e-5f * std::fabs(read<float>(w))) return;
      auto shape = [](const Operand& x) {
        std::string s;
        for (size_t a = 0; a < x.dims.size(); ++a) s += ge::format("{}:{} ", x.dims[a], x.strides[a]);
        return s;
      };
      std::string shapes;
      for (auto& x : t.in) shapes += "\n in " + shape(x);
      for (auto& x : t.out) shapes += "\n out " + shape(x);
      FAIL() << what << " output " << k << " element " << n - 1 << ": want " << load_element(w, o.dtype, is_float(o.dtype) ? Lane::f32 : Lane::i32)
             << " got " << load_element(g, o.dtype, is_float(o.dtype) ? Lane::f32 : Lane::i32) << " row axes " << t.row_axes << "\n" << print(t.program) << shapes;
    });
  }
}

struct Sample {
  const char* text;
  bool reduces;
  std::vector<DType> in, out;
  std::vector<bool> single;  // outputs of one value a row
};

const Sample kSamples[] = {
    {"v0 = load 0; v1 = load 1; v2 = add v0 v1; v3 = relu v2; store 0 v3", false, {DType::f32, DType::f32}, {DType::f32}, {false}},
    {"v0 = load 0; v1 = load 1; v2 = load 2; v3 = fma v0 v1 v2; v4 = tanh v3; store 0 v4; store 1 v3", false,
     {DType::f32, DType::f16, DType::f32}, {DType::f32, DType::f16}, {false, false}},
    {"v0 = load_i32 0; v1 = load 1; v2 = load 2; v3 = select v0 v1 v2; v4 = lt v3 v1; store 0 v4; store 1 v3", false,
     {DType::boolean, DType::f32, DType::f32}, {DType::boolean, DType::f32}, {false, false}},
    {"v0 = load 0; v1 = neg v0; store 0 v1", false, {DType::f32}, {DType::f32}, {false}},
    {"v0 = load 0; v1 = row_max v0 | v2 = sub v0 v1; v3 = exp v2; v4 = row_sum v3 | v5 = div v3 v4; store 0 v5", true,
     {DType::f32}, {DType::f32}, {false}},
    {"v0 = load 0; v1 = row_mean v0 | v2 = sub v0 v1; v3 = square v2; v4 = row_mean v3; v9 = const 1e-5 | v5 = add v4 v9; "
     "v6 = rsqrt v5; v7 = mul v2 v6; v8 = load 1; v10 = load 2; v11 = fma v7 v8 v10; store 0 v11; store 1 v1", true,
     {DType::f32, DType::f32, DType::f32}, {DType::f32, DType::f32}, {false, true}},
    {"v0 = load 0; v1 = row_sum v0; v2 = row_min v0 | store 0 v1; store 1 v2", true, {DType::f32}, {DType::f32, DType::f32}, {true, true}},
};

class Vector : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { set_isa(GetParam()); }
  void TearDown() override { set_isa(best_isa()); }
};

Task random_task(const Sample& s, Rng& rng) {
  Task t;
  t.program = *parse(s.text);
  size_t rank = rng() % 5;
  if (s.reduces) rank = std::max<size_t>(rank, 1);
  const int64_t sizes[] = {1, 2, 3, 5, 8, 16, 31, 0, 64, 70};
  int64_t count = 1;
  for (size_t a = 0; a < rank; ++a) {
    int64_t d = sizes[rng() % (count > 500 ? 3 : rng() % 10 ? 7 : 10)];
    t.common.push_back(d);
    count *= std::max<int64_t>(d, 1);
  }
  if (rank && rng() % 10 == 0 && count < 40) t.common[rng() % rank] = 300 + static_cast<int64_t>(rng() % 3000);
  t.row_axes = s.reduces ? 1 + static_cast<int64_t>(rng() % rank) : 0;
  bool plain = rng() % 3 == 0;
  for (size_t k = 0; k < s.in.size(); ++k) {
    auto dims = t.common;
    for (auto& d : dims)
      if (k && rng() % 3 == 0) d = 1;
    if (k && rng() % 3 == 0) dims.erase(dims.begin(), dims.begin() + static_cast<long>(rng() % (rank + 1)));
    t.in.push_back(make(dims, s.in[k], rng, plain));
  }
  for (size_t k = 0; k < s.out.size(); ++k) {
    auto dims = t.common;
    if (s.single[k])
      for (size_t a = rank - static_cast<size_t>(t.row_axes); a < rank; ++a) dims[a] = 1;
    t.out.push_back(make(dims, s.out[k], rng, plain));
  }
  return t;
}

TEST_P(Vector, RandomViews) {
  Rng rng(21);
  for (int round = 0; round < 1500; ++round) {
    Task t = random_task(kSamples[rng() % std::size(kSamples)], rng);
    auto want = expected(t);
    auto work = run_kernel(t, rng);
    ASSERT_TRUE(work.ok()) << work.error().text();
    compare(t, want, ge::format("round {}", round));
    if (HasFatalFailure()) return;
  }
}

TEST_P(Vector, InPlace) {
  Rng rng(22);
  for (int round = 0; round < 400; ++round) {
    Task t = random_task(kSamples[rng() % 6], rng);
    if (t.in[0].dtype != t.out[0].dtype || t.out[0].dims != t.in[0].dims) continue;
    t.out[0].strides = t.in[0].strides;
    t.out[0].base = t.in[0].base;
    t.out[0].data.resize(t.in[0].data.size());
    auto want = expected(t);
    auto work = run_kernel(t, rng, true);
    ASSERT_TRUE(work.ok()) << work.error().text();
    t.out[0].data = t.in[0].data;
    compare(t, want, ge::format("round {}", round));
    if (HasFatalFailure()) return;
  }
}

// Sizes large enough for several chunks, for joined rows, and for blocks within rows.
TEST_P(Vector, LargeShapes) {
  Rng rng(23);
  struct Shape { std::vector<int64_t> common, second; int64_t axes; int sample; };
  const Shape shapes[] = {
      {{200000}, {1}, 0, 0},
      {{40000, 3}, {3}, 0, 0},
      {{40000, 3}, {40000, 1}, 0, 0},
      {{1000, 1}, {1000, 1}, 0, 0},
      {{1, 16, 90, 90}, {1, 16, 1, 1}, 0, 0},
      {{2, 90, 90, 16}, {16}, 0, 0},
      {{300, 768}, {768}, 1, 5},
      {{20, 12, 90, 90}, {1, 12, 1, 1}, 2, 5},
      {{5000, 10}, {10}, 1, 4},
      {{3, 70000}, {70000}, 1, 4},
      // Short rows, whole blocks of them and parts.
      {{5000, 2}, {2}, 1, 5},
      {{300, 3}, {3}, 1, 4},
      {{3, 131, 33}, {131, 1}, 1, 5},
      {{2, 129, 64}, {1, 64}, 1, 4},
      {{200, 65}, {65}, 1, 4},
      {{7, 64, 5, 6}, {64, 1, 1}, 2, 5},
  };
  for (const Shape& s : shapes) {
    for (int permuted = 0; permuted < 2; ++permuted) {
      Task t;
      t.program = *parse(kSamples[s.sample].text);
      t.common = s.common;
      t.row_axes = s.axes;
      t.in.push_back(make(s.common, DType::f32, rng, !permuted));
      while (t.in.size() < t.program.inputs) t.in.push_back(make(s.second, DType::f32, rng, !permuted));
      t.out.push_back(make(s.common, DType::f32, rng, !permuted));
      if (t.program.outputs == 2) {
        auto dims = s.common;
        for (size_t a = dims.size() - static_cast<size_t>(s.axes); a < dims.size(); ++a) dims[a] = 1;
        t.out.push_back(make(dims, DType::f32, rng, true));
      }
      auto want = expected(t);
      auto work = run_kernel(t, rng);
      ASSERT_TRUE(work.ok()) << work.error().text();
      EXPECT_TRUE(work->chunks == 1 || work->chunks % 2 == 0);
      compare(t, want, ge::format("rank {} first {}", s.common.size(), s.common[0]));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Vector, ChannelsLastAgainstChannelVector) {
  Rng rng(24);
  Task t;
  t.program = *parse(kSamples[0].text);
  t.common = {2, 40, 13, 9};
  Operand x = make({2, 40, 13, 9}, DType::f32, rng, true), y = x;
  for (Operand* o : {&x, &y}) o->strides = {40 * 13 * 9, 1, 9 * 40, 40};
  t.in = {x, make({1, 40, 1, 1}, DType::f32, rng, true)};
  t.out = {y};
  auto want = expected(t);
  ASSERT_TRUE(run_kernel(t, rng).ok());
  compare(t, want, "channels last");
}

TEST(VectorKernel, EmptyTensorsHaveNoChunks) {
  Rng rng(25);
  Task t;
  t.program = *parse(kSamples[0].text);
  t.common = {3, 0};
  t.in = {make({3, 0}, DType::f32, rng, true), make({3, 1}, DType::f32, rng, true)};
  t.out = {make({3, 0}, DType::f32, rng, true)};
  EXPECT_EQ(run_kernel(t, rng)->chunks, 0);
}

TEST(VectorKernel, SumOfAnEmptyRowIsZero) {
  Rng rng(26);
  Task t;
  t.program = *parse("v0 = load 0; v1 = row_sum v0 | store 0 v1");
  t.common = {3, 0};
  t.row_axes = 1;
  t.in = {make({3, 0}, DType::f32, rng, true)};
  t.out = {make({3, 1}, DType::f32, rng, true)};
  ASSERT_TRUE(run_kernel(t, rng).ok());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read<float>(t.out[0].data.data() + 4 * i), 0.0f);
}

TEST(VectorKernel, PrepareAnswersAnyCall) {
  Rng rng(27);
  const Kernel* k = find("vector.program");
  Program p = *parse(kSamples[4].text);
  auto blob = encode(p);
  int64_t dims[kMaxRank + 2], strides[kMaxRank + 2];
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<View> v(1 + rng() % 3);
    for (View& x : v) {
      x.dtype = rng() % 4 ? DType::f32 : static_cast<DType>(rng() % kDTypeCount);
      x.rank = rng() % 20 ? static_cast<int32_t>(rng() % 4) : static_cast<int32_t>(rng() % 40) - 10;
      x.dims = rng() % 20 ? dims : nullptr;
      x.strides = rng() % 20 ? strides : nullptr;
    }
    const int64_t values[] = {0, 1, 2, 7, -1, int64_t{1} << 40, INT64_MAX, INT64_MIN};
    for (int i = 0; i < kMaxRank + 2; ++i) {
      dims[i] = values[rng() % (rng() % 5 ? 4 : 8)];
      strides[i] = values[rng() % (rng() % 5 ? 4 : 8)];
    }
    auto damaged = blob;
    if (rng() % 4 == 0) damaged[rng() % damaged.size()] ^= static_cast<std::byte>(1 << rng() % 8);
    int64_t ints[] = {values[rng() % 8], 0};
    Call call;
    size_t split = rng() % (v.size() + 1);
    call.in = std::span(v).first(split);
    call.out = std::span(v).subspan(split);
    call.ints = std::span(ints).first(rng() % 10 ? 1 : rng() % 3);
    call.blob = damaged;
    auto w = k->prepare(call);
    refused += !w.ok();
    if (w.ok()) {
      EXPECT_GE(w->chunks, 0);
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_LT(refused, 20000);
}

TEST(VectorKernel, AbsentOperandsAreRefused) {
  const Kernel* k = find("vector.program");
  auto blob = encode(*parse("v0 = load 0; v1 = relu v0; store 0 v1"));
  int64_t dims[] = {5}, strides[] = {4}, ints[] = {0};
  View there;
  there.dtype = DType::f32, there.rank = 1, there.dims = dims, there.strides = strides;
  for (bool in : {false, true}) {
    View from = in ? View{} : there, to = in ? there : View{};
    Call call;
    call.in = std::span(&from, 1), call.out = std::span(&to, 1), call.ints = ints, call.blob = blob;
    auto w = k->prepare(call);
    ASSERT_FALSE(w.ok());
    EXPECT_NE(w.error().message.find("absent"), std::string::npos);
  }
}

TEST(VectorKernel, StridesBeyondAllMemoryAreRefused) {
  const Kernel* k = find("vector.program");
  auto blob = encode(*parse("v0 = load 0; v1 = relu v0; store 0 v1"));
  int64_t dims[] = {5}, near[] = {1}, ints[] = {0};
  for (int64_t stride : {INT64_MAX, INT64_MIN, INT64_MIN + 1}) {
    View from, to;
    from.dtype = to.dtype = DType::f32, from.rank = to.rank = 1, from.dims = to.dims = dims;
    from.strides = &stride, to.strides = near;
    Call call;
    call.in = std::span(&from, 1), call.out = std::span(&to, 1), call.ints = ints, call.blob = blob;
    EXPECT_FALSE(k->prepare(call).ok()) << stride;
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Vector, ::testing::ValuesIn(isas()),
                         [](const auto& i) { return std::string(ge::kernels::name(i.param)); });

}  // namespace
}  // namespace ge::kernels::vector
