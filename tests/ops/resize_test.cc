// Resize: hand-computed values, and the fast kernel against the reference over modes and layouts.
#include <cmath>

#include "kernels/isa.h"
#include "ops/infer_op.h"
#include "ops/random_buffer.h"

namespace ge::test {
namespace {

using V = std::vector<float>;
enum Mode : int64_t { nearest, linear, cubic };
enum Coordinates : int64_t { half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric, crop, tf_nn };

V resize(std::string_view kernel, V x, int64_t out, Mode mode, Coordinates coordinates, double scale = 0, int64_t rounding = 0,
         int64_t exclude = 0, int64_t antialias = 0, std::vector<double> roi = {}) {
  auto n = static_cast<int64_t>(x.size());
  Buffer in = filled<float>(DType::f32, {n}, std::move(x)), y = dense_buffer(DType::f32, {out});
  Params p{{mode, coordinates, rounding, exclude, antialias}, {-0.75, 10, scale}, {}};
  p.floats.insert(p.floats.end(), roi.begin(), roi.end());
  Status s = run_kernel(kernel, {in.view()}, {y.view()}, p);
  EXPECT_TRUE(s.ok()) << (s.ok() ? "" : s.error().text());
  return values<float>(y);
}

void expect_near(const V& a, const V& b, float eps = 1e-5f) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], eps) << i;
}

TEST(Resize, ByHand) {
  for (auto k : {"ref.Resize", "move.resize"}) {
    EXPECT_EQ(resize(k, {1, 2, 3}, 6, nearest, asymmetric, 2, 2), (V{1, 1, 2, 2, 3, 3}));
    EXPECT_EQ(resize(k, {1, 2, 3, 4}, 2, nearest, half_pixel), (V{1, 3}));      // 0.5 and 2.5 go down
    EXPECT_EQ(resize(k, {1, 2, 3, 4}, 2, nearest, half_pixel, 0, 1), (V{2, 4}));  // or up
    EXPECT_EQ(resize(k, {1, 2, 3, 4}, 2, nearest, asymmetric, 0, 3), (V{1, 3}));
    EXPECT_EQ(resize(k, {1, 3}, 4, linear, half_pixel), (V{1, 1.5f, 2.5f, 3}));
    EXPECT_EQ(resize(k, {1, 3}, 3, linear, align_corners), (V{1, 2, 3}));
    EXPECT_EQ(resize(k, {1, 3}, 4, linear, asymmetric), (V{1, 2, 3, 3}));
    EXPECT_EQ(resize(k, {5, 7}, 1, linear, pytorch_half_pixel), (V{5}));
    EXPECT_EQ(resize(k, {5, 7}, 1, linear, half_pixel), (V{6}));
    expect_near(resize(k, {7}, 3, cubic, half_pixel), {7, 7, 7});
    // The cubic at a quarter: weights -0.10546875, 0.87890625, 0.26171875, -0.03515625.
    expect_near(resize(k, {0, 0, 1, 0, 0, 0, 0, 0}, 16, cubic, half_pixel),
                {0, -0.03515625f, -0.10546875f, 0.26171875f, 0.87890625f, 0.87890625f, 0.26171875f, -0.10546875f, -0.03515625f, 0, 0, 0, 0, 0, 0, 0});
    // Shrinking by two with a triangle of width four: 1/8 3/8 3/8 1/8.
    expect_near(resize(k, {0, 0, 0, 8, 0, 0, 0, 0}, 4, linear, half_pixel, 0, 0, 0, 1), {0, 3, 1, 0});
    EXPECT_EQ(resize(k, {1, 2, 3, 4}, 3, linear, crop, 0, 0, 0, 0, {0, 2}), (V{1, 4, 10}));
    Buffer none = dense_buffer(DType::f32, {0}), y = dense_buffer(DType::f32, {3});
    EXPECT_FALSE(run_kernel(k, {none.view()}, {y.view()}, {{0, 0, 0, 0, 0}, {-0.75, 0, 0}, {}}).ok());
    EXPECT_FALSE(run_kernel(k, {y.view()}, {y.view()}, {{3, 0, 0, 0, 0}, {-0.75, 0, 0}, {}}).ok());
    EXPECT_FALSE(run_kernel(k, {y.view()}, {y.view()}, {{0, 0, 0, 0, 0}, {-0.75, 0, NAN}, {}}).ok());
    EXPECT_FALSE(run_kernel(k, {y.view()}, {y.view()}, {{0, 0, 0, 0, 0}, {-0.75, 0}, {}}).ok());
    EXPECT_FALSE(run_kernel(k, {y.view()}, {y.view()}, {{1, 0, 0, 0, 1}, {-0.75, 0, 1e-9}, {}}).ok());
  }
}

