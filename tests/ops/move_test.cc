#include "ops/random_buffer.h"

#include "kernels/isa.h"
#include "tensor/half.h"

namespace ge::test {
namespace {

using kernels::Isa;

// Elements numbered in row-major order, as many bytes as the type has.
void number(const Buffer& b) {
  uint32_t i = 1;
  each_element(b.view(), [&](std::byte* p) {
    for (int64_t k = 0; k < size_of(b.dtype); ++k) p[k] = std::byte((i * 2654435761u >> (8 * (k % 4))) & 0xff);
    ++i;
  });
}

class EachIsa : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    before_ = kernels::isa();
    ASSERT_TRUE(kernels::set_isa(GetParam()));
  }
  void TearDown() override { kernels::set_isa(before_); }
  Isa before_;
};
std::vector<Isa> isas() {
  std::vector<Isa> out;
  for (Isa i : {Isa::portable, Isa::avx2, Isa::avx512})
    if (i <= kernels::best_isa()) out.push_back(i);
  return out;
}
INSTANTIATE_TEST_SUITE_P(Move, EachIsa, testing::ValuesIn(isas()),
                         [](auto& p) { return std::string(kernels::name(p.param)); });

TEST_P(EachIsa, CopyOfRandomLayouts) {
  std::mt19937 rng(1);
  const int64_t sizes[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 33, 64, 70};
  for (int round = 0; round < 1500; ++round) {
    int rank = static_cast<int>(rng() % 5);
    std::vector<int64_t> dims;
    std::vector<int> a, b;
    for (int i = 0; i < rank; ++i) {
      int64_t d = sizes[rng() % std::size(sizes)];
      dims.push_back(rank > 3 ? std::min<int64_t>(d, 17) : d);
      a.push_back(i), b.push_back(i);
    }
    std::shuffle(a.begin(), a.end(), rng);
    if (rng() % 2) std::shuffle(b.begin(), b.end(), rng);
    DType t = kSizes[rng() % std::size(kSizes)];
    uint32_t reversed = rng() % 4 ? 0 : rng();
    Buffer x = strided_buffer(t, dims, a, rng() % 3 ? 1 : 2, reversed);
    reversed = rng() % 4 ? 0 : rng();
    Buffer y = strided_buffer(t, dims, b, rng() % 3 ? 1 : 3, reversed);
    number(x);
    View v = x.view();
    std::vector<int64_t> broadcast = x.strides;
    if (rank && rng() % 4 == 0) broadcast[rng() % broadcast.size()] = 0, v.strides = broadcast.data();
    if (rank && rng() % 4 == 0) broadcast[rng() % broadcast.size()] = 0, v.strides = broadcast.data();
    auto before = y.memory;
    ASSERT_TRUE(run_kernel("move.copy", {v}, {y.view()}).ok());
    ASSERT_EQ(raw(v), raw(y.view())) << round;
    // Nothing but the elements was written.
    each_element(y.view(), [&](std::byte* p) { std::fill(p, p + size_of(t), kPoison); });
    ASSERT_EQ(before, y.memory) << round;
  }
}

TEST_P(EachIsa, CopyOfLargeTransposes) {
  for (DType t : kSizes) {
    for (auto dims : {std::vector<int64_t>{3, 200, 333}, {1, 1031, 257}, {2, 64, 4096}}) {
      Buffer x = dense_buffer(t, dims), y = strided_buffer(t, dims, {0, 2, 1}, 1);
      number(x);
      ASSERT_TRUE(run_kernel("move.copy", {x.view()}, {y.view()}).ok());
      ASSERT_EQ(raw(x.view()), raw(y.view()));
      Buffer z = dense_buffer(t, dims);
      ASSERT_TRUE(run_kernel("move.copy", {y.view()}, {z.view()}).ok());
      ASSERT_EQ(x.memory, z.memory);
    }
  }
}

TEST(Move, CopyRefusesWhatDoesNotFit) {
  Buffer x = dense_buffer(DType::f32, {2, 3}), y = dense_buffer(DType::f32, {3, 2}), z = dense_buffer(DType::f16, {2, 3});
  EXPECT_FALSE(run_kernel("move.copy", {x.view()}, {y.view()}).ok());
  EXPECT_FALSE(run_kernel("move.copy", {x.view()}, {z.view()}).ok());
  EXPECT_FALSE(run_kernel("move.copy", {x.view()}, {}).ok());
  EXPECT_FALSE(run_kernel("move.copy", {absent()}, {y.view()}).ok());
  View bad = x.view();
  std::vector<int64_t> dims{int64_t{1} << 40, int64_t{1} << 40};
  bad.dims = dims.data();
  EXPECT_FALSE(run_kernel("move.copy", {bad}, {bad}).ok());
  dims = {-1, 3};
  EXPECT_FALSE(run_kernel("move.copy", {bad}, {bad}).ok());
  bad.rank = kMaxRank + 1;
  EXPECT_FALSE(run_kernel("move.copy", {bad}, {bad}).ok());
}

