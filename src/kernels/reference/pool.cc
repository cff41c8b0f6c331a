// ref.Pool: max, average and Lp pooling over any number of spatial axes, any dtype and strides.
// ints: [kind (0 max, 1 average, 2 average that counts padding, 3 Lp), storage_order, p, k[], stride[],
// dilation[], pad_begin[], pad_end[]]. in: x [N, C, spatial]. out: y, and for max i64 indices or absent.
// A window with nothing inside gives the lowest number (max), 0 (Lp) or NaN (average).
#include "kernels/reference/window.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kName = "ref.Pool";
enum Kind : int64_t { kMax = 0, kAverage = 1, kAverageWithPad = 2, kLp = 3 };

Window window(const Call& c) {
  Window w;
  w.rank = c.in[0].rank - 2;
  w.k = c.ints.data() + 3;
  w.stride = w.k + w.rank, w.dilation = w.stride + w.rank;
  w.pad = w.dilation + w.rank, w.pad_end = w.pad + w.rank;
  return w;
}

int64_t chunks(const Call& c) {
  return cut(c.out[0].count(), 8.0 * static_cast<double>(std::max<int64_t>(window(c).taps(), 1)));
}

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 3));
  const View &x = c.in[0], &y = c.out[0];
  if (c.ints[0] < kMax || c.ints[0] > kLp) return bad(kName, format("unknown kind {}", c.ints[0]));
  if (!(c.ints[0] == kMax ? plain_numeric(x.dtype) : plain_float(x.dtype)) || y.dtype != x.dtype)
    return bad(kName, "wrong types");
  if (x.rank < 2 || y.rank != x.rank) return bad(kName, "operands of different rank");
  // A global pool over an empty plane has windows of size 0.
  GE_RETURN_IF_ERROR(check_numbers(c, kName, 3, x.rank - 2, {0, 1, 1, 0, 0}));
  if (x.dims[0] != y.dims[0] || x.dims[1] != y.dims[1]) return bad(kName, "batch or channels differ");
  double taps = 1;
  for (int a = 2; a < x.rank; ++a) {
    if (x.dims[a] > kMaxWindowNumber || y.dims[a] > kMaxWindowNumber) return bad(kName, "a size is out of range");
    taps *= static_cast<double>(c.ints[3 + static_cast<size_t>(a) - 2]);
  }
  if (taps > 0x1p46) return bad(kName, "the window is too large");
  if (c.ints[0] == kLp && c.ints[2] < 1) return bad(kName, "p must be positive");
  if (wanted(c, 1) && (c.ints[0] != kMax || c.out[1].dtype != DType::i64 || !same_dims(c.out[1], y)))
    return bad(kName, "the indices must be i64 of the output's shape");
  Work w;
  w.chunks = chunks(c);
  return w;
}

// Elements of a window of axis `a` before the end of the padded input.
int64_t padded(const View& x, const Window& w, int a, int64_t o) {
  int64_t room = x.dims[a + 2] + w.pad_end[a] - (o * w.stride[a] - w.pad[a]);
  return room <= 0 ? 0 : std::min((room + w.dilation[a] - 1) / w.dilation[a], w.k[a]);
}

struct Pooled {
  double sum = 0;          // of x or |x|^p
  int64_t count = 0;       // of elements inside
  double best = 0;         // max, as a number
  int64_t best_bits = 0;   // max of integers
  int64_t best_index = 0;  // in the numbering of the indices
};

void visit(const Call& c, const Window& w, const int64_t* index, Pooled& p) {
  const View& x = c.in[0];
  bool integer = !is_float(x.dtype);
  int64_t base = index[0] * x.strides[0] + index[1] * x.strides[1], tap[kMaxRank] = {};
  if (w.taps() == 0) return;
  do {
    int64_t at = base, row_major = 0, column_major = 0, step = 1;
    bool inside = true;
    for (int a = 0; inside && a < w.rank; ++a) {
      int64_t i = w.at(a, index[a + 2], tap[a]), d = x.dims[a + 2];
      inside = i >= 0 && i < d;
      at += i * x.strides[a + 2];
      row_major = row_major * d + i, column_major += i * step, step *= d;
    }
    if (!inside) continue;
    double v = load(x, at);
    bool better;
    if (integer) {
      int64_t n = load_int(x, at);
      better = !p.count || (x.dtype == DType::u64 ? static_cast<uint64_t>(n) > static_cast<uint64_t>(p.best_bits) : n > p.best_bits);
      if (better) p.best_bits = n;
    } else {
      better = !p.count || v > p.best || (v != v && p.best == p.best);
    }
    if (better) p.best = v, p.best_index = c.ints[1] == 1 ? column_major : row_major;
    ++p.count;
    p.sum += c.ints[0] == kLp ? std::pow(std::fabs(v), static_cast<double>(c.ints[2])) : v;
  } while (advance(tap, w.k, w.rank));
}

int64_t lowest(DType t) {
  return is_signed(t) ? static_cast<int64_t>(~uint64_t{0} << (bits(t) - 1)) : 0;
}

Status run(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &y = c.out[0];
  Window w = window(c);
  Span s = slice(y.count(), chunk, chunks(c));
  Walker<2> at(y);
  at.follow(0, y);
  if (wanted(c, 1)) at.follow(1, c.out[1]);
  at.seek(s.begin);
  int64_t plane = 1;
  for (int a = 0; a < w.rank; ++a) plane *= x.dims[a + 2];
  for (int64_t i = s.begin; i < s.end; ++i, at.next()) {
    Pooled p;
    visit(c, w, at.index, p);
    if (c.ints[0] == kMax) {
      if (is_float(x.dtype)) store(y, at.offset[0], p.count ? p.best : -std::numeric_limits<double>::infinity());
      else store_int(y, at.offset[0], p.count ? p.best_bits : lowest(x.dtype));
      if (wanted(c, 1))
        c.out[1].as<int64_t>()[at.offset[1]] = (at.index[0] * x.dims[1] + at.index[1]) * plane + p.best_index;
    } else if (c.ints[0] == kLp) {
      store(y, at.offset[0], std::pow(p.sum, 1.0 / static_cast<double>(c.ints[2])));
    } else {
      int64_t n = p.count;
      if (c.ints[0] == kAverageWithPad) {
        n = 1;
        for (int a = 0; a < w.rank; ++a) n *= padded(x, w, a, at.index[a + 2]);
      }
      store(y, at.offset[0], p.sum / static_cast<double>(n));
    }
  }
  return ok();
}

const Register r({.name = kName, .unit = Unit::vector, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::reference
