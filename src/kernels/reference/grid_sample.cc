// ref.GridSample: in [x [N, C, d...], grid [N, o..., r]], out [N, C, o...], with r = 1 to 3 spatial axes; the last
// axis of the grid names the innermost axis first. ints [mode, padding, align_corners]; mode 0 nearest, 1 linear,
// 2 cubic; padding 0 zeros, 1 border, 2 reflection. In double. A coordinate that is NaN gives NaN, except nearest
// (the first element, or 0 with zeros).
#include "kernels/reference/place.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kName = "ref.GridSample";
enum : int64_t { kNearest = 0, kLinear = 1, kCubic = 2 };
enum : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };
constexpr int kMaxAxes = 3;

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 2, 1, 3));
  const View &x = c.in[0], &g = c.in[1], &y = c.out[0];
  if ((!plain_numeric(x.dtype) && !is_complex(x.dtype)) || y.dtype != x.dtype || !plain_float(g.dtype)) return bad(kName, "wrong types");
  int r = x.rank - 2;
  if (r < 1 || r > kMaxAxes || g.rank != x.rank || y.rank != x.rank) return bad(kName, "wrong ranks");
  bool fits = g.dims[0] == x.dims[0] && y.dims[0] == x.dims[0] && y.dims[1] == x.dims[1] && g.dims[r + 1] == r;
  for (int a = 0; a < r; ++a) fits = fits && y.dims[a + 2] == g.dims[a + 1];
  if (!fits) return bad(kName, "grid and output do not fit the input");
  if (c.ints[0] < kNearest || c.ints[0] > kCubic || c.ints[1] < kZeros || c.ints[1] > kReflection) return bad(kName, "unknown mode");
  if (y.count() && count_axes(x, 2, x.rank) == 0) return bad(kName, "cannot sample an empty input");
  Work w;
  w.chunks = y.count() ? cut(y.dims[0] * count_axes(y, 2, y.rank), 60.0 * static_cast<double>(y.dims[1] + 1)) : 0;
  return w;
}

// Mirrored at low and high until it lies between them.
double reflect(double x, double low, double high) {
  double range = high - low;
  if (!(range > 0)) return low;
  double d = std::fmod(std::fabs(x - low), 2 * range);
  return low + (d > range ? 2 * range - d : d);
}

// Up to 4 indices along an axis with their weights; index -1 reads 0.
struct Taps {
  int count = 0;
  int64_t index[4];
  double weight[4];
};

int64_t inside(double i, int64_t size, int64_t padding, double low, double high) {
  if (i >= 0 && i < static_cast<double>(size)) return static_cast<int64_t>(i);
  if (padding == kZeros) return -1;
  return clamp_int(padding == kReflection ? reflect(i, low, high) : i, 0, size - 1);
}

Taps taps_at(double g, int64_t size, const Call& c) {
  int64_t mode = c.ints[0], padding = c.ints[1];
  bool align = c.ints[2] != 0;
  double n = static_cast<double>(size), low = align ? 0 : -0.5, high = align ? n - 1 : n - 0.5;
  double x = align ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2;
  if (mode == kNearest) x = std::nearbyint(x);
  if (x < low || x > high) {
    // Cubic: each tap is clamped, not the place, as the frameworks have it that models come from.
    if (padding == kBorder && mode != kCubic) x = std::clamp(x, 0.0, n - 1);
    else if (padding == kReflection) x = reflect(x, low, high);
  }
  Taps t;
  auto add = [&](double i, double weight) {
    t.index[t.count] = inside(i, size, padding, low, high);
    t.weight[t.count++] = weight;
  };
  if (mode == kNearest) {
    add(x, 1);
    return t;
  }
  double first = std::floor(x), f = x - first;
  if (mode == kLinear) {
    add(first, 1 - f), add(first + 1, f);
    return t;
  }
  constexpr double kA = -0.75;
  auto far = [&](double d) { return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA; };
  auto near = [&](double d) { return ((kA + 2) * d - (kA + 3)) * d * d + 1; };
  add(first - 1, far(f + 1)), add(first, near(f)), add(first + 1, near(1 - f)), add(first + 2, far(2 - f));
  return t;
}

// Sum over the product of the axes' taps.
double sample(const View& x, int64_t from, const Taps* taps, int axis, int axes) {
  if (axis >= std::min(axes, kMaxAxes)) return load(x, from);
  double sum = 0;
  for (int i = 0; i < taps[axis].count; ++i) {
    double w = taps[axis].weight[i];
    // NaN weights must reach the result.
    double v = taps[axis].index[i] < 0 ? 0 : sample(x, from + taps[axis].index[i] * x.strides[axis + 2], taps, axis + 1, axes);
    sum += taps[axis].count == 1 ? v : w * v;
  }
  return sum;
}

Status run_plain(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &g = c.in[1], &y = c.out[0];
  int r = std::min(x.rank - 2, kMaxAxes);
  int64_t positions = count_axes(y, 2, y.rank), units = y.dims[0] * positions;
  Span s = slice(units, chunk, cut(units, 60.0 * static_cast<double>(y.dims[1] + 1)));
  for (int64_t u = s.begin; u < s.end; ++u) {
    int64_t n = u / positions, p = u % positions;
    int64_t at = n * g.strides[0] + place_linear(g, 1, r + 1, p);
    int64_t to = n * y.strides[0] + place_linear(y, 2, y.rank, p);
    Taps taps[kMaxAxes];
    for (int a = 0; a < r; ++a) taps[a] = taps_at(load(g, at + (r - 1 - a) * g.strides[r + 1]), x.dims[a + 2], c);
    for (int64_t ch = 0; ch < y.dims[1]; ++ch)
      store(y, to + ch * y.strides[1], sample(x, n * x.strides[0] + ch * x.strides[1], taps, 0, r));
  }
  return ok();
}

Status run(const Call& c, int64_t chunk) {
  if (!is_complex(c.in[0].dtype)) return run_plain(c, chunk);
  for (int i = 0; i < 2; ++i) {
    Part x(c.in[0], i), y(c.out[0], i);
    const View in[] = {x.view, c.in[1]}, out[] = {y.view};
    GE_RETURN_IF_ERROR(run_plain(Call{in, out, c.ints, c.floats, c.blob}, chunk));
  }
  return ok();
}

const Register registered({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::reference