TEST(Resize, FastMatchesReference) {
  Random r(21);
  auto before = kernels::isa();
  for (int round = 0; round < 900; ++round) {
    kernels::set_isa(round % 3 == 0 ? kernels::Isa::portable : before);
    std::vector<int64_t> in, out;
    int64_t rank = 1 + r.below(4);
    std::vector<double> scales;
    for (int64_t i = 0; i < rank; ++i) {
      in.push_back(1 + r.below(9));
      double scale = r.below(2) ? 1 : 0.2 + static_cast<double>(r.below(30)) / 10;
      out.push_back(std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(in.back()) * scale)));
      scales.push_back(scale == 1 || r.below(2) ? scale : 0);
    }
    auto mode = static_cast<Mode>(r.below(3));
    Params p{{mode, r.below(7), r.below(4), r.below(2), r.below(3) == 0}, {-0.5, 3}, {}};
    p.floats.insert(p.floats.end(), scales.begin(), scales.end());
    if (p.ints[1] == crop)
      for (int64_t i = 0; i < 2 * rank; ++i) p.floats.push_back(i < rank ? 0.1 : 1.2);
    DType t = mode == nearest && p.ints[1] != crop ? r.size_type() : r.below(4) ? DType::f32 : DType::u8;
    Buffer x = r.buffer(t, in), a = dense_buffer(t, out), b = r.layout(t, out);
    bool dense = r.below(2);
    if (dense) x = dense_buffer(t, in), b = dense_buffer(t, out);
    if (dense && rank == 4 && r.below(2)) x = strided_buffer(t, in, {0, 2, 3, 1}, 1), b = strided_buffer(t, out, {0, 2, 3, 1}, 1);
    each_element(x.view(), [&](std::byte* q) {
      if (t == DType::f32) kernels::move::store_f64(t, q, static_cast<double>(r.below(1000)) / 16);
      else for (int64_t i = 0; i < size_of(t); ++i) q[i] = std::byte(r.rng() & 0xff);
    });
    ASSERT_TRUE(run_kernel("ref.Resize", {x.view()}, {a.view()}, p).ok());
    ASSERT_TRUE(run_kernel("move.resize", {x.view()}, {b.view()}, p).ok());
    if (t != DType::f32 || mode == nearest) ASSERT_EQ(raw(a.view()), raw(b.view())) << round;
    else expect_near(values<float>(a), values<float>(b), 1e-3f);
    if (HasFailure()) FAIL() << round;
  }
  kernels::set_isa(before);
}

// Filters with more taps than are summed at a time.
TEST(Resize, LongFilters) {
  Random r(22);
  Buffer x = dense_buffer(DType::f32, {2, 500, 6}), a = dense_buffer(DType::f32, {2, 5, 6}), b = dense_buffer(DType::f32, {2, 5, 6});
  each_element(x.view(), [&](std::byte* q) { kernels::move::store_f64(DType::f32, q, static_cast<double>(r.below(1000)) / 16); });
  Params p{{cubic, half_pixel, 0, 0, 1}, {-0.5, 0, 1, 0, 1}, {}};
  ASSERT_TRUE(run_kernel("ref.Resize", {x.view()}, {a.view()}, p).ok());
  ASSERT_TRUE(run_kernel("move.resize", {x.view()}, {b.view()}, p).ok());
  expect_near(values<float>(a), values<float>(b), 1e-4f);
}

Tensor floats(std::vector<float> v) {
  return Tensor::of<float>(DType::f32, {static_cast<int64_t>(v.size())}, std::span<const float>(v));
}

TEST(Resize, Inference) {
  const Dim s = sym("s");
  EXPECT_EQ(OneOp().in(DType::f32, {1, 3, 10, s}).none().constant(floats({1, 1, 2, 2})).op("Resize").type(), "f32[1,3,20,2*s]");
  EXPECT_EQ(OneOp().in(DType::f32, {1, 3, 5, s}).none().constant(floats({1, 1, 0.6f, 0.5f})).op("Resize").type(), "f32[1,3,3,floordiv(s, 2)]");
  EXPECT_EQ(OneOp().in(DType::f32, {1, 3, 5, s}).none().none().elements({1, 3, s, 7}).op("Resize").type(), "f32[1,3,s,7]");
  EXPECT_EQ(OneOp().in(DType::f32, {1, 3, 5, 6}).none().none().ints({7, 8}).op("Resize", {{"axes", std::vector<int64_t>{2, -1}}}).type(), "f32[1,3,7,8]");
  EXPECT_EQ(OneOp().in(DType::f32, {4, 2}).none().none().ints({7, 8}).op("Resize", {{"keep_aspect_ratio_policy", std::string("not_larger")}}).type(), "f32[7,4]");
  EXPECT_EQ(OneOp().in(DType::f32, {4, 2}).none().none().ints({7, 8}).op("Resize", {{"keep_aspect_ratio_policy", std::string("not_smaller")}}).type(), "f32[16,8]");
  EXPECT_FALSE(OneOp().in(DType::f32, {4}).op("Resize").infer().ok());
  EXPECT_FALSE(OneOp().in(DType::f32, {4}).none().constant(floats({1, 2})).op("Resize").infer().ok());
  EXPECT_FALSE(OneOp().in(DType::f32, {4}).none().constant(floats({-1})).op("Resize").infer().ok());
  EXPECT_FALSE(OneOp().in(DType::f32, {4}).none().constant(floats({2})).op("Resize", {{"mode", std::string("area")}}).infer().ok());
}

TEST(Resize, OldOpsets) {
  OneOp ten;
  ten.in(DType::f32, {1, 1, 2, 2}).constant(floats({1, 1, 2, 3})).op("Resize");
  ASSERT_TRUE(ten.upgrade(10).ok());
  EXPECT_EQ(ten.type(), "f32[1,1,4,6]");
  auto calls = ten.lowered(true);
  ASSERT_TRUE(calls.ok());
  EXPECT_EQ(calls->calls[0].ints[1].value(), asymmetric);
  EXPECT_EQ(calls->calls[0].ints[2].value(), 2);
  OneOp seven;
  seven.in(DType::f32, {1, 1, 2, 2}).op("Upsample", {{"scales", std::vector<double>{1, 1, 2, 2}}, {"mode", std::string("linear")}});
  ASSERT_TRUE(seven.upgrade(7).ok());
  EXPECT_EQ(seven.g.node(seven.node).op, "Resize");
  EXPECT_EQ(seven.type(), "f32[1,1,4,4]");
}

}  // namespace
}  // namespace ge::test
