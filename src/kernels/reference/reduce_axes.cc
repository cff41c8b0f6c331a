// reduce.axes: reductions over any axes in typed loops; parameters and operands as ref.Reduce. Where the
// innermost axis is kept, blocks of it are reduced side by side; where it is reduced, a run at a time.
// Float sums are kept in double: any order of the axes gives nearly the same result. Types: f32, f64, and but
// for l2, log_sum and log_sum_exp i32 and i64.
#include <type_traits>

#include "kernels/reference/collapse.h"
#include "kernels/reference/reduce.h"

#define GE_TARGET_BODY "kernels/reference/reduce-inl.h"
#include "kernels/cube/conv_targets.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kName = "reduce.axes";
constexpr int64_t kBlock = 256;  // kept elements side by side

// The loops: kept axes (x and y) and reduced axes (x), each merged and ordered by x's strides.
struct State {
  Nest kept, reduced;  // operand 0 is x, of kept also 1 = y
  bool inner_kept = false;
  int64_t block = 1, units = 0, chunks = 0;  // units of `block` kept elements
};

Status check(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1));
  const View &x = c.in[0], &y = c.out[0];
  if (c.ints[0] < 0 || c.ints[0] >= kReductions) return bad(kName, "unknown reduction");
  if (y.dtype != x.dtype || x.rank != y.rank) return bad(kName, "output unlike the input");
  bool integer = x.dtype == DType::i32 || x.dtype == DType::i64;
  auto op = static_cast<Reduction>(c.ints[0]);
  if (integer ? op == Reduction::l2 || op >= Reduction::log_sum : x.dtype != DType::f32 && x.dtype != DType::f64)
    return bad(kName, format("reduction {} does not take {}", c.ints[0], name(x.dtype)));
  for (int a = 0; a < x.rank; ++a)
    if (y.dims[a] != x.dims[a] && y.dims[a] != 1) return bad(kName, "an axis of the output is neither kept nor 1");
  return ok();
}

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check(c));
  const View &x = c.in[0], &y = c.out[0];
  int64_t kept[kMaxRank], reduced[kMaxRank], none[kMaxRank] = {};
  for (int a = 0; a < x.rank; ++a) {
    bool r = x.dims[a] != y.dims[a];
    kept[a] = r ? 1 : x.dims[a], reduced[a] = r ? x.dims[a] : 1;
  }
  View kept_x{nullptr, x.dtype, x.rank, kept, x.strides}, kept_y{nullptr, y.dtype, x.rank, kept, y.strides};
  View reduced_x{nullptr, x.dtype, x.rank, reduced, x.strides}, reduced_none{nullptr, x.dtype, x.rank, reduced, none};
  auto s = std::make_shared<State>();
  const View kept_views[] = {kept_x, kept_y}, reduced_views[] = {reduced_x, reduced_none};
  s->kept = collapse(kept_views);
  s->reduced = collapse(reduced_views);
  // Side by side where the kept axis is the tighter one, or nothing is reduced.
  const uint64_t kept_step = magnitude(s->kept.stride(0, s->kept.rank - 1)), reduced_step = magnitude(s->reduced.stride(0, s->reduced.rank - 1));
  s->inner_kept = s->kept.inner() > 1 && (s->reduced.count <= 1 || kept_step < reduced_step);
  s->block = s->inner_kept ? std::min(kBlock, s->kept.inner()) : 1;
  int64_t inner = s->kept.inner(), blocks = s->block ? (inner + s->block - 1) / s->block : 0;
  s->units = inner ? s->kept.count / inner * blocks : 0;
  double per = static_cast<double>(s->block) * static_cast<double>(std::max<int64_t>(s->reduced.count, 1));
  s->chunks = cut(s->units, per * (c.ints[0] == static_cast<int64_t>(Reduction::log_sum_exp) ? 12 : 1) + 20);
  Work w;
  w.chunks = s->chunks;
  w.state = s;
  return w;
}

// The accumulator of a storage type: double for floats, 64 bits of the same sign for integers.
template <class S>
using Acc = std::conditional_t<std::is_integral_v<S>, std::conditional_t<std::is_signed_v<S>, int64_t, uint64_t>, double>;

