// Random numbers by a counter: element i of a stream is a hash of (seed, stream, i), so that any part of a tensor can
// be made on its own and the same seed gives the same numbers on every machine and for any number of threads.
// floats [seed, a, b], ints [kind, stream].
// ref.Random: out any shape; kind 0 uniform in [a, b), 1 normal with mean a and deviation b. No inputs.
// ref.Bernoulli: in probabilities, out of the same shape: 1 with that probability.
// ref.Dropout: ints [seed]. in x, ratio in [0, 1) or absent (0.5), training (one boolean); out y or absent, mask or
//   absent. Elements are dropped where the Mersenne Twister MT19937 of that seed, read as 53-bit numbers in row-major
//   order (as numpy's RandomState does), is below the ratio; the others are divided by 1 - ratio.
// ref.Multinomial: in [N, classes] unnormalized log probabilities, out [N, samples] of i32 or i64.
#include <bit>
#include <numbers>
#include <random>

#include "kernels/move/element.h"
#include "kernels/reference/place.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kRandom = "ref.Random", kBernoulli = "ref.Bernoulli", kMultinomial = "ref.Multinomial";

uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

struct Stream {
  uint64_t key;
  explicit Stream(const Call& c)
      : key(mix(mix(std::bit_cast<uint64_t>(c.floats[0])) ^ static_cast<uint64_t>(c.ints[1]))) {}
  // In [0, 1), of 53 bits.
  double uniform(uint64_t i) const { return static_cast<double>(mix(key ^ mix(i)) >> 11) * 0x1p-53; }
  // The logarithm needs (0, 1].
  double normal(uint64_t i) const {
    return std::sqrt(-2 * std::log(1 - uniform(2 * i))) * std::cos(2 * std::numbers::pi * uniform(2 * i + 1));
  }
};

Result<Work> elements(const View& y) {
  Work w;
  w.chunks = cut(y.count(), 50);
  return w;
}

Result<Work> prepare_random(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kRandom, 0, 1, 2, 3));
  if (!plain_float(c.out[0].dtype) || c.ints[0] < 0 || c.ints[0] > 1) return bad(kRandom, "wrong output or kind");
  return elements(c.out[0]);
}
// A number below b even where rounding to the type would give b.
double below(double v, double b, DType t) {
  double ulps = t == DType::f64 ? 0 : t == DType::f32 ? 0x1p-24 : t == DType::f16 ? 0x1p-11 : 0x1p-8;
  return std::min(v, b - std::fabs(b) * ulps);
}
Status run_random(const Call& c, int64_t chunk) {
  const View& y = c.out[0];
  Stream stream(c);
  double a = c.floats[1], b = c.floats[2];
  Span s = slice(y.count(), chunk, cut(y.count(), 50));
  for (int64_t i = s.begin; i < s.end; ++i) {
    auto at = static_cast<uint64_t>(i);
    double v = c.ints[0] ? a + b * stream.normal(at) : a < b ? below(a + (b - a) * stream.uniform(at), b, y.dtype) : a;
    store(y, place_linear(y, 0, y.rank, i), v);
  }
  return ok();
}

Result<Work> prepare_bernoulli(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kBernoulli, 1, 1, 2, 1));
  if (!plain_float(c.in[0].dtype) || !plain_numeric(c.out[0].dtype) || !same_dims(c.in[0], c.out[0])) return bad(kBernoulli, "wrong types or sizes");
  return elements(c.out[0]);
}
Status run_bernoulli(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &y = c.out[0];
  Stream stream(c);
  Span s = slice(y.count(), chunk, cut(y.count(), 50));
  for (int64_t i = s.begin; i < s.end; ++i)
    store(y, place_linear(y, 0, y.rank, i), stream.uniform(static_cast<uint64_t>(i)) < load(x, place_linear(x, 0, x.rank, i)));
  return ok();
}

