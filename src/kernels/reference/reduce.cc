// ref.Reduce: the meaning of the reductions, any strides; double inside, integers in 64 bits, wrapping.
// ints: [Reduction]. in: x. out: y of x's rank; every axis on which it has another size than x has size 1
// there and is reduced. An empty row gives the neutral element (of max and min: the type's extreme).
#include "kernels/reference/reduce.h"

#include "kernels/reference/rows.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kName = "ref.Reduce";

uint32_t reduced_axes(const Call& c) {
  uint32_t axes = 0;
  for (int a = 0; a < c.in[0].rank; ++a)
    if (c.in[0].dims[a] != c.out[0].dims[a]) axes |= 1u << a;
  return axes;
}

int64_t chunks(const Call& c) {
  Rows<1> r(c.in[0], reduced_axes(c));
  return cut(r.outer_count(), 8.0 * static_cast<double>(std::max<int64_t>(r.row_count(), 1)));
}

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1));
  const View &x = c.in[0], &y = c.out[0];
  if (c.ints[0] < 0 || c.ints[0] >= kReductions) return bad(kName, "unknown reduction");
  if (!plain_numeric(x.dtype) || y.dtype != x.dtype || x.rank != y.rank) return bad(kName, "output unlike the input");
  for (int a = 0; a < x.rank; ++a)
    if (y.dims[a] != x.dims[a] && y.dims[a] != 1) return bad(kName, "an axis of the output is neither kept nor 1");
  Work w;
  w.chunks = chunks(c);
  return w;
}

double start(Reduction op) {
  switch (op) {
    case Reduction::max: return -std::numeric_limits<double>::infinity();
    case Reduction::min: return std::numeric_limits<double>::infinity();
    case Reduction::prod: return 1;
    default: return 0;
  }
}

double step(Reduction op, double acc, double v) {
  switch (op) {
    case Reduction::max: return acc != acc ? acc : v != v ? v : std::max(acc, v);
    case Reduction::min: return acc != acc ? acc : v != v ? v : std::min(acc, v);
    case Reduction::prod: return acc * v;
    case Reduction::sum_square: case Reduction::l2: return acc + v * v;
    case Reduction::l1: return acc + std::fabs(v);
    default: return acc + v;
  }
}

double finish(Reduction op, double acc, double n) {
  switch (op) {
    case Reduction::mean: return acc / n;
    case Reduction::l2: return std::sqrt(acc);
    case Reduction::log_sum: return std::log(acc);
    default: return acc;
  }
}

double reduce_float(const View& x, Reduction op, Rows<2>& r) {
  double acc = start(op);
  if (op == Reduction::log_sum_exp) {
    double best = start(Reduction::max), shift;
    r.each([&](int64_t, const int64_t* at) { best = step(Reduction::max, best, load(x, at[0])); });
    shift = std::isinf(best) ? 0 : best;
    r.each([&](int64_t, const int64_t* at) { acc += std::exp(load(x, at[0]) - shift); });
    return shift + std::log(acc);
  }
  r.each([&](int64_t, const int64_t* at) { acc = step(op, acc, load(x, at[0])); });
  return finish(op, acc, static_cast<double>(r.row_count()));
}

// Sums and extremes of integers, exactly; T is int64_t or uint64_t.
template <class T>
int64_t reduce_int(const View& x, Reduction op, Rows<2>& r) {
  using U = uint64_t;
  bool any = false;
  T best = 0;
  U acc = op == Reduction::prod ? 1 : 0;
  r.each([&](int64_t, const int64_t* at) {
    T v = static_cast<T>(load_int(x, at[0]));
    U u = static_cast<U>(v);
    switch (op) {
      case Reduction::max: best = any ? std::max(best, v) : v; break;
      case Reduction::min: best = any ? std::min(best, v) : v; break;
      case Reduction::prod: acc *= u; break;
      case Reduction::sum_square: acc += u * u; break;
      case Reduction::l1: acc += v < 0 ? U{0} - u : u; break;
      default: acc += u;
    }
    any = true;
  });
  int width = bits(x.dtype);
  int64_t high = x.dtype == DType::boolean ? 1
                 : is_signed(x.dtype)      ? static_cast<int64_t>((U{1} << (width - 1)) - 1)
                                           : static_cast<int64_t>(~U{0} >> (64 - width));
  int64_t low = is_signed(x.dtype) ? -high - 1 : 0;
  if (op == Reduction::max) return any ? static_cast<int64_t>(best) : low;
  if (op == Reduction::min) return any ? static_cast<int64_t>(best) : high;
  if (op == Reduction::mean) {
    int64_t n = r.row_count();
    return n ? static_cast<int64_t>(static_cast<T>(acc) / static_cast<T>(n)) : 0;
  }
  return static_cast<int64_t>(acc);
}

Status run(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &y = c.out[0];
  Reduction op = static_cast<Reduction>(c.ints[0]);
  Rows<2> r(x, reduced_axes(c));
  r.follow(0, x), r.follow(1, y);
  Span s = slice(r.outer_count(), chunk, chunks(c));
  r.outer.seek(s.begin);
  bool roots = op == Reduction::l2 || op == Reduction::log_sum || op == Reduction::log_sum_exp;
  for (int64_t o = s.begin; o < s.end; ++o, r.outer.next()) {
    if (is_float(x.dtype) || roots) store(y, r.outer.offset[1], reduce_float(x, op, r));
    else if (x.dtype == DType::u64) store_int(y, r.outer.offset[1], reduce_int<uint64_t>(x, op, r));
    else store_int(y, r.outer.offset[1], reduce_int<int64_t>(x, op, r));
  }
  return ok();
}

const Register r({.name = kName, .unit = Unit::vector, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::reference
