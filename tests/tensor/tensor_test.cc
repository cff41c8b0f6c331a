// Elements of a Tensor as numbers, whatever its type.
#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "tensor/float8.h"

namespace ge {
namespace {

TEST(Tensor, EveryTypeHasNumbers) {
  for (int i = 1; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    if (t == DType::string) continue;
    Tensor x(t, {3});
    std::fill(x.mutable_data(), x.mutable_data() + x.bytes(), std::byte{0});
    const double zero = is_small_float(t) ? static_cast<double>(small_float_value(t, 0)) : 0;
    for (int64_t k = 0; k < 3; ++k) EXPECT_EQ(x.at(k), zero) << name(t);
    EXPECT_EQ(x.at_int(0), static_cast<int64_t>(zero)) << name(t);
  }
}

TEST(Tensor, FloatsOfEightBitsAreDecoded) {
  for (auto t : {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f4e2m1, DType::f8e8m0}) {
    Tensor x(t, {3});
    const double values[] = {1, 2, 4};
    for (int64_t i = 0; i < 3; ++i) x.as<uint8_t>()[i] = small_float_code(t, values[i], true);
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(x.at(i), values[i]) << name(t);
      EXPECT_EQ(x.at_int(i), static_cast<int64_t>(values[i])) << name(t);
    }
  }
}

TEST(Tensor, ComplexNumbersAreTwoReals) {
  const std::complex<float> values[] = {{1, 2}, {3, -4}};
  const Tensor x = Tensor::of<std::complex<float>>(DType::c64, {2}, values), r = x.reals();
  EXPECT_EQ(r.dtype(), DType::f32);
  EXPECT_EQ(r.dims(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(r.at(1), 2);
  EXPECT_EQ(r.at(3), -4);
  EXPECT_EQ(Tensor::scalar_f32(5).reals().dims(), std::vector<int64_t>());
}

TEST(Tensor, NoElementsBesideSizesWhoseProductPasses64Bits) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  for (auto& dims : {std::vector<int64_t>{0, 3, kHuge}, {3, kHuge, 0}, {3, 3, kHuge, 0, kHuge}}) {
    const Tensor x(DType::f32, dims);
    EXPECT_EQ(x.count(), 0);
    EXPECT_EQ(x.bytes(), 0u);
    EXPECT_EQ(x.view().count(), 0);
    EXPECT_TRUE(x.view().dense());
  }
}

}  // namespace
}  // namespace ge
