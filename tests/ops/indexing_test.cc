// Ops that index by data or look along an axis: references against values worked out by hand, fast
// kernels against the references.
#include <cmath>
#include <limits>

#include "ops/random_buffer.h"

namespace ge::test {
namespace {

using V = std::vector<float>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Buffer f32(std::vector<int64_t> dims, V v) { return filled<float>(DType::f32, std::move(dims), std::move(v)); }
Buffer i64(std::vector<int64_t> dims, std::vector<int64_t> v) { return filled<int64_t>(DType::i64, std::move(dims), std::move(v)); }

template <class T = float>
std::vector<T> run(std::string_view kernel, const std::vector<View>& in, std::vector<int64_t> out, std::vector<int64_t> ints,
                   DType t = DType::f32) {
  Buffer y = dense_buffer(t, std::move(out));
  Status s = run_kernel(kernel, in, {y.view()}, {std::move(ints), {}, {}});
  EXPECT_TRUE(s.ok()) << (s.ok() ? "" : s.error().text());
  return values<T>(y);
}

TEST(Indexing, GatherByHand) {
  Buffer x = f32({2, 3}, {0, 1, 2, 3, 4, 5});
  Buffer e = i64({1, 3}, {1, -2, 0}), nd = i64({2, 2}, {1, 2, 0, -1}), rows = i64({2, 1}, {1, 0});
  for (auto k : {"ref.GatherElements", "move.gather_elements"}) EXPECT_EQ(run(k, {x.view(), e.view()}, {1, 3}, {0}), (V{3, 1, 2}));
  for (auto k : {"ref.GatherND", "move.gather_nd"}) {
    EXPECT_EQ(run(k, {x.view(), nd.view()}, {2}, {0}), (V{5, 2}));
    EXPECT_EQ(run(k, {x.view(), rows.view()}, {2, 3}, {0}), (V{3, 4, 5, 0, 1, 2}));
    EXPECT_EQ(run(k, {x.view(), rows.view()}, {2}, {1}), (V{1, 3}));  // batch axis 0
  }
}

TEST(Indexing, ScatterByHand) {
  Buffer x = f32({4}, {1, 2, 3, 4}), i = i64({3}, {1, -1, 1}), u = f32({3}, {10, 20, 30});
  Buffer t = i64({3, 1}, {1, -1, 1});
  auto both = [&](int64_t reduction) {
    V want = run("ref.ScatterElements", {x.view(), i.view(), u.view()}, {4}, {0, reduction});
    EXPECT_EQ(run("move.scatter_elements", {x.view(), i.view(), u.view()}, {4}, {0, reduction}), want);
    EXPECT_EQ(run("ref.ScatterND", {x.view(), t.view(), u.view()}, {4}, {reduction}), want);
    EXPECT_EQ(run("move.scatter_nd", {x.view(), t.view(), u.view()}, {4}, {reduction}), want);
    return want;
  };
  EXPECT_EQ(both(0), (V{1, 30, 3, 20}));
  EXPECT_EQ(both(1), (V{1, 42, 3, 24}));
  EXPECT_EQ(both(2), (V{1, 600, 3, 80}));
  EXPECT_EQ(both(3), (V{1, 30, 3, 20}));
  EXPECT_EQ(both(4), (V{1, 2, 3, 4}));
}

TEST(Indexing, IndicesOutOfRangeAreErrors) {
  Buffer x = f32({4}, {1, 2, 3, 4}), i = i64({1}, {4}), t = i64({1, 1}, {-5}), u = f32({1}, {9}), y = dense_buffer(DType::f32, {1});
  Buffer z = dense_buffer(DType::f32, {4});
  auto fails = [&](std::string_view k, std::vector<View> in, const Buffer& out, std::vector<int64_t> ints, const char* text) {
    Status s = run_kernel(k, in, {out.view()}, {ints, {}, {}});
    ASSERT_FALSE(s.ok()) << k;
    EXPECT_EQ(s.error().code, code::kRunFailed) << k;
    EXPECT_NE(s.error().message.find(text), std::string::npos) << s.error().message;
  };
  for (auto k : {"ref.GatherElements", "move.gather_elements"}) fails(k, {x.view(), i.view()}, y, {0}, "4 is outside -4..3");
  for (auto k : {"ref.GatherND", "move.gather_nd"}) fails(k, {x.view(), t.view()}, y, {0}, "-5 is outside -4..3");
  for (auto k : {"ref.ScatterElements", "move.scatter_elements"}) fails(k, {x.view(), i.view(), u.view()}, z, {0, 0}, "4 is outside -4..3");
  for (auto k : {"ref.ScatterND", "move.scatter_nd"}) fails(k, {x.view(), t.view(), u.view()}, z, {0}, "-5 is outside -4..3");
}

TEST(Indexing, RefusesWhatDoesNotFit) {
  Buffer x = f32({2, 3}, {0, 1, 2, 3, 4, 5}), i = i64({2, 3}, {}), w = i64({3, 3}, {}), y = dense_buffer(DType::f32, {2, 3}), v = dense_buffer(DType::f32, {3, 3});
  auto bad = [&](std::string_view k, std::vector<View> in, const Buffer& out, std::vector<int64_t> ints) {
    Status s = run_kernel(k, in, {out.view()}, {ints, {}, {}});
    return !s.ok() && s.error().code == code::kBadOp;
  };
  for (std::string p : {"ref.GatherElements", "move.gather_elements"}) {
    EXPECT_TRUE(bad(p, {x.view(), i.view()}, y, {2}));
    EXPECT_TRUE(bad(p, {x.view(), x.view()}, y, {0}));
    EXPECT_TRUE(bad(p, {x.view(), w.view()}, v, {1}));
    EXPECT_TRUE(bad(p, {x.view()}, y, {0}));
  }
  for (std::string p : {"ref.ScatterElements", "move.scatter_elements"}) {
    EXPECT_TRUE(bad(p, {x.view(), w.view(), v.view()}, y, {1, 0}));
    EXPECT_TRUE(bad(p, {x.view(), i.view(), x.view()}, y, {0, 5}));
    EXPECT_TRUE(bad(p, {x.view(), i.view(), x.view()}, y, {0}));
  }
  for (std::string p : {"ref.GatherND", "move.gather_nd"}) {
    EXPECT_TRUE(bad(p, {x.view(), i.view()}, y, {0}));   // tuples of 3 into 2 axes
    EXPECT_TRUE(bad(p, {x.view(), i.view()}, y, {-1}));
    EXPECT_TRUE(bad(p, {x.view(), i.view()}, y, {12}));
  }
  for (std::string p : {"ref.ScatterND", "move.scatter_nd"}) EXPECT_TRUE(bad(p, {x.view(), i.view(), x.view()}, y, {0}));
  EXPECT_TRUE(bad("ref.TopK", {x.view()}, dense_buffer(DType::f32, {2, 4}), {1, 1}));
  EXPECT_TRUE(bad("ref.ArgMax", {x.view()}, dense_buffer(DType::i64, {3}), {1, 1, 0}));
  EXPECT_TRUE(bad("ref.CumSum", {x.view()}, y, {2, 0, 0, 0}));
  EXPECT_TRUE(bad("ref.OneHot", {i.view(), x.view()}, y, {0}));
  EXPECT_TRUE(bad("ref.ReverseSequence", {x.view(), i.view()}, y, {0, 1}));
}

TEST(Indexing, FastMatchesReference) {
  Random r(11);
  for (int round = 0; round < 500; ++round) {
    DType it = r.below(2) ? DType::i64 : DType::i32;
    std::vector<int64_t> data, idx;
    int64_t rank = 1 + r.below(3), axis = r.below(rank);
    for (int64_t i = 0; i < rank; ++i) data.push_back(1 + r.below(9)), idx.push_back(i == axis ? r.below(12) : r.below(data.back() + 1));
    auto n = data[static_cast<size_t>(axis)];
    Buffer i = r.numbers(it, idx, -n, n);
    {
      DType t = r.size_type();
      std::vector<Buffer> in{r.buffer(t, data), i};
      Buffer a = dense_buffer(t, idx), b = r.layout(t, idx);
      ASSERT_TRUE(run_kernel("ref.GatherElements", views(in), {a.view()}, {{axis}, {}, {}}).ok());
      ASSERT_TRUE(run_kernel("move.gather_elements", views(in), {b.view()}, {{axis}, {}, {}}).ok());
      ASSERT_EQ(raw(a.view()), raw(b.view())) << round;
    }
    const DType kTypes[] = {DType::f32, DType::i64, DType::u64, DType::f16, DType::i8, DType::u8};
    DType t = kTypes[r.below(6)];
    int64_t reduction = r.below(5);
    {
      std::vector<Buffer> in{r.numbers(t, data, 0, 9), i, r.numbers(t, idx, 0, 9)};
      Buffer a = dense_buffer(t, data), b = r.layout(t, data);
      ASSERT_TRUE(run_kernel("ref.ScatterElements", views(in), {a.view()}, {{axis, reduction}, {}, {}}).ok());
      ASSERT_TRUE(run_kernel("move.scatter_elements", views(in), {b.view()}, {{axis, reduction}, {}, {}}).ok());
      ASSERT_EQ(raw(a.view()), raw(b.view())) << round;
    }
    // Tuples: batch axes, then up to all axes that are left.
    int64_t batch = r.below(2) * (rank > 1), k = r.below(rank - batch + 1);
    std::vector<int64_t> lead(data.begin(), data.begin() + batch), tuples, block;
    for (int64_t j = 1 + r.below(2); j > 0; --j) lead.push_back(r.below(6));
    tuples = lead, tuples.push_back(k);
    block = lead, block.insert(block.end(), data.begin() + batch + k, data.end());
    auto low = *std::min_element(data.begin(), data.end());
    Buffer tuple = r.numbers(it, tuples, -low, low);
    {
      std::vector<Buffer> in{r.buffer(t, data), tuple};
      Buffer a = dense_buffer(t, block), b = r.layout(t, block);
      ASSERT_TRUE(run_kernel("ref.GatherND", views(in), {a.view()}, {{batch}, {}, {}}).ok());
      ASSERT_TRUE(run_kernel("move.gather_nd", views(in), {b.view()}, {{batch}, {}, {}}).ok());
      ASSERT_EQ(raw(a.view()), raw(b.view())) << round;
    }
    if (batch == 0) {
      std::vector<Buffer> in{r.numbers(t, data, 0, 9), tuple, r.numbers(t, block, 0, 9)};
      Buffer a = dense_buffer(t, data), b = r.layout(t, data);
      ASSERT_TRUE(run_kernel("ref.ScatterND", views(in), {a.view()}, {{reduction}, {}, {}}).ok());
      ASSERT_TRUE(run_kernel("move.scatter_nd", views(in), {b.view()}, {{reduction}, {}, {}}).ok());
      ASSERT_EQ(raw(a.view()), raw(b.view())) << round;
    }
  }
}

// More rows than one chunk, and the output in the memory of the data.
TEST(Indexing, ScatterOfManyRowsInPlace) {
  Random r(12);
  Buffer x = dense_buffer(DType::f32, {3000, 64}), i = r.numbers(DType::i64, {500, 1}, -3000, 3000), u = r.buffer(DType::f32, {500, 64});
  each_element(x.view(), [&](std::byte* p) { kernels::move::store_f64(DType::f32, p, static_cast<double>(r.below(100))); });
  Buffer want = dense_buffer(DType::f32, {3000, 64});
  ASSERT_TRUE(run_kernel("ref.ScatterND", {x.view(), i.view(), u.view()}, {want.view()}, {{0}, {}, {}}).ok());
  ASSERT_TRUE(run_kernel("move.scatter_nd", {x.view(), i.view(), u.view()}, {x.view()}, {{0}, {}, {}}).ok());
  EXPECT_EQ(raw(x.view()), raw(want.view()));
}

TEST(Indexing, OneHotCompressReverseNonZeroByHand) {
  Buffer i = i64({3}, {0, -1, 5}), v = f32({2}, {-1, 7});
  EXPECT_EQ(run("ref.OneHot", {i.view(), v.view()}, {3, 3}, {1}), (V{7, -1, -1, -1, -1, 7, -1, -1, -1}));
  EXPECT_EQ(run("ref.OneHot", {i.view(), v.view()}, {2, 3}, {0}), (V{7, -1, -1, -1, 7, -1}));
  Buffer x = f32({2, 3}, {0, 1, 2, 3, 4, 5}), c = filled<uint8_t>(DType::boolean, {3}, {0, 1, 1}), one = filled<uint8_t>(DType::boolean, {1}, {1});
  EXPECT_EQ(run("ref.Compress", {x.view(), c.view()}, {2, 2}, {1}), (V{1, 2, 4, 5}));
  EXPECT_EQ(run("ref.Compress", {x.view(), c.view()}, {2}, {-1}), (V{1, 2}));
  EXPECT_EQ(run("ref.Compress", {x.view(), one.view()}, {1, 3}, {0}), (V{0, 1, 2}));
  Buffer wrong = dense_buffer(DType::f32, {3});
  EXPECT_FALSE(run_kernel("ref.Compress", {x.view(), c.view()}, {wrong.view()}, {{-1}, {}, {}}).ok());
  Buffer n = i64({2}, {3, 2});
  EXPECT_EQ(run("ref.ReverseSequence", {x.view(), n.view()}, {2, 3}, {0, 1}), (V{2, 1, 0, 4, 3, 5}));
  Buffer far = i64({2}, {4, 2}), y = dense_buffer(DType::f32, {2, 3});
  EXPECT_FALSE(run_kernel("ref.ReverseSequence", {x.view(), far.view()}, {y.view()}, {{0, 1}, {}, {}}).ok());
  Buffer z = f32({2, 2}, {0, kNan, -0.0f, 3});
  EXPECT_EQ(run<int64_t>("ref.NonZero", {z.view()}, {2, 2}, {}, DType::i64), (std::vector<int64_t>{0, 1, 1, 1}));
  EXPECT_FALSE(run_kernel("ref.NonZero", {z.view()}, {dense_buffer(DType::i64, {2, 1}).view()}).ok());
}

TEST(Indexing, TopKByHand) {
  Buffer x = f32({2, 4}, {3, 1, 3, 2, kNan, -1, 5, -0.0f});
  Buffer v = dense_buffer(DType::f32, {2, 3}), i = dense_buffer(DType::i64, {2, 3});
  ASSERT_TRUE(run_kernel("ref.TopK", {x.view()}, {v.view(), i.view()}, {{1, 1}, {}, {}}).ok());
  EXPECT_EQ(values<int64_t>(i), (std::vector<int64_t>{0, 2, 3, 0, 2, 3}));
  ASSERT_TRUE(run_kernel("ref.TopK", {x.view()}, {v.view(), i.view()}, {{1, 0}, {}, {}}).ok());
  EXPECT_EQ(values<int64_t>(i), (std::vector<int64_t>{1, 3, 0, 1, 3, 2}));
  EXPECT_EQ(values<float>(v), (V{1, 2, 3, -1, -0.0f, 5}));
  Buffer u = filled<uint64_t>(DType::u64, {3}, {1, ~uint64_t{0}, 2}), one = dense_buffer(DType::i64, {1});
  ASSERT_TRUE(run_kernel("ref.TopK", {u.view()}, {absent(), one.view()}, {{0, 1}, {}, {}}).ok());
  EXPECT_EQ(values<int64_t>(one)[0], 1);
}

// Both ways of selecting against a full sort.
TEST(Indexing, TopKOfManyMatchesSort) {
  Random r(13);
  for (int64_t k : {1, 7, 40, 199, 200}) {
    Buffer x = r.numbers(DType::f32, {5, 200, 3}, -50, 50);
    Buffer v = r.layout(DType::f32, {5, k, 3}), i = r.layout(DType::i64, {5, k, 3});
    ASSERT_TRUE(run_kernel("ref.TopK", {x.view()}, {v.view(), i.view()}, {{1, 1}, {}, {}}).ok());
    auto xs = values<float>(x), vs = values<float>(v);
    auto is = values<int64_t>(i);
    for (int64_t a = 0; a < 5; ++a)
      for (int64_t b = 0; b < 3; ++b) {
        std::vector<std::pair<float, int64_t>> all;
        for (int64_t j = 0; j < 200; ++j) all.push_back({-xs[static_cast<size_t>((a * 200 + j) * 3 + b)], j});
        std::sort(all.begin(), all.end());
        for (int64_t j = 0; j < k; ++j) {
          auto at = static_cast<size_t>((a * k + j) * 3 + b);
          ASSERT_EQ(vs[at], -all[static_cast<size_t>(j)].first);
          ASSERT_EQ(is[at], all[static_cast<size_t>(j)].second);
        }
      }
  }
}

TEST(Indexing, ArgMaxByHand) {
  Buffer x = f32({2, 4}, {3, 1, 3, 2, 0, kNan, 9, -0.0f});
  using I = std::vector<int64_t>;
  for (auto k : {"ref.ArgMax", "move.arg_max"}) {
    EXPECT_EQ(run<int64_t>(k, {x.view()}, {2}, {1, 1, 0}, DType::i64), (I{0, 1}));
    EXPECT_EQ(run<int64_t>(k, {x.view()}, {2, 1}, {1, 1, 1}, DType::i64), (I{2, 1}));
    EXPECT_EQ(run<int64_t>(k, {x.view()}, {2, 1}, {1, 0, 0}, DType::i64), (I{1, 1}));
    EXPECT_EQ(run<int64_t>(k, {x.view()}, {4}, {0, 1, 0}, DType::i64), (I{0, 1, 1, 0}));
  }
}

TEST(Indexing, FastArgMaxMatchesReference) {
  Random r(14);
  for (int round = 0; round < 400; ++round) {
    std::vector<int64_t> dims;
    int64_t rank = 1 + r.below(3), axis = r.below(rank);
    int64_t longest = r.below(rank);
    for (int64_t i = 0; i < rank; ++i) dims.push_back(1 + r.below(i == longest ? 400 : 12));
    Buffer x = r.numbers(DType::f32, dims, -5, 5);
    if (round % 4 == 0) each_element(x.view(), [&](std::byte* p) { if (r.below(50) == 0) kernels::move::store_f64(DType::f32, p, kNan); });
    if (round % 4 == 1) each_element(x.view(), [&](std::byte* p) { kernels::move::store_f64(DType::f32, p, -INFINITY); });
    auto out = dims;
    out.erase(out.begin() + axis);
    Buffer a = dense_buffer(DType::i64, out), b = r.layout(DType::i64, out);
    Params p{{axis, r.below(2), r.below(2)}, {}, {}};
    ASSERT_TRUE(run_kernel("ref.ArgMax", {x.view()}, {a.view()}, p).ok());
    ASSERT_TRUE(run_kernel("move.arg_max", {x.view()}, {b.view()}, p).ok());
    ASSERT_EQ(raw(a.view()), raw(b.view())) << round;
  }
}

TEST(Indexing, CumSumTriluEyeByHand) {
  Buffer x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run("ref.CumSum", {x.view()}, {2, 3}, {1, 0, 0, 0}), (V{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(run("ref.CumSum", {x.view()}, {2, 3}, {1, 1, 1, 0}), (V{5, 3, 0, 11, 6, 0}));
  EXPECT_EQ(run("ref.CumSum", {x.view()}, {2, 3}, {0, 0, 0, 0}), (V{1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(run("ref.CumSum", {x.view()}, {2, 3}, {1, 1, 0, 1}), (V{1, 1, 2, 1, 4, 20}));
  Buffer big = filled<int32_t>(DType::i32, {2}, {INT32_MAX, 1});
  EXPECT_EQ(run<int32_t>("ref.CumSum", {big.view()}, {2}, {0, 0, 0, 0}, DType::i32), (std::vector<int32_t>{INT32_MAX, INT32_MIN}));
  EXPECT_EQ(run("ref.Trilu", {x.view()}, {2, 3}, {1, 0}), (V{1, 2, 3, 0, 5, 6}));
  EXPECT_EQ(run("ref.Trilu", {x.view()}, {2, 3}, {0, 0}), (V{1, 0, 0, 4, 5, 0}));
  EXPECT_EQ(run("ref.Trilu", {x.view()}, {2, 3}, {1, INT64_MAX}), (V{0, 0, 0, 0, 0, 0}));
  Buffer k = i64({}, {2});
  EXPECT_EQ(run("ref.Trilu", {x.view(), k.view()}, {2, 3}, {1, 0}), (V{0, 0, 3, 0, 0, 0}));
  EXPECT_EQ(run("ref.EyeLike", {}, {2, 3}, {1}), (V{0, 1, 0, 0, 0, 1}));
}

}  // namespace
}  // namespace ge::test
