// Helpers of the Cube tests: strided test tensors, and running a kernel as the executor would, chunks in a
// shuffled order, buffers guarded against writes outside of the views.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/isa.h"
#include "kernels/kernel.h"

namespace ge::kernels {

using Dims = std::vector<int64_t>;

inline std::mt19937& rng() {
  static std::mt19937 r(12345);
  return r;
}
inline int64_t pick(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(rng()); }
inline int64_t pick_of(std::initializer_list<int64_t> l) { return l.begin()[pick(0, static_cast<int64_t>(l.size()) - 1)]; }

// An owned f32 (or other) tensor with chosen strides and a guard pattern in every gap.
template <class T = float>
struct Tensor {
  Dims dims, strides;
  std::vector<T> memory;
  std::vector<T> before;  // memory as prepared, for checking gaps
  int64_t base = 0;
  DType type;
  static constexpr int64_t kGuard = 64;

  Tensor() = default;
  // order: axes from innermost to outermost in memory; gap: extra elements between steps of the axis that
  // comes after the innermost; step: distance of neighbours on the innermost axis.
  Tensor(Dims d, std::vector<int> order, int64_t gap, int64_t step, DType t) : dims(std::move(d)), type(t) {
    strides.assign(dims.size(), 0);
    int64_t s = step;
    for (size_t i = 0; i < order.size(); ++i) {
      strides[order[i]] = s;
      s *= std::max<int64_t>(1, dims[order[i]]);
      if (i == 0) s += gap;
    }
    memory.assign(static_cast<size_t>(s + 2 * kGuard), T(77));
    base = kGuard;
    std::normal_distribution<float> n(0, 1);
    each([&](T& x) { x = std::is_same_v<T, float> ? T(n(rng())) : T(pick(0, 1)); });
    before = memory;
  }
  static Tensor dense(Dims d, DType t = DType::f32) {
    std::vector<int> order(d.size());
    for (size_t i = 0; i < d.size(); ++i) order[i] = static_cast<int>(d.size() - 1 - i);
    return Tensor(std::move(d), order, 0, 1, t);
  }
  // Row-major, with a random gap after rows and, if any_inner, perhaps a gap between columns or the two
  // last axes exchanged.
  static Tensor random(Dims d, bool any_inner, DType t = DType::f32) {
    std::vector<int> order(d.size());
    for (size_t i = 0; i < d.size(); ++i) order[i] = static_cast<int>(d.size() - 1 - i);
    if (any_inner && d.size() > 1 && pick(0, 1)) std::swap(order[0], order[1]);
    if (d.size() > 2 && pick(0, 1)) std::swap(order[1], order[2]);
    const int64_t inner = any_inner ? pick(1, 2) : 1, gap = pick(0, 3);
    return Tensor(std::move(d), order, gap, inner, t);
  }

  template <class F>
  void each(F f) {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    for (int64_t i = 0; i < n; ++i) f(memory[static_cast<size_t>(base + index(i))]);
  }
  // Offset of the i-th element in row-major order.
  int64_t index(int64_t i) const {
    int64_t at = 0;
    for (size_t a = dims.size(); a-- > 0;) {
      at += i % dims[a] * strides[a];
      i /= dims[a];
    }
    return at;
  }
  int64_t count() const { return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()); }
  // The element at an index tuple of a tensor that this one broadcasts to (aligned right).
  const T* pointer(const Dims& i) const {
    int64_t o = base;
    for (size_t a = 0; a < dims.size(); ++a) o += (dims[a] == 1 ? 0 : i[i.size() - dims.size() + a]) * strides[a];
    return memory.data() + o;
  }
  T at(const Dims& i) const { return *pointer(i); }
  View view() {
    return {reinterpret_cast<std::byte*>(memory.data() + base), type, static_cast<int32_t>(dims.size()), dims.data(),
            strides.data()};
  }
  // Nothing outside of the view has changed.
  void expect_gaps_kept() {
    std::vector<T> now = memory;
    int64_t n = count();
    for (int64_t i = 0; i < n; ++i) now[static_cast<size_t>(base + index(i))] = before[static_cast<size_t>(base + index(i))];
    EXPECT_EQ(0, std::memcmp(now.data(), before.data(), now.size() * sizeof(T))) << "written outside of the view";
  }
};

struct Aligned {
  explicit Aligned(int64_t bytes) : size(static_cast<size_t>(bytes)) {
    data = static_cast<std::byte*>(std::aligned_alloc(64, (size / 64 + 2) * 64));
    std::memset(data, 0xff, (size / 64 + 2) * 64);  // NaN: a kernel must not read what it did not write
  }
  ~Aligned() {
    for (size_t i = size; i < (size / 64 + 2) * 64; ++i)
      if (data[i] != std::byte{0xff}) ADD_FAILURE() << "scratch overrun";
    std::free(data);
  }
  size_t size;
  std::byte* data;
};

struct Task {
  std::vector<View> in, out;
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<std::byte> blob;
  Call call() const {
    Call c;
    c.in = in, c.out = out, c.ints = ints, c.floats = floats, c.blob = blob;
    return c;
  }
};

// prepare() as the Binding does it: with null data.
inline Result<Work> prepare_task(std::string_view kernel, const Task& t) {
  Task sizes = t;
  for (View& v : sizes.in) v.data = nullptr;
  for (View& v : sizes.out) v.data = nullptr;
  return find(kernel)->prepare(sizes.call());
}

inline void run_task(std::string_view kernel, const Task& t) {
  ASSERT_NE(find(kernel), nullptr);
  auto work = prepare_task(kernel, t);
  ASSERT_TRUE(work.ok()) << work.error().text();
  Call c = t.call();
  Aligned scratch(work->scratch), shared(work->shared);
  c.scratch = scratch.data, c.shared = shared.data, c.state = work->state.get();
  std::vector<int64_t> order(static_cast<size_t>(work->chunks));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), rng());
  for (int64_t i : order) {
    Status s = find(kernel)->run(c, i);
    ASSERT_TRUE(s.ok()) << s.error().text();
  }
}

// Runs body under every instruction set that the CPU has.
template <class F>
void each_isa(F body) {
  for (Isa i : {Isa::portable, Isa::avx2, Isa::avx512}) {
    if (i > best_isa()) continue;
    ASSERT_TRUE(set_isa(i));
    SCOPED_TRACE(std::string(name(i)));
    body();
  }
  ASSERT_TRUE(set_isa(best_isa()));
}

inline int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace ge::kernels
