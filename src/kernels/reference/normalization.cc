// Reference kernels of softmax and of the normalizations; any strides, double inside.
//
// ref.Softmax: ints [kind (0 softmax, 1 log, 2 hardmax), first axis, end axis] of the row. in x, out y.
// ref.LayerNormalization: ints [first axis of the row, rms (0 or 1)], floats [epsilon]. in x, scale, bias or
//   absent (both broadcast to x); out y, mean or absent, inverse deviation or absent ([..., 1, 1]).
// ref.BatchNormalization: floats [epsilon]. in x, scale, bias, mean, variance, each [C]; out y.
// ref.BatchStatistics: floats [epsilon, momentum]. in x, scale, bias, mean, variance, each [C]; out y, normalized by
//   the mean and variance (over N) of x itself, and, or absent, the running mean and variance [C].
// ref.GroupNormalization: ints [groups, per_group], floats [epsilon]. in x [N, C, ...], scale, bias [C], or
//   [groups] when per_group is 1; out y.
// ref.LpNormalization: ints [axis, p (1 or 2)]. in x, out y; a row of norm 0 gives 0.
// ref.LRN: ints [size], floats [alpha, beta, bias]. in x [N, C, ...], out y.
#include "kernels/reference/rows.h"

namespace ge::kernels::reference {
namespace {

// One input and one output of the same float type and shape, of rank at least `rank`.
Status check_pair(const Call& c, std::string_view kernel, int rank, size_t inputs, size_t ints, size_t floats) {
  GE_RETURN_IF_ERROR(check_call(c, kernel, inputs, 1, ints, floats));
  const View &x = c.in[0], &y = c.out[0];
  if (!plain_float(x.dtype) || y.dtype != x.dtype || !same_dims(x, y)) return bad(kernel, "output unlike the input");
  if (x.rank < rank) return bad(kernel, "too few axes");
  return ok();
}

int64_t row_chunks(const Rows<1>& r) {
  return cut(r.outer_count(), 20.0 * static_cast<double>(std::max<int64_t>(r.row_count(), 1)));
}

// --- softmax ---

Rows<1> softmax_space(const Call& c) {
  return Rows<1>(c.out[0], axes_from(static_cast<int>(c.ints[1]), static_cast<int>(c.ints[2])));
}

Result<Work> prepare_softmax(const Call& c) {
  constexpr std::string_view kName = "ref.Softmax";
  GE_RETURN_IF_ERROR(check_pair(c, kName, 0, 1, 3, 0));
  if (c.ints[0] < 0 || c.ints[0] > 2) return bad(kName, "unknown kind");
  if (c.ints[1] < 0 || c.ints[1] > c.ints[2] || c.ints[2] > c.in[0].rank) return bad(kName, "axes out of range");
  Work w;
  w.chunks = c.out[0].count() ? row_chunks(softmax_space(c)) : 0;
  return w;
}

Status run_softmax(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &y = c.out[0];
  Rows<2> r(y, axes_from(static_cast<int>(c.ints[1]), static_cast<int>(c.ints[2])));
  r.follow(0, x), r.follow(1, y);
  Span s = slice(r.outer_count(), chunk, row_chunks(softmax_space(c)));
  r.outer.seek(s.begin);
  for (int64_t o = s.begin; o < s.end; ++o, r.outer.next()) {
    double best = -std::numeric_limits<double>::infinity(), sum = 0;
    int64_t where = 0;
    r.each([&](int64_t i, const int64_t* at) {
      double v = load(x, at[0]);
      if (v > best || (v != v && best == best)) best = v, where = i;
    });
    if (c.ints[0] != 2) r.each([&](int64_t, const int64_t* at) { sum += std::exp(load(x, at[0]) - best); });
    r.each([&](int64_t i, const int64_t* at) {
      double v = c.ints[0] == 2 ? i == where
                 : c.ints[0] == 1 ? load(x, at[0]) - best - std::log(sum)
                                  : std::exp(load(x, at[0]) - best) / sum;
      store(y, at[1], v);
    });
  }
  return ok();
}

// --- layer and rms normalization ---

Result<Work> prepare_layer(const Call& c) {
  constexpr std::string_view kName = "ref.LayerNormalization";
  GE_RETURN_IF_ERROR(check_pair(c, kName, 0, 2, 2, 1));
  const View& x = c.in[0];
  if (c.ints[0] < 0 || c.ints[0] > x.rank) return bad(kName, "axis out of range");
  for (size_t i = 1; i < std::min<size_t>(c.in.size(), 3); ++i)
    if (present(c, i) && (!plain_float(c.in[i].dtype) || !broadcasts_to(c.in[i], x)))
      return bad(kName, "scale or bias does not broadcast to the input");
  for (size_t i = 1; i < std::min<size_t>(c.out.size(), 3); ++i) {
    if (!wanted(c, i)) continue;
    const View& o = c.out[i];
    bool good = plain_float(o.dtype) && o.rank == x.rank;
    for (int a = 0; good && a < x.rank; ++a) good = o.dims[a] == (a < c.ints[0] ? x.dims[a] : 1);
    if (!good) return bad(kName, "a statistic has the wrong shape");
  }
  Work w;
  w.chunks = row_chunks(Rows<1>(c.out[0], axes_from(static_cast<int>(c.ints[0]), x.rank)));
  return w;
}

Status run_layer(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &y = c.out[0];
  uint32_t axes = axes_from(static_cast<int>(c.ints[0]), x.rank);
  Rows<6> r(y, axes);
  r.follow(0, x), r.follow(1, y), r.follow(2, c.in[1]);
  if (present(c, 2)) r.follow(3, c.in[2]);
  for (size_t i = 1; i < 3; ++i)
    if (wanted(c, i)) r.follow(static_cast<int>(i) + 3, c.out[i]);
  Span s = slice(r.outer_count(), chunk, row_chunks(Rows<1>(y, axes)));
  double n = static_cast<double>(r.row_count());
  bool rms = c.ints[1] != 0;
  r.outer.seek(s.begin);
  for (int64_t o = s.begin; o < s.end; ++o, r.outer.next()) {
    double mean = 0, square = 0;
    if (!rms) r.each([&](int64_t, const int64_t* at) { mean += load(x, at[0]); });
    mean /= n;
    r.each([&](int64_t, const int64_t* at) {
      double d = load(x, at[0]) - mean;
      square += d * d;
    });
    double inverse = 1 / std::sqrt(square / n + c.floats[0]);
    r.each([&](int64_t, const int64_t* at) {
      double v = (load(x, at[0]) - mean) * inverse * load(c.in[1], at[2]);
      if (present(c, 2)) v += load(c.in[2], at[3]);
      store(y, at[1], v);
    });
    if (wanted(c, 1)) store(c.out[1], r.outer.offset[4], mean);
    if (wanted(c, 2)) store(c.out[2], r.outer.offset[5], inverse);
  }
  return ok();
}

// --- batch normalization ---

Result<Work> prepare_batch(const Call& c) {
  constexpr std::string_view kName = "ref.BatchNormalization";
  GE_RETURN_IF_ERROR(check_pair(c, kName, 1, 5, 0, 1));
  int64_t channels = c.in[0].rank > 1 ? c.in[0].dims[1] : 1;
  for (size_t i = 1; i < 5; ++i)
    if (!plain_float(c.in[i].dtype) || c.in[i].rank != 1 || c.in[i].dims[0] != channels)
      return bad(kName, format("input {} must have one number for each channel", i));
  Work w;
  w.chunks = cut(c.out[0].count(), 40);
  return w;
}

Status run_batch(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &y = c.out[0];
  Walker<2> at(y);
  at.follow(0, x), at.follow(1, y);
  Span s = slice(y.count(), chunk, cut(y.count(), 40));
  at.seek(s.begin);
  for (int64_t i = s.begin; i < s.end; ++i, at.next()) {
    int64_t ch = x.rank > 1 ? at.index[1] : 0;
    auto p = [&](size_t k) { return load(c.in[k], ch * c.in[k].strides[0]); };
    store(y, at.offset[1], (load(x, at.offset[0]) - p(3)) / std::sqrt(p(4) + c.floats[0]) * p(1) + p(2));
  }
  return ok();
}

// --- batch normalization by the batch's own statistics (training_mode = 1) ---

int64_t statistics_chunks(const Call& c) {
  const int64_t channels = c.in[1].dims[0];
  return cut(channels, 40.0 * (1 + static_cast<double>(c.out[0].count()) / static_cast<double>(std::max<int64_t>(channels, 1))));
}

Result<Work> prepare_statistics(const Call& c) {
  constexpr std::string_view kName = "ref.BatchStatistics";
  if (c.floats.size() < 2) return bad(kName, "too few parameters");
  GE_TRY(Work w, prepare_batch(c));
  const int64_t channels = c.in[1].dims[0];
  for (size_t i = 1; i < c.out.size(); ++i)
    if (wanted(c, i) && (!plain_float(c.out[i].dtype) || c.out[i].rank != 1 || c.out[i].dims[0] != channels))
      return bad(kName, format("output {} must have one number for each channel", i));
  w.chunks = statistics_chunks(c);
  return w;
}

Status run_statistics(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &y = c.out[0];
  const int64_t channels = c.in[1].dims[0];
  Rows<2> r(y, x.rank > 1 ? axes_from(0, x.rank) & ~2u : axes_from(0, x.rank));
  r.follow(0, x), r.follow(1, y);
  const double n = static_cast<double>(r.row_count());
  Span s = slice(channels, chunk, statistics_chunks(c));
  r.outer.seek(s.begin);
  for (int64_t ch = s.begin; ch < s.end; ++ch, r.outer.next()) {
    double mean = 0, square = 0;
    r.each([&](int64_t, const int64_t* at) { mean += load(x, at[0]); });
    mean /= n;
    r.each([&](int64_t, const int64_t* at) { square += (load(x, at[0]) - mean) * (load(x, at[0]) - mean); });
    const double variance = square / n;
    auto p = [&](size_t k) { return load(c.in[k], ch * c.in[k].strides[0]); };
    const double factor = p(1) / std::sqrt(variance + c.floats[0]);
    r.each([&](int64_t, const int64_t* at) { store(y, at[1], (load(x, at[0]) - mean) * factor + p(2)); });
    auto running = [&](size_t k, double old, double now) {
      if (wanted(c, k)) store(c.out[k], ch * c.out[k].strides[0], old * c.floats[1] + now * (1 - c.floats[1]));
    };
    running(1, p(3), mean), running(2, p(4), variance);
  }
  return ok();
}

// --- group and instance normalization ---

Result<Work> prepare_group(const Call& c) {
  constexpr std::string_view kName = "ref.GroupNormalization";
  GE_RETURN_IF_ERROR(check_pair(c, kName, 2, 3, 2, 1));
  int64_t channels = c.in[0].dims[1], groups = c.ints[0];
  if (groups < 1 || channels % groups) return bad(kName, "the channels cannot be divided into the groups");
  for (size_t i = 1; i < 3; ++i)
    if (!plain_float(c.in[i].dtype) || c.in[i].rank != 1 || c.in[i].dims[0] != (c.ints[1] ? groups : channels))
      return bad(kName, "wrong size of scale or bias");
  Work w;
  w.chunks = c.out[0].count() ? std::min<int64_t>(c.in[0].dims[0] * groups, 128) : 0;
  return w;
}

Status run_group(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &y = c.out[0];
  int64_t groups = c.ints[0], size = x.dims[1] / groups, units = x.dims[0] * groups;
  Span s = slice(units, chunk, std::min<int64_t>(units, 128));
  for (int64_t u = s.begin; u < s.end; ++u) {
    int64_t n = u / groups, first = u % groups * size;
    int64_t dims[kMaxRank];
    std::copy(x.dims, x.dims + x.rank, dims);
    dims[0] = 1, dims[1] = size;
    View part{x.data, x.dtype, x.rank, dims, x.strides};
    Walker<2> at(part);
    for (int a = 0; a < x.rank; ++a) at.strides[0][a] = x.strides[a], at.strides[1][a] = y.strides[a];
    int64_t x0 = n * x.strides[0] + first * x.strides[1], y0 = n * y.strides[0] + first * y.strides[1];
    auto each = [&](auto f) {
      at.seek(0);
      for (int64_t i = 0, count = at.count(); i < count; ++i, at.next()) f(x0 + at.offset[0], y0 + at.offset[1]);
    };
    double count = static_cast<double>(at.count()), mean = 0, square = 0;
    each([&](int64_t ix, int64_t) { mean += load(x, ix); });
    mean /= count;
    each([&](int64_t ix, int64_t) { square += (load(x, ix) - mean) * (load(x, ix) - mean); });
    double inverse = 1 / std::sqrt(square / count + c.floats[0]);
    each([&](int64_t ix, int64_t iy) {
      int64_t k = c.ints[1] ? u % groups : first + at.index[1];
      store(y, iy, (load(x, ix) - mean) * inverse * load(c.in[1], k * c.in[1].strides[0]) + load(c.in[2], k * c.in[2].strides[0]));
    });
  }
  return ok();
}

// --- lp normalization ---

Result<Work> prepare_lp(const Call& c) {
  constexpr std::string_view kName = "ref.LpNormalization";
  GE_RETURN_IF_ERROR(check_pair(c, kName, 1, 1, 2, 0));
  if (c.ints[0] < 0 || c.ints[0] >= c.in[0].rank) return bad(kName, "axis out of range");
  if (c.ints[1] != 1 && c.ints[1] != 2) return bad(kName, "p is neither 1 nor 2");
  Work w;
  int axis = static_cast<int>(c.ints[0]);
  w.chunks = c.out[0].count() ? row_chunks(Rows<1>(c.out[0], 1u << axis)) : 0;
  return w;
}

Status run_lp(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &y = c.out[0];
  uint32_t axes = 1u << c.ints[0];
  Rows<2> r(y, axes);
  r.follow(0, x), r.follow(1, y);
  Span s = slice(r.outer_count(), chunk, row_chunks(Rows<1>(y, axes)));
  r.outer.seek(s.begin);
  for (int64_t o = s.begin; o < s.end; ++o, r.outer.next()) {
    double norm = 0;
    r.each([&](int64_t, const int64_t* at) {
      double v = load(x, at[0]);
      norm += c.ints[1] == 1 ? std::fabs(v) : v * v;
    });
    if (c.ints[1] == 2) norm = std::sqrt(norm);
    r.each([&](int64_t, const int64_t* at) { store(y, at[1], norm == 0 ? 0 : load(x, at[0]) / norm); });
  }
  return ok();
}

// --- local response normalization ---

Result<Work> prepare_lrn(const Call& c) {
  constexpr std::string_view kName = "ref.LRN";
  GE_RETURN_IF_ERROR(check_pair(c, kName, 2, 1, 1, 3));
  if (c.ints[0] < 1) return bad(kName, "size must be positive");
  Work w;
  double window = static_cast<double>(std::min(c.ints[0], c.in[0].dims[1]));
  w.chunks = cut(c.out[0].count(), 40 + 3 * window);
  return w;
}

Status run_lrn(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &y = c.out[0];
  int64_t size = std::min(c.ints[0], 2 * x.dims[1] + 1), channels = x.dims[1];
  // Windows reach half a size back and the rest forward; a longer window covers every channel.
  int64_t back = (size - 1) / 2, forward = size - 1 - back;
  Walker<2> at(y);
  at.follow(0, x), at.follow(1, y);
  double window = static_cast<double>(std::min(c.ints[0], channels));
  Span s = slice(y.count(), chunk, cut(y.count(), 40 + 3 * window));
  at.seek(s.begin);
  for (int64_t i = s.begin; i < s.end; ++i, at.next()) {
    int64_t ch = at.index[1], step = channels == 1 ? 0 : x.strides[1];
    double sum = 0;
    for (int64_t k = std::max<int64_t>(0, ch - back); k <= std::min(channels - 1, ch + forward); ++k) {
      double v = load(x, at.offset[0] + (k - ch) * step);
      sum += v * v;
    }
    double scale = c.floats[2] + c.floats[0] / static_cast<double>(c.ints[0]) * sum;
    store(y, at.offset[1], load(x, at.offset[0]) / std::pow(scale, c.floats[1]));
  }
  return ok();
}

const Register r1({.name = "ref.Softmax", .unit = Unit::vector, .prepare = prepare_softmax, .run = run_softmax});
const Register r2({.name = "ref.LayerNormalization", .unit = Unit::vector, .prepare = prepare_layer, .run = run_layer});
const Register r3({.name = "ref.BatchNormalization", .unit = Unit::vector, .prepare = prepare_batch, .run = run_batch});
const Register r7({.name = "ref.BatchStatistics", .unit = Unit::vector, .prepare = prepare_statistics, .run = run_statistics});
const Register r4({.name = "ref.GroupNormalization", .unit = Unit::vector, .prepare = prepare_group, .run = run_group});
const Register r5({.name = "ref.LpNormalization", .unit = Unit::vector, .prepare = prepare_lp, .run = run_lp});
const Register r6({.name = "ref.LRN", .unit = Unit::vector, .prepare = prepare_lrn, .run = run_lrn});

}  // namespace
}  // namespace ge::kernels::reference