Result<Work> prepare_multinomial(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kMultinomial, 1, 1, 2, 1));
  const View &x = c.in[0], &y = c.out[0];
  if (!plain_float(x.dtype) || (y.dtype != DType::i32 && y.dtype != DType::i64)) return bad(kMultinomial, "wrong types");
  if (x.rank != 2 || y.rank != 2 || x.dims[0] != y.dims[0]) return bad(kMultinomial, "wrong shapes");
  if (x.dims[1] == 0 && y.count()) return bad(kMultinomial, "there are no classes");
  Work w;
  w.chunks = y.count() ? std::min<int64_t>(y.dims[0], 128) : 0;
  return w;
}
Status run_multinomial(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &y = c.out[0];
  Stream stream(c);
  int64_t classes = x.dims[1];
  Span s = slice(y.dims[0], chunk, std::min<int64_t>(y.dims[0], 128));
  for (int64_t n = s.begin; n < s.end; ++n) {
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t k = 0; k < classes; ++k) top = std::max(top, load(x, place(x, n, k)));
    auto weight = [&](int64_t k) { return std::exp(load(x, place(x, n, k)) - top); };
    for (int64_t k = 0; k < classes; ++k) sum += weight(k);
    if (!(sum > 0)) return error(code::kRunFailed, format("Multinomial: row {} holds no probabilities", n));
    for (int64_t i = 0; i < y.dims[1]; ++i) {
      double left = stream.uniform(static_cast<uint64_t>(n * y.dims[1] + i)) * sum;
      // Rounding may leave a rest after the last class that can be drawn.
      int64_t drawn = 0;
      for (int64_t k = 0; k < classes; ++k) {
        double w = weight(k);
        if (w > 0) drawn = k;
        if ((left -= w) < 0) break;
      }
      store_int(y, place(y, n, i), drawn);
    }
  }
  return ok();
}

// The generator's numbers come one after another, so this is one chunk.
Result<Work> prepare_dropout(const Call& c) {
  constexpr std::string_view kName = "ref.Dropout";
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 0, 1, 0));
  auto is_scalar = [&](size_t i) { return present(c, i) && c.in[i].count() == 1 && move::is_number(c.in[i].dtype); };
  if (!is_float(c.in[0].dtype) || c.in.size() < 3 || !is_scalar(2) || (present(c, 1) && !is_scalar(1)) || c.out.size() < 2)
    return bad(kName, "wrong operands");
  if ((wanted(c, 0) && (c.out[0].dtype != c.in[0].dtype || !same_dims(c.in[0], c.out[0]))) ||
      (wanted(c, 1) && (c.out[1].dtype != DType::boolean || !same_dims(c.in[0], c.out[1]))))
    return bad(kName, "outputs unlike the input");
  Work w;
  w.chunks = c.in[0].count() ? 1 : 0;
  return w;
}
Status run_dropout(const Call& c, int64_t) {
  const View& x = c.in[0];
  auto number = [](const View& v, int64_t at) { return move::load_f64(v.dtype, v.data + at * size_of(v.dtype)); };
  const bool training = number(c.in[2], 0) != 0;
  const double ratio = !training ? 0 : present(c, 1) ? number(c.in[1], 0) : 0.5;
  if (!(ratio >= 0 && ratio < 1)) return error(code::kRunFailed, format("Dropout: the ratio {} is not in [0, 1)", ratio));
  std::mt19937 twister(static_cast<uint32_t>(c.ints[0]));
  auto uniform = [&] {
    const uint32_t high = twister() >> 5, low = twister() >> 6;
    return (high * 67108864.0 + low) * 0x1p-53;
  };
  const double scale = 1 / (1 - ratio);
  for (int64_t i = 0, n = x.count(); i < n; ++i) {
    const bool kept = ratio == 0 || uniform() >= ratio;
    if (wanted(c, 0)) move::store_f64(x.dtype, c.out[0].data + place_linear(c.out[0], 0, x.rank, i) * size_of(x.dtype), kept ? number(x, place_linear(x, 0, x.rank, i)) * scale : 0);
    if (wanted(c, 1)) store(c.out[1], place_linear(c.out[1], 0, x.rank, i), kept);
  }
  return ok();
}

const Register r4({.name = "ref.Dropout", .prepare = prepare_dropout, .run = run_dropout});
const Register r1({.name = kRandom, .prepare = prepare_random, .run = run_random});
const Register r2({.name = kBernoulli, .prepare = prepare_bernoulli, .run = run_bernoulli});
const Register r3({.name = kMultinomial, .prepare = prepare_multinomial, .run = run_multinomial});

}  // namespace
}  // namespace ge::kernels::reference