TEST(Move, ReshapeOfRandomLayouts) {
  std::mt19937 rng(2);
  const std::vector<std::vector<int64_t>> shapes[] = {
      {{}, {1}, {1, 1}}, {{0, 3}, {7, 0, 2}}, {{24}, {4, 6}, {3, 8}, {2, 3, 4}, {1, 24}, {4, 1, 6}},
      {{60, 70}, {70, 60}, {4200}, {6, 7, 100}, {2, 30, 70}}, {{5, 7, 11}, {11, 35}, {385}, {77, 5}},
      {{9000, 3}, {3, 9000}, {27000}, {1000, 27}}};
  for (int round = 0; round < 1500; ++round) {
    auto& s = shapes[rng() % std::size(shapes)];
    auto p = s[rng() % s.size()], q = s[rng() % s.size()];
    std::vector<int> a(p.size()), b(q.size());
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<int>(i);
    for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<int>(i);
    if (rng() % 2) std::shuffle(a.begin(), a.end(), rng);
    if (rng() % 2) std::shuffle(b.begin(), b.end(), rng);
    DType t = kSizes[rng() % std::size(kSizes)];
    uint32_t reversed = rng() % 3 ? 0 : rng();
    Buffer x = strided_buffer(t, p, a, 1 + rng() % 2, reversed);
    reversed = rng() % 3 ? 0 : rng();
    Buffer y = strided_buffer(t, q, b, 1 + rng() % 2, reversed);
    number(x);
    ASSERT_TRUE(run_kernel("move.reshape", {x.view()}, {y.view()}).ok());
    ASSERT_EQ(raw(x.view()), raw(y.view())) << round;
  }
  Buffer x = dense_buffer(DType::f32, {2, 3}), y = dense_buffer(DType::f32, {5});
  EXPECT_FALSE(run_kernel("move.reshape", {x.view()}, {y.view()}).ok());
}

TEST(Move, Fill) {
  Buffer y = strided_buffer(DType::f32, {5, 300}, {1, 0}, 2);
  Params p;
  float v = 2.5f;
  p.blob.resize(4);
  std::memcpy(p.blob.data(), &v, 4);
  ASSERT_TRUE(run_kernel("move.fill", {}, {y.view()}, p).ok());
  EXPECT_EQ(values<float>(y), std::vector<float>(1500, 2.5f));
  Buffer z = dense_buffer(DType::i16, {3});
  EXPECT_FALSE(run_kernel("move.fill", {}, {z.view()}, p).ok());
  ASSERT_TRUE(run_kernel("move.fill", {}, {z.view()}, {{-7}, {}, {}}).ok());
  EXPECT_EQ(values<int16_t>(z), (std::vector<int16_t>{-7, -7, -7}));
}

TEST(Move, ElementsAndRange) {
  Buffer y = strided_buffer(DType::i32, {2, 2}, {1, 0}, 2);
  ASSERT_TRUE(run_kernel("move.elements", {}, {y.view()}, {{1, -2, 3, 1 << 20}, {}, {}}).ok());
  EXPECT_EQ(values<int32_t>(y), (std::vector<int32_t>{1, -2, 3, 1 << 20}));
  EXPECT_FALSE(run_kernel("move.elements", {}, {y.view()}, {{1, 2, 3}, {}, {}}).ok());
  Buffer b = dense_buffer(DType::boolean, {3});
  ASSERT_TRUE(run_kernel("move.elements", {}, {b.view()}, {{0, 5, 1}, {}, {}}).ok());
  EXPECT_EQ(values<uint8_t>(b), (std::vector<uint8_t>{0, 1, 1}));

  Buffer r = dense_buffer(DType::i64, {10000});
  ASSERT_TRUE(run_kernel("move.range", {}, {r.view()}, {{5, -3}, {}, {}}).ok());
  EXPECT_EQ(values<int64_t>(r)[9999], 5 - 3 * 9999);
  Buffer s = filled<float>(DType::f32, {}, {0.5f}), d = filled<float>(DType::f32, {}, {0.1f});
  Buffer f = dense_buffer(DType::f32, {3});
  ASSERT_TRUE(run_kernel("move.range", {s.view(), d.view()}, {f.view()}).ok());
  EXPECT_EQ(values<float>(f), (std::vector<float>{0.5f, 0.5f + 0.1f, 0.5f + 2.0f * 0.1f}));
  EXPECT_FALSE(run_kernel("move.range", {s.view()}, {f.view()}).ok());
}

