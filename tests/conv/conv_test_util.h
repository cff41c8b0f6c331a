// Helpers of the convolution and pooling tests: strided operands with guards around them, and a
// runner that treats a kernel as the runtime may: sizes first, dirty scratch, chunks in any order.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/isa.h"
#include "kernels/kernel.h"

namespace ge::kernels::testing {

inline constexpr float kGuard = -12345.678f;

// Channels first, channels last, gaps and permuted axes, channels last with pixels a multiple of 2 KB apart.
enum class Layout { first, last, odd, apart };

// An operand of any layout; element order of `values()` is row-major over dims.
template <class T>
class Operand {
 public:
  Operand(DType dtype, std::vector<int64_t> dims, Layout layout = Layout::first)
      : dims_(std::move(dims)), strides_(dims_.size()), dtype_(dtype) {
    std::vector<size_t> order;  // innermost first
    for (size_t i = dims_.size(); i-- > 0;) order.push_back(i);
    if ((layout == Layout::last || layout == Layout::apart) && dims_.size() > 2) {
      order.erase(std::find(order.begin(), order.end(), 1));
      order.insert(order.begin(), 1);
    }
    if (layout == Layout::odd)
      std::rotate(order.begin(), order.begin() + order.size() / 2, order.end());
    int64_t step = layout == Layout::odd ? 2 : 1;
    for (size_t a : order) {
      strides_[a] = step;
      step *= std::max<int64_t>(dims_[a], 1) + (layout == Layout::odd ? 1 : 0);
      if (layout == Layout::apart && a == 1) step = (step + 511) / 512 * 512;
    }
    data_.assign(static_cast<size_t>(step + 2 * kMargin), static_cast<T>(kGuard));
  }
  void fill(std::mt19937& rng) {
    std::uniform_real_distribution<double> d(-1, 1);
    each([&](T& v) { v = static_cast<T>(d(rng)); });
  }
  template <class F>
  void each(F f) {
    int64_t n = count();
    for (int64_t i = 0; i < n; ++i) f(data_[kMargin + offset(i)]);
  }
  std::vector<T> values() {
    std::vector<T> out;
    each([&](T& v) { out.push_back(v); });
    return out;
  }
  int64_t count() const {
    int64_t n = 1;
    for (int64_t d : dims_) n *= d;
    return n;
  }
  T& at(std::vector<int64_t> index) {
    int64_t o = kMargin;
    for (size_t a = 0; a < index.size(); ++a) o += index[a] * strides_[a];
    return data_[static_cast<size_t>(o)];
  }
  View view() {
    return {reinterpret_cast<std::byte*>(data_.data() + kMargin), dtype_,
            static_cast<int32_t>(dims_.size()), dims_.data(), strides_.data()};
  }
  // True if nothing but the elements of the view was written.
  bool guards_intact() {
    std::vector<char> mine(data_.size(), 0);
    int64_t n = count();
    for (int64_t i = 0; i < n; ++i) mine[static_cast<size_t>(kMargin + offset(i))] = 1;
    for (size_t i = 0; i < data_.size(); ++i)
      if (!mine[i] && data_[i] != static_cast<T>(kGuard)) return false;
    return true;
  }
  const std::vector<int64_t>& dims() const { return dims_; }

 private:
  static constexpr int64_t kMargin = 64;
  int64_t offset(int64_t i) const {
    int64_t o = 0;
    for (size_t a = dims_.size(); a-- > 0;) o += i % dims_[a] * strides_[a], i /= dims_[a];
    return o;
  }
  std::vector<int64_t> dims_, strides_;
  DType dtype_;
  std::vector<T> data_;
};

using Floats = Operand<float>;
inline Floats floats(std::vector<int64_t> dims, Layout layout = Layout::first) {
  return Floats(DType::f32, std::move(dims), layout);
}

struct Task {
  std::vector<View> in, out;
  std::vector<int64_t> ints;
  std::vector<double> numbers;
  std::vector<std::byte> blob;
};

inline Call make_call(const Task& t) { return {t.in, t.out, t.ints, t.numbers, t.blob}; }

// 64-byte aligned bytes full of NaN, with a guard behind them.
class Scratch {
 public:
  explicit Scratch(int64_t bytes) : bytes_(static_cast<size_t>(bytes)), data_(bytes_ / 4 + 64) {
    std::fill(data_.begin(), data_.end(), std::numeric_limits<float>::quiet_NaN());
    start_ = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(data_.data()) + 63) &
                                          ~uintptr_t{63});
    std::memset(start_ + bytes_, 0x5a, 64);
  }
  std::byte* data() { return start_; }
  bool intact() const {
    for (size_t i = 0; i < 64; ++i)
      if (start_[bytes_ + i] != std::byte{0x5a}) return false;
    return true;
  }

 private:
  size_t bytes_;
  std::vector<float> data_;
  std::byte* start_;
};

