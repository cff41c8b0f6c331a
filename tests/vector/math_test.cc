// Errors of the elementary functions against double, over all binades of both signs, and their values at
// zeros, infinities, NaN, and subnormal arguments.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "base/text.h"
#include "vector/scalar_program.h"

namespace ge::kernels::vector {
namespace {

using namespace testing;  // NOLINT

// The distance of neighbouring floats at |x|.
double ulp(double x) {
  double a = std::fabs(x);
  if (a < 0x1p-126) return 0x1p-149;
  int e;
  std::frexp(a, &e);
  return std::ldexp(1.0, e - 24);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return x > 40 ? x : std::log1p(std::exp(x)); }

struct Bound {
  Op op;
  std::function<double(double)> f;
  double with_fma, without;  // ulp of the result
  double absolute;           // plus this, in units of 2^-24 |x|
  float from, to;
};

const Bound kBounds[] = {
    {Op::exp, [](double x) { return std::exp(x); }, 0.9, 1.2, 0, -INFINITY, INFINITY},
    {Op::expm1, [](double x) { return std::expm1(x); }, 1.5, 1.5, 0, -INFINITY, INFINITY},
    {Op::log, [](double x) { return std::log(x); }, 0.8, 0.8, 0, -INFINITY, INFINITY},
    {Op::erf, [](double x) { return std::erf(x); }, 2.9, 2.9, 0, -INFINITY, INFINITY},
    {Op::tanh, [](double x) { return std::tanh(x); }, 2.5, 2.5, 0, -INFINITY, INFINITY},
    {Op::sigmoid, sigmoid, 2.3, 2.3, 0, -INFINITY, INFINITY},
    {Op::sin, [](double x) { return std::sin(x); }, 1.6, 1.6, 0, -INFINITY, INFINITY},
    {Op::cos, [](double x) { return std::cos(x); }, 1.6, 1.6, 0, -INFINITY, INFINITY},
    {Op::softplus, softplus, 1.6, 1.6, 0, -INFINITY, INFINITY},
    {Op::silu, [](double x) { return x * sigmoid(x); }, 3.1, 3.1, 0, -87.0f, INFINITY},
    {Op::gelu, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }, 0.6, 0.6, 2.0, -1e18f, INFINITY},
    {Op::gelu_tanh, [](double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }, 0.6, 0.6, 2.0, -1e12f, 1e12f},
    {Op::mish, [](double x) { return x * std::tanh(softplus(x)); }, 3.9, 3.9, 0, -80.0f, INFINITY},
};

class Math : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { set_isa(GetParam()); }
  void TearDown() override { set_isa(best_isa()); }
};

Row sweep(uint32_t offset, uint32_t step) {
  Row x;
  for (uint64_t b = offset; b <= 0xffffffffull; b += step) x.push_back(static_cast<uint32_t>(b));
  return x;
}

TEST_P(Math, ErrorsAgainstDouble) {
  Row x = sweep(1, 20011);
  std::mt19937 rng(31);
  for (int i = 0; i < 200000; ++i) x.push_back(bits(std::uniform_real_distribution<float>(-20, 20)(rng)));
  for (int i = 0; i < 50000; ++i) x.push_back(bits(std::uniform_real_distribution<float>(-0.01f, 0.01f)(rng)));
  for (const Bound& b : kBounds) {
    Row got = one_op(b.op, x, {});
    double worst = 0;
    float at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      float v = as_f(x[i]), g = as_f(got[i]);
      if (!(v >= b.from && v <= b.to)) continue;
      double want = b.f(v);
      float rounded = static_cast<float>(want);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(g)) << ge::kernels::vector::name(b.op) << " of " << v << " is " << g;
        continue;
      }
      if (std::isinf(rounded) && g == rounded) continue;
      if (std::isinf(g) && std::fabs(want) > 3.402823e38) continue;
      ASSERT_FALSE(std::isnan(g) || std::isinf(g)) << ge::kernels::vector::name(b.op) << " of " << v << " is " << g << ", want " << want;
      double error = std::max(0.0, std::fabs(g - want) - b.absolute * 0x1p-24 * std::fabs(v)) / ulp(want);
      if (error > worst) worst = error, at = v;
    }
    double bound = fuses() ? b.with_fma : b.without;
    EXPECT_LE(worst, bound) << ge::kernels::vector::name(b.op) << " at " << at;
    RecordProperty(std::string(ge::kernels::vector::name(b.op)), ge::format("{:.3f}", worst));
    if (std::getenv("GE_TEST_PRINT")) std::printf("%-10s %.3f ulp at %g\n", std::string(ge::kernels::vector::name(b.op)).c_str(), worst, at);
  }
}