TEST(Move, GatherOfRandomShapes) {
  std::mt19937 rng(3);
  for (int round = 0; round < 600; ++round) {
    int rank = 1 + static_cast<int>(rng() % 4), irank = static_cast<int>(rng() % 3);
    int axis = static_cast<int>(rng() % static_cast<unsigned>(rank));
    std::vector<int64_t> x, i, y;
    for (int a = 0; a < rank; ++a) x.push_back(1 + static_cast<int64_t>(rng() % (a == rank - 1 ? 40 : 9)));
    for (int a = 0; a < irank; ++a) i.push_back(static_cast<int64_t>(rng() % 7));
    y.assign(x.begin(), x.begin() + axis);
    y.insert(y.end(), i.begin(), i.end());
    y.insert(y.end(), x.begin() + axis + 1, x.end());
    auto order = [&](size_t n) {
      std::vector<int> o(n);
      for (size_t k = 0; k < n; ++k) o[k] = static_cast<int>(k);
      if (rng() % 2) std::shuffle(o.begin(), o.end(), rng);
      return o;
    };
    DType t = kSizes[rng() % std::size(kSizes)], it = rng() % 2 ? DType::i64 : DType::i32;
    const uint32_t reversed = rng() % 3 ? 0 : rng();
    int64_t gap = 1 + rng() % 2;
    Buffer data = strided_buffer(t, x, order(x.size()), gap, reversed);
    gap = 1 + rng() % 2;
    Buffer idx = strided_buffer(it, i, order(i.size()), gap);
    gap = 1 + rng() % 2;
    Buffer out = strided_buffer(t, y, order(y.size()), gap);
    number(data);
    int64_t n = x[static_cast<size_t>(axis)];
    std::vector<int64_t> chosen;
    each_element(idx.view(), [&](std::byte* p) {
      int64_t v = static_cast<int64_t>(rng() % static_cast<uint64_t>(2 * n)) - n;
      chosen.push_back(v < 0 ? v + n : v);
      auto v32 = static_cast<int32_t>(v);
      if (it == DType::i64) std::memcpy(p, &v, 8);
      else std::memcpy(p, &v32, 4);
    });
    ASSERT_TRUE(run_kernel("move.gather", {data.view(), idx.view()}, {out.view()}, {{axis}, {}, {}}).ok());
    auto src = raw(data.view()), got = raw(out.view());
    int64_t before = 1, after = 1;
    for (int a = 0; a < rank; ++a) (a < axis ? before : a > axis ? after : n) *= a == axis ? 1 : x[static_cast<size_t>(a)];
    std::vector<std::string> want;
    for (int64_t b = 0; b < before; ++b)
      for (int64_t c : chosen)
        for (int64_t k = 0; k < after; ++k) want.push_back(src[static_cast<size_t>((b * n + c) * after + k)]);
    ASSERT_EQ(got, want) << round;
  }
}

TEST(Move, GatherReportsTheIndex) {
  Buffer x = filled<float>(DType::f32, {2, 2}, {1, 2, 3, 4}), i = filled<int64_t>(DType::i64, {2}, {0, 2});
  Buffer y = dense_buffer(DType::f32, {2, 2});
  auto s = run_kernel("move.gather", {x.view(), i.view()}, {y.view()}, {{0}, {}, {}});
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().code, code::kRunFailed);
  EXPECT_NE(s.error().message.find("index 2 is outside -2..1"), std::string::npos) << s.error().message;
  Buffer low = filled<int64_t>(DType::i64, {2}, {-2, INT64_MIN});
  EXPECT_FALSE(run_kernel("move.gather", {x.view(), low.view()}, {y.view()}, {{0}, {}, {}}).ok());
  EXPECT_FALSE(run_kernel("move.gather", {x.view(), i.view()}, {y.view()}, {{2}, {}, {}}).ok());
  EXPECT_FALSE(run_kernel("move.gather", {x.view(), x.view()}, {y.view()}, {{0}, {}, {}}).ok());
}

TEST(Move, GatherOfLargeBlocks) {
  Buffer x = dense_buffer(DType::f32, {3, 300, 1000}), i = filled<int32_t>(DType::i32, {2}, {-1, 0});
  number(x);
  for (auto order : {std::vector<int>{0, 1, 2}, {0, 2, 1}}) {
    Buffer y = strided_buffer(DType::f32, {2, 300, 1000}, order, 1);
    ASSERT_TRUE(run_kernel("move.gather", {x.view(), i.view()}, {y.view()}, {{0}, {}, {}}).ok());
    auto a = raw(x.view()), b = raw(y.view());
    a.erase(a.begin() + 300000, a.begin() + 600000);
    std::rotate(a.begin(), a.begin() + 300000, a.end());
    ASSERT_EQ(a, b);
  }
}

}  // namespace
}  // namespace ge::test
