// Rows as bytes with a scale each: exact values, and random sizes and layouts against a plain loop.
#include "kernels/isa.h"
#include "kernels/move/quantize_rows.h"
#include "ops/random_buffer.h"

namespace ge::test {
namespace {

struct Rows {
  std::vector<int8_t> bytes;
  std::vector<float> scales;
};

Rows plain(const std::vector<float>& x, size_t width) {
  Rows out;
  for (size_t r = 0; r * width < x.size(); ++r) {
    float most = 0;
    for (size_t i = 0; i < width; ++i) most = std::isnan(x[r * width + i]) || std::isnan(most) ? NAN : std::max(most, std::abs(x[r * width + i]));
    const float scale = most / 127;
    out.scales.push_back(scale);
    for (size_t i = 0; i < width; ++i)
      out.bytes.push_back(scale > 0 && std::isfinite(scale) ? static_cast<int8_t>(std::clamp(std::nearbyint(x[r * width + i] / scale), -127.f, 127.f)) : int8_t{0});
  }
  return out;
}

template <class F>
void each_isa(F body) {
  for (auto i : {kernels::Isa::portable, kernels::Isa::avx2, kernels::Isa::avx512}) {
    if (i > kernels::best_isa()) continue;
    ASSERT_TRUE(kernels::set_isa(i));
    SCOPED_TRACE(std::string(name(i)));
    body();
  }
  ASSERT_TRUE(kernels::set_isa(kernels::best_isa()));
}

TEST(QuantizeRows, ExactValues) {
  const float inf = std::numeric_limits<float>::infinity();
  each_isa([&] {
    // Ties go to even; zeros; the smallest numbers, whose scale is 0 or loses digits; what is not finite.
    Buffer x = filled<float>(DType::f32, {6, 4}, {127, 0.5, 1.5, -2.5, 0, 0, -0.f, 0, -254, 2, 3, 5, 1e-45f, 0, 0, 0, 1, inf, 2, 3, 1, NAN, 2, 3});
    Buffer q = dense_buffer(DType::i8, {6, 4}), s = dense_buffer(DType::f32, {6, 1}), back = dense_buffer(DType::f32, {6, 4});
    ASSERT_TRUE(run_kernel("quantize.rows", {x.view()}, {q.view(), s.view()}).ok());
    EXPECT_EQ(values<int8_t>(q), (std::vector<int8_t>{127, 0, 2, -2, 0, 0, 0, 0, -127, 1, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
    auto scales = values<float>(s);
    EXPECT_EQ((std::vector<float>(scales.begin(), scales.begin() + 5)), (std::vector<float>{1, 0, 2, 0, inf}));
    EXPECT_TRUE(std::isnan(scales[5]));
    ASSERT_TRUE(run_kernel("dequantize.rows", {q.view(), s.view()}, {back.view()}).ok());
    auto f = values<float>(back);
    EXPECT_EQ((std::vector<float>(f.begin(), f.begin() + 16)), (std::vector<float>{127, 0, 2, -2, 0, 0, 0, 0, -254, 2, 4, 4, 0, 0, 0, 0}));
    for (size_t i = 16; i < 24; ++i) EXPECT_TRUE(std::isnan(f[i])) << i;
  });
}

TEST(QuantizeRows, AnySizesAndLayouts) {
  each_isa([] {
    Random r(5);
    for (int round = 0; round < 200; ++round) {
      std::vector<int64_t> dims;
      for (int64_t i = r.below(4); i > 0; --i) dims.push_back(r.below(5));
      const int64_t width = r.below(4) ? r.below(40) : 60 + r.below(80);
      auto thin = dims;
      dims.push_back(width), thin.push_back(1);
      Buffer x = r.floats(dims), q = r.buffer(DType::i8, dims), s = r.buffer(DType::f32, thin), back = r.buffer(DType::f32, dims);
      ASSERT_TRUE(run_kernel("quantize.rows", {x.view()}, {q.view(), s.view()}).ok());
      const auto numbers = values<float>(x);
      if (width > 0) {
        auto want = plain(numbers, static_cast<size_t>(width));
        ASSERT_EQ(values<int8_t>(q), want.bytes);
        ASSERT_EQ(values<float>(s), want.scales);
      }
      ASSERT_TRUE(run_kernel("dequantize.rows", {q.view(), s.view()}, {back.view()}).ok());
      const auto f = values<float>(back), scales = values<float>(s);
      const auto bytes = values<int8_t>(q);
      for (size_t i = 0; i < f.size(); ++i) {
        const float scale = scales[i / static_cast<size_t>(width)];
        ASSERT_EQ(f[i], static_cast<float>(bytes[i]) * scale);
        ASSERT_LE(std::abs(f[i] - numbers[i]), scale * 0.5001f);
      }
    }
  });
}

TEST(QuantizeRows, RefusesWhatDoesNotFit) {
  Buffer x = dense_buffer(DType::f32, {2, 4}), q = dense_buffer(DType::i8, {2, 4}), s = dense_buffer(DType::f32, {2, 1}), wide = dense_buffer(DType::f32, {2, 4}), u = dense_buffer(DType::u8, {2, 4});
  EXPECT_FALSE(run_kernel("quantize.rows", {x.view()}, {q.view(), wide.view()}).ok());
  EXPECT_FALSE(run_kernel("quantize.rows", {x.view()}, {u.view(), s.view()}).ok());
  EXPECT_FALSE(run_kernel("quantize.rows", {x.view()}, {q.view()}).ok());
  EXPECT_FALSE(run_kernel("dequantize.rows", {q.view(), x.view()}, {x.view()}).ok());
  EXPECT_FALSE(run_kernel("dequantize.rows", {q.view()}, {x.view()}).ok());
}

}  // namespace
}  // namespace ge::test