TEST_P(Math, Limits) {
  struct { Op op; float x, want; } cases[] = {
      {Op::exp, -INFINITY, 0}, {Op::exp, INFINITY, INFINITY}, {Op::exp, 88.8f, INFINITY}, {Op::exp, -104, 0}, {Op::exp, 0, 1},
      {Op::exp, -0.0f, 1}, {Op::log, 0, -INFINITY}, {Op::log, -0.0f, -INFINITY}, {Op::log, INFINITY, INFINITY}, {Op::log, -1, NAN},
      {Op::log, 1, 0}, {Op::log, -INFINITY, NAN}, {Op::erf, INFINITY, 1}, {Op::erf, -INFINITY, -1}, {Op::erf, 5, 1}, {Op::erf, 0, 0},
      {Op::tanh, INFINITY, 1}, {Op::tanh, -INFINITY, -1}, {Op::tanh, 20, 1}, {Op::tanh, -0.0f, -0.0f}, {Op::sigmoid, INFINITY, 1},
      {Op::sigmoid, -INFINITY, 0}, {Op::sigmoid, 0, 0.5f}, {Op::sin, INFINITY, NAN}, {Op::cos, -INFINITY, NAN}, {Op::sin, 0, 0},
      {Op::cos, 0, 1}, {Op::softplus, INFINITY, INFINITY}, {Op::softplus, -INFINITY, 0}, {Op::expm1, -INFINITY, -1},
      {Op::expm1, INFINITY, INFINITY}, {Op::expm1, 88, std::expm1(88.0f)}, {Op::expm1, 89.5f, INFINITY}, {Op::gelu, 0, 0},
      {Op::gelu, 100, 100}, {Op::mish, INFINITY, INFINITY}, {Op::silu, INFINITY, INFINITY},
  };
  for (auto& c : cases) {
    // In every position of a vector, among ordinary numbers.
    for (size_t at : {0u, 5u, 40u}) {
      Row x(41, bits(0.5f));
      x[at] = bits(c.x);
      float g = as_f(one_op(c.op, x, {})[at]);
      if (std::isnan(c.want)) EXPECT_TRUE(std::isnan(g)) << ge::kernels::vector::name(c.op) << " " << c.x;
      else if (c.op == Op::expm1 && std::isfinite(c.want)) EXPECT_NEAR(g / c.want, 1, 3e-7);
      else EXPECT_EQ(g, c.want) << ge::kernels::vector::name(c.op) << " " << c.x;
      if (c.want == 0 && c.x == 0 && c.op == Op::tanh) {
        EXPECT_TRUE(std::signbit(g));
      }
    }
  }
  Row nan(33, bits(NAN));
  for (Op op : {Op::exp, Op::log, Op::erf, Op::tanh, Op::sigmoid, Op::sin, Op::cos, Op::softplus, Op::silu, Op::gelu, Op::gelu_tanh,
                Op::mish, Op::expm1, Op::relu, Op::floor, Op::round, Op::sqrt, Op::sign})
    for (uint32_t y : one_op(op, nan, {})) EXPECT_TRUE(std::isnan(as_f(y))) << ge::kernels::vector::name(op);
}

// The same result wherever a value stands in the row.
TEST_P(Math, PositionDoesNotMatter) {
  std::mt19937 rng(32);
  for (const Bound& b : kBounds) {
    Row x(301);
    for (auto& v : x) v = rng() % 8 ? bits(std::uniform_real_distribution<float>(-9, 9)(rng)) : static_cast<uint32_t>(rng());
    Row all = one_op(b.op, x, {});
    for (size_t i = 0; i < x.size(); i += 7) {
      Row one = one_op(b.op, {x[i]}, {});
      EXPECT_TRUE(one[0] == all[i] || (std::isnan(as_f(one[0])) && std::isnan(as_f(all[i])))) << ge::kernels::vector::name(b.op);
    }
  }
}

TEST_P(Math, PowAgainstDouble) {
  std::mt19937 rng(33);
  Row x, y;
  auto add = [&](float a, float b) { x.push_back(bits(a)), y.push_back(bits(b)); };
  const float special[] = {0.0f, -0.0f, 1, -1, INFINITY, -INFINITY, NAN, 2, -2, 3, -3, 0.5f, -0.5f, 1e-40f, -1e-40f, 3e38f, 16777216, 8388609, 4194304.5f,
                           16777218, 33554432, -16777215, 0.33333f, 2.5f, -2.5f, 1e10f};
  for (float a : special)
    for (float b : special) add(a, b);
  for (int i = 0; i < 200000; ++i) {
    float a = std::uniform_real_distribution<float>(-10, 10)(rng);
    const float b = rng() % 3 ? std::uniform_real_distribution<float>(-40, 40)(rng) : static_cast<float>(static_cast<int>(rng() % 40)) - 20;
    add(rng() % 3 ? std::fabs(a) : a, b);
    const float any = as_f(static_cast<uint32_t>(rng()));
    add(as_f(static_cast<uint32_t>(rng())), any);
    add(1 + a * 1e-3f, std::uniform_real_distribution<float>(-50000, 50000)(rng));
  }
  Row got = one_op(Op::pow, x, y);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    float a = as_f(x[i]), b = as_f(y[i]), g = as_f(got[i]);
    double want = std::pow(static_cast<double>(a), static_cast<double>(b));
    float rounded = static_cast<float>(want);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(g)) << a << " ^ " << b << " is " << g;
      continue;
    }
    if (rounded == g) {
      ASSERT_EQ(std::signbit(rounded), std::signbit(g)) << a << " ^ " << b;
      worst = std::max(worst, std::isinf(g) ? 0 : std::fabs(g - want) / ulp(want));
      continue;
    }
    ASSERT_TRUE(std::isfinite(g) && std::isfinite(rounded)) << a << " ^ " << b << " is " << g << ", want " << want;
    worst = std::max(worst, std::fabs(g - want) / ulp(want));
  }
  EXPECT_LE(worst, 0.51);
}

INSTANTIATE_TEST_SUITE_P(Isas, Math, ::testing::ValuesIn(isas()),
                         [](const auto& i) { return std::string(ge::kernels::name(i.param)); });

}  // namespace
}  // namespace ge::kernels::vector