// Prepares without data, then runs every chunk once, in an order drawn from rng.
inline void run_kernel(std::string_view name, const Task& t, std::mt19937& rng) {
  const Kernel* k = find(name);
  ASSERT_NE(k, nullptr) << name;
  Task sizes = t;
  for (View& v : sizes.in) v.data = nullptr;
  for (View& v : sizes.out) v.data = nullptr;
  auto work = k->prepare(make_call(sizes));
  ASSERT_TRUE(work.ok()) << work.error().text();
  std::vector<int64_t> order(static_cast<size_t>(work->chunks));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), rng);
  Scratch shared(work->shared), scratch[2] = {Scratch(work->scratch), Scratch(work->scratch)};
  Call call = make_call(t);
  call.state = work->state.get();
  call.shared = shared.data();
  int worker = 0;
  for (int64_t chunk : order) {
    call.scratch = scratch[worker ^= 1].data();
    Status s = k->run(call, chunk);
    ASSERT_TRUE(s.ok()) << s.error().text();
  }
  ASSERT_TRUE(shared.intact() && scratch[0].intact() && scratch[1].intact()) << "scratch overrun";
}

inline std::vector<Isa> isas() {
  std::vector<Isa> out;
  for (Isa i : {Isa::portable, Isa::avx2, Isa::avx512})
    if (i <= best_isa()) out.push_back(i);
  return out;
}

class UseIsa {
 public:
  explicit UseIsa(Isa i) : before_(isa()) { EXPECT_TRUE(set_isa(i)); }
  ~UseIsa() { (void)set_isa(before_); }

 private:
  Isa before_;
};

// Checks got against want: NaN where NaN, equal infinities, else within tolerance of the largest
// value (or of `most`, if that is larger).
inline void expect_close(const std::vector<float>& got, const std::vector<double>& want,
                         double tolerance, const std::string& what, double most = 0) {
  ASSERT_EQ(got.size(), want.size());
  for (double w : want)
    if (std::isfinite(w)) most = std::max(most, std::fabs(w));
  for (size_t i = 0; i < got.size(); ++i) {
    double g = got[i], w = want[i];
    bool same = std::isnan(w)   ? std::isnan(g)
                : std::isinf(w) ? g == w
                                : std::fabs(g - w) <= tolerance * std::max(most, 1e-3);
    ASSERT_TRUE(same) << what << " element " << i << ": got " << g << ", want " << w;
  }
}

inline int64_t pick(std::mt19937& rng, std::initializer_list<int64_t> from) {
  return from.begin()[std::uniform_int_distribution<size_t>(0, from.size() - 1)(rng)];
}

// Hostile Calls derived from a good one: every int replaced by nasty values, operands dropped,
// types changed. prepare() must answer each; run() follows only when the numbers are still the good
// ones.
inline void expect_total(std::string_view name, const Task& good) {
  const Kernel* k = find(name);
  ASSERT_NE(k, nullptr);
  const int64_t nasty[] = {INT64_MIN,        -1,       0, 1, 2, 3, 1 << 20, INT64_C(1) << 31,
                           INT64_C(1) << 62, INT64_MAX};
  int answers = 0;
  auto ask = [&](const Task& t) {
    auto w = k->prepare(make_call(t));
    if (w.ok()) {
      EXPECT_TRUE(w->chunks >= 0 && w->scratch >= 0 && w->shared >= 0);
    }
    ++answers;
  };
  for (size_t i = 0; i < good.ints.size(); ++i)
    for (int64_t v : nasty) {
      Task t = good;
      t.ints[i] = v;
      ask(t);
      t.ints.resize(i);
      ask(t);
    }
  for (size_t i = 0; i < good.in.size(); ++i) {
    Task t = good;
    t.in.resize(i);
    ask(t);
    for (DType d : {DType::none, DType::i64, DType::string}) {
      t = good;
      t.in[i].dtype = d;
      ask(t);
    }
    for (int rank : {0, 1, 2, 6}) {
      t = good;
      t.in[i].rank = std::min(rank, static_cast<int>(t.in[i].rank));
      ask(t);
    }
    for (int a = 0; a < good.in[i].rank; ++a)
      for (int64_t v : nasty) {
        std::vector<int64_t> dims(good.in[i].dims, good.in[i].dims + good.in[i].rank);
        dims[static_cast<size_t>(a)] = v;
        t = good;
        t.in[i].dims = dims.data();
        if (v >= 0) ask(t);
        t.in[i].dims = good.in[i].dims;
        t.in[i].strides = dims.data();
        ask(t);
      }
  }
  for (size_t i = 0; i < good.out.size(); ++i) {
    Task t = good;
    t.out.resize(i);
    ask(t);
    t = good;
    t.out[i].dtype = DType::u8;
    EXPECT_FALSE(k->prepare(make_call(t)).ok());
    for (int a = 0; a < good.out[i].rank; ++a)
      for (int64_t v : nasty) {
        std::vector<int64_t> dims(good.out[i].dims, good.out[i].dims + good.out[i].rank);
        dims[static_cast<size_t>(a)] = v;
        t = good;
        t.out[i].dims = dims.data();
        if (v >= 0) ask(t);
        t.out[i].dims = good.out[i].dims;
        t.out[i].strides = dims.data();
        ask(t);
      }
  }
  EXPECT_GT(answers, 50);
  EXPECT_FALSE(k->prepare(Call{}).ok());
}

}  // namespace ge::kernels::testing
