// Random sizes, layouts and contents for comparing kernels.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "kernels/move/element.h"
#include "ops/run_kernel.h"

namespace ge::test {

inline const DType kSizes[] = {DType::u8, DType::f16, DType::f32, DType::i64, DType::c128};

inline std::vector<std::string> raw(const View& v) {
  std::vector<std::string> out;
  each_element(v, [&](const std::byte* p) { out.emplace_back(reinterpret_cast<const char*>(p), static_cast<size_t>(size_of(v.dtype))); });
  return out;
}

struct Random {
  std::mt19937 rng;
  explicit Random(unsigned seed) : rng(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(rng() % static_cast<uint64_t>(n)); }
  DType size_type() { return kSizes[below(5)]; }
  // Random order of axes, gaps and reversed axes.
  Buffer layout(DType t, std::vector<int64_t> dims) {
    std::vector<int> order(dims.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    if (below(2)) std::shuffle(order.begin(), order.end(), rng);
    const unsigned reversed = below(3) ? 0 : static_cast<unsigned>(rng());
    const int64_t gap = 1 + below(2);
    return strided_buffer(t, std::move(dims), order, gap, reversed);
  }
  // Any bits (bool: 0 and 1).
  Buffer buffer(DType t, std::vector<int64_t> dims) {
    Buffer b = layout(t, std::move(dims));
    each_element(b.view(), [&](std::byte* p) {
      for (int64_t k = 0; k < size_of(t); ++k) p[k] = std::byte(rng() & 0xff);
      if (t == DType::boolean) *p &= std::byte{1};
    });
    return b;
  }
  // Whole numbers low..high-1.
  Buffer numbers(DType t, std::vector<int64_t> dims, int64_t low, int64_t high) {
    Buffer b = layout(t, std::move(dims));
    each_element(b.view(), [&](std::byte* p) { kernels::move::store_i64(t, p, low + below(high - low)); });
    return b;
  }
  Buffer floats(std::vector<int64_t> dims) {
    Buffer b = layout(DType::f32, std::move(dims));
    each_element(b.view(), [&](std::byte* p) { kernels::move::store_f64(DType::f32, p, static_cast<double>(below(2001) - 1000) / 64); });
    return b;
  }
};

inline std::vector<View> views(const std::vector<Buffer>& b) {
  std::vector<View> out;
  for (auto& x : b) out.push_back(x.view());
  return out;
}

}  // namespace ge::test