// uint64_t arithmetic, so that integer sums wrap.
template <class A>
A plus(A a, A b) {
  if constexpr (std::is_integral_v<A>) return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else return a + b;
}
template <class A>
A times(A a, A b) {
  if constexpr (std::is_integral_v<A>) return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else return a * b;
}
template <class A>
A magnitude(A v) {
  if constexpr (std::is_same_v<A, double>) return std::fabs(v);
  else if constexpr (std::is_signed_v<A>) return v < 0 ? static_cast<A>(uint64_t{0} - static_cast<uint64_t>(v)) : v;
  else return v;
}

// kVector: what the loops of reduce-inl.h call it, or -1.
template <class A>
struct Sum {
  static constexpr int kVector = 0;
  static A start() { return 0; }
  static A step(A acc, A v) { return plus(acc, v); }
};
template <class A>
struct SumSquare {
  static constexpr int kVector = 1;
  static A start() { return 0; }
  static A step(A acc, A v) { return plus(acc, times(v, v)); }
};
template <class A>
struct SumAbs {
  static constexpr int kVector = -1;
  static A start() { return 0; }
  static A step(A acc, A v) { return plus(acc, magnitude(v)); }
};
template <class A>
struct Prod {
  static constexpr int kVector = -1;
  static A start() { return 1; }
  static A step(A acc, A v) { return times(acc, v); }
};
template <class A>
struct Max {
  static constexpr int kVector = 2;
  static A start() { return std::is_integral_v<A> ? std::numeric_limits<A>::lowest() : static_cast<A>(-INFINITY); }
  static A step(A acc, A v) { return v > acc || v != v ? v : acc; }  // NaN stays: nothing is greater
};
template <class A>
struct Min {
  static constexpr int kVector = 3;
  static A start() { return std::is_integral_v<A> ? std::numeric_limits<A>::max() : static_cast<A>(INFINITY); }
  static A step(A acc, A v) { return v < acc || v != v ? v : acc; }
};

// Walks the reduced axes but the last; f(x, n, stride) for each run of n elements.
template <class S, class F>
void each_run(const Nest& r, const S* x, F f) {
  int64_t index[kMaxRank] = {};
  int last = r.rank - 1;
  if (r.count == 0) return;
  for (;;) {
    int64_t at = 0;
    for (int a = 0; a < last; ++a) at += index[a] * r.stride(0, a);
    f(x + at, r.dims[last], r.stride(0, last));
    int a = last - 1;
    for (; a >= 0; --a) {
      if (++index[a] < r.dims[a]) break;
      index[a] = 0;
    }
    if (a < 0) return;
  }
}

// n kept elements, x_step apart, into acc. `shift` is subtracted inside exp when kExp.
template <class S, class Op, bool kExp>
void reduce_block(const State& s, const S* x, int64_t n, int64_t x_step, Acc<S>* acc, const double* shift) {
  using A = Acc<S>;
  for (int64_t i = 0; i < n; ++i) acc[i] = Op::start();
  auto add = [&](A a, S v, int64_t i) {
    if constexpr (kExp) return Op::step(a, static_cast<A>(std::exp(static_cast<double>(v) - shift[i])));
    else return Op::step(a, static_cast<A>(v));
  };
  constexpr bool kVector = std::is_same_v<S, float> && !kExp && Op::kVector >= 0;
  if (s.inner_kept) {
    if constexpr (kVector) {
      if (x_step == 1) {
        each_run(s.reduced, x, [&](const S* p, int64_t count, int64_t stride) {
          GE_ON_ISA(f32_columns)(Op::kVector, p, count, stride, n, acc);
        });
        return;
      }
    }
    each_run(s.reduced, x, [&](const S* p, int64_t count, int64_t stride) {
      for (int64_t k = 0; k < count; ++k, p += stride) {
        if (x_step == 1)
          for (int64_t i = 0; i < n; ++i) acc[i] = add(acc[i], p[i], i);
        else
          for (int64_t i = 0; i < n; ++i) acc[i] = add(acc[i], p[i * x_step], i);
      }
    });
    return;
  }
  // One kept element: eight chains, joined in order.
  constexpr int kChains = 8;
  A chain[kChains];
  for (auto& a : chain) a = Op::start();
  each_run(s.reduced, x, [&](const S* p, int64_t count, int64_t stride) {
    int64_t k = 0;
    if constexpr (kVector)
      if (stride == 1) k = GE_ON_ISA(f32_eights)(Op::kVector, p, count, chain);
    for (; k + kChains <= count; k += kChains)
      for (int j = 0; j < kChains; ++j) chain[j] = add(chain[j], p[(k + j) * stride], 0);
    for (; k < count; ++k) chain[k % kChains] = add(chain[k % kChains], p[k * stride], 0);
  });
  for (auto a : chain) {
    if constexpr (std::is_same_v<Op, SumSquare<A>> || std::is_same_v<Op, SumAbs<A>>) acc[0] = plus(acc[0], a);
    else acc[0] = Op::step(acc[0], a);
  }
}

