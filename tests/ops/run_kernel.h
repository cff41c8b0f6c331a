// Runs one kernel of the table the way the runtime does: prepare with null data, then every chunk.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "tensor/tensor.h"

namespace ge::test {

struct Params {
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<std::byte> blob;
};

// A view with its own memory: dense, or with gaps, permuted axes or reversed ones.
struct Buffer {
  DType dtype = DType::none;
  std::vector<int64_t> dims, strides;
  std::vector<std::byte> memory;
  int64_t offset = 0;  // elements

  View view() const {
    return {const_cast<std::byte*>(memory.data()) + offset * size_of(dtype), dtype, static_cast<int32_t>(dims.size()),
            dims.data(), strides.data()};
  }
};
inline View absent() { return {}; }

// Byte values of untouched memory, so that stray writes show.
inline constexpr std::byte kPoison{0xa5};

inline Buffer dense_buffer(DType t, std::vector<int64_t> dims) {
  Buffer b{t, dims, dense_strides(dims), {}, 0};
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  b.memory.assign(static_cast<size_t>(n * size_of(t)) + 64, kPoison);
  return b;
}

// Memory order `order` (outermost first), each axis stretched by a gap, axes in `reversed` backwards.
inline Buffer strided_buffer(DType t, std::vector<int64_t> dims, std::vector<int> order, int64_t gap,
                             unsigned reversed = 0) {
  Buffer b{t, dims, std::vector<int64_t>(dims.size()), {}, 0};
  int64_t step = gap;
  for (size_t i = order.size(); i-- > 0;) {
    auto a = static_cast<size_t>(order[i]);
    b.strides[a] = step;
    if (reversed >> a & 1) {
      b.strides[a] = -step;
      b.offset += step * std::max<int64_t>(0, dims[a] - 1);
    }
    step *= std::max<int64_t>(1, dims[a]) + gap - 1;
  }
  b.memory.assign(static_cast<size_t>(step * size_of(t)) + 64, kPoison);
  return b;
}

// f(byte pointer) for each element, row-major.
template <class F>
void each_element(const View& v, F f) {
  std::vector<int64_t> index(static_cast<size_t>(v.rank));
  for (int64_t i = 0, n = v.count(); i < n; ++i) {
    int64_t at = 0, left = i;
    for (int a = v.rank - 1; a >= 0; --a) {
      at += left % v.dims[a] * v.strides[a];
      left /= v.dims[a];
    }
    f(v.data + at * size_of(v.dtype));
  }
}

template <class T>
Buffer filled(DType t, std::vector<int64_t> dims, std::vector<T> values) {
  Buffer b = dense_buffer(t, std::move(dims));
  if (!values.empty()) std::memcpy(b.memory.data(), values.data(), values.size() * sizeof(T));
  return b;
}
template <class T>
std::vector<T> values(const View& v) {
  std::vector<T> out;
  each_element(v, [&](const std::byte* p) {
    T x;
    std::memcpy(&x, p, sizeof x);
    out.push_back(x);
  });
  return out;
}
template <class T>
std::vector<T> values(const Buffer& b) {
  return values<T>(b.view());
}

inline Status run_kernel(std::string_view name, const std::vector<View>& in, const std::vector<View>& out,
                         const Params& p = {}) {
  const kernels::Kernel* k = kernels::find(name);
  if (!k) return error(code::kInternal, "no kernel " + std::string(name));
  auto without_data = in, out_without_data = out;
  for (auto& v : without_data) v.data = nullptr;
  for (auto& v : out_without_data) v.data = nullptr;
  kernels::Call c{without_data, out_without_data, p.ints, p.floats, p.blob, nullptr, nullptr, nullptr};
  auto work = k->prepare(c);
  if (!work.ok()) return work.error();
  auto aligned = [](std::vector<std::byte>& m) {
    auto a = reinterpret_cast<uintptr_t>(m.data());
    return m.data() + ((a + 63) / 64 * 64 - a);
  };
  std::vector<std::byte> shared(static_cast<size_t>(work->shared) + 64), scratch(static_cast<size_t>(work->scratch) + 64);
  c.in = in, c.out = out, c.state = work->state.get();
  c.shared = aligned(shared), c.scratch = aligned(scratch);
  for (int64_t i = 0; i < work->chunks; ++i)
    if (auto s = k->run(c, i); !s.ok()) return s;
  return ok();
}

}  // namespace ge::test