template <class S>
void accumulate(const State& s, Reduction op, const S* x, int64_t n, int64_t step, Acc<S>* acc, double* shift) {
  using A = Acc<S>;
  switch (op) {
    case Reduction::max: return reduce_block<S, Max<A>, false>(s, x, n, step, acc, shift);
    case Reduction::min: return reduce_block<S, Min<A>, false>(s, x, n, step, acc, shift);
    case Reduction::prod: return reduce_block<S, Prod<A>, false>(s, x, n, step, acc, shift);
    case Reduction::sum_square: case Reduction::l2: return reduce_block<S, SumSquare<A>, false>(s, x, n, step, acc, shift);
    case Reduction::l1: return reduce_block<S, SumAbs<A>, false>(s, x, n, step, acc, shift);
    case Reduction::log_sum_exp:
      if constexpr (std::is_same_v<A, double>) {
        reduce_block<S, Max<A>, false>(s, x, n, step, acc, shift);
        for (int64_t i = 0; i < n; ++i) shift[i] = std::isinf(acc[i]) ? 0 : acc[i];
        return reduce_block<S, Sum<A>, true>(s, x, n, step, acc, shift);
      }
      return;
    default: return reduce_block<S, Sum<A>, false>(s, x, n, step, acc, shift);
  }
}

template <class S>
S finish(Reduction op, Acc<S> acc, int64_t n, double shift) {
  if constexpr (std::is_integral_v<S>) {
    // The extremes of an empty row are those of the type.
    if (n == 0 && op == Reduction::max) return std::numeric_limits<S>::lowest();
    if (n == 0 && op == Reduction::min) return std::numeric_limits<S>::max();
    if (op == Reduction::mean) return n ? static_cast<S>(acc / static_cast<Acc<S>>(n)) : S{0};
    return static_cast<S>(acc);
  } else {
    double v = acc;
    if (op == Reduction::mean) v = acc / static_cast<double>(n);
    if (op == Reduction::l2) v = std::sqrt(acc);
    if (op == Reduction::log_sum) v = std::log(acc);
    if (op == Reduction::log_sum_exp) v = shift + std::log(acc);
    return static_cast<S>(v);
  }
}

template <class S>
void run_as(const Call& c, const State& s, Span span) {
  Reduction op = static_cast<Reduction>(c.ints[0]);
  Acc<S> acc[kBlock];
  double shift[kBlock];
  int inner = s.kept.rank - 1;
  int64_t width = s.kept.inner(), blocks = (width + s.block - 1) / s.block;
  for (int64_t u = span.begin; u < span.end; ++u) {
    int64_t index[kMaxRank], row = u / blocks;
    index[inner] = u % blocks * s.block;
    for (int a = inner; a-- > 0; row /= s.kept.dims[a]) index[a] = row % s.kept.dims[a];
    int64_t n = std::min(s.block, width - index[inner]);
    const S* x = c.in[0].as<S>() + s.kept.offset(0, index);
    S* y = c.out[0].as<S>() + s.kept.offset(1, index);
    accumulate<S>(s, op, x, n, s.kept.stride(0, inner), acc, shift);
    for (int64_t i = 0; i < n; ++i) y[i * s.kept.stride(1, inner)] = finish<S>(op, acc[i], s.reduced.count, shift[i]);
  }
}

Status run(const Call& c, int64_t chunk) {
  const State& s = *static_cast<const State*>(c.state);
  Span span = slice(s.units, chunk, s.chunks);
  switch (c.in[0].dtype) {
    case DType::f32: run_as<float>(c, s, span); break;
    case DType::f64: run_as<double>(c, s, span); break;
    case DType::i64: run_as<int64_t>(c, s, span); break;
    default: run_as<int32_t>(c, s, span); break;
  }
  return ok();
}

const Register r({.name = kName, .unit = Unit::vector, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::reference
