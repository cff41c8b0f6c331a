#include "kernels/move/resize_taps.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/move/element.h"

namespace ge::kernels::move {
namespace {

float original_coordinate(const ResizeParameters& p, size_t axis, int64_t i, int64_t in, int64_t out, float scale) {
  auto x = static_cast<float>(i), n = static_cast<float>(in), m = static_cast<float>(out);
  switch (p.coordinates) {
    case ResizeCoordinates::half_pixel: return (x + 0.5f) / scale - 0.5f;
    case ResizeCoordinates::half_pixel_symmetric: {
      float adjustment = m / (n * scale), center = n / 2;
      return center * (1 - adjustment) + (x + 0.5f) / scale - 0.5f;
    }
    case ResizeCoordinates::pytorch_half_pixel: return out > 1 ? (x + 0.5f) / scale - 0.5f : 0.0f;
    case ResizeCoordinates::align_corners: {
      // The resized length is scale times the original one, as ONNX defines the scale: a given scale keeps its fraction.
      float length = p.scales[axis] > 0 ? n * scale : m;
      return out == 1 ? 0.0f : x * (n - 1) / (length - 1);
    }
    case ResizeCoordinates::asymmetric: return x / scale;
    case ResizeCoordinates::tf_half_pixel_for_nn: return (x + 0.5f) / scale;
    case ResizeCoordinates::tf_crop_and_resize: break;
  }
  auto start = static_cast<float>(p.roi_start[axis]), end = static_cast<float>(p.roi_end[axis]);
  if (out > 1) return start * (n - 1) + x * (end - start) * (n - 1) / (m - 1);
  return 0.5f * (start + end) * (n - 1);
}

// To a position that surely fits an int64 and still is outside the input where it was.
int64_t whole(float x) { return static_cast<int64_t>(std::clamp(x, -0x1p40f, 0x1p40f)); }

int64_t nearest_position(ResizeNearest mode, float x) {
  switch (mode) {
    case ResizeNearest::round_prefer_floor: return whole(x == std::floor(x) + 0.5f ? std::floor(x) : std::round(x));
    case ResizeNearest::round_prefer_ceil: return whole(x == std::floor(x) + 0.5f ? std::ceil(x) : std::round(x));
    case ResizeNearest::floor: return whole(std::floor(x));
    case ResizeNearest::ceil: return whole(std::ceil(x));
  }
  return 0;
}

// The filter at distance d from the middle.
double filter(ResizeMode mode, double a, double d) {
  d = std::fabs(d);
  if (mode == ResizeMode::linear) return std::max(0.0, 1 - d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

}  // namespace

Status check_resize(const Call& c, std::string_view kernel) {
  GE_RETURN_IF_ERROR(check_call(c, kernel, 1, 1, 1, 1));
  const View &x = c.in[0], &y = c.out[0];
  auto rank = static_cast<size_t>(x.rank);
  if (x.rank != y.rank || x.dtype != y.dtype) return bad_call(kernel, "input and output differ in type or rank");
  if (c.ints.size() < 5 || c.ints[0] < 0 || c.ints[0] > 2 || c.ints[1] < 0 || c.ints[1] > 6 || c.ints[2] < 0 || c.ints[2] > 3)
    return bad_call(kernel, "parameters are wrong");
  size_t lists = c.ints[1] == static_cast<int64_t>(ResizeCoordinates::tf_crop_and_resize) ? 3 : 1;
  if (c.floats.size() < 2 || c.floats.size() - 2 + c.ints.size() - 5 != lists * rank || (c.floats.size() > 2 && c.ints.size() > 5))
    return bad_call(kernel, "has a wrong number of scales");
  ResizeParameters p = resize_parameters(c);
  if (!std::isfinite(c.floats[0]) || !std::isfinite(c.floats[1])) return bad_call(kernel, "a parameter is not a number");
  for (size_t i = 0; i < rank; ++i) {
    if (!std::isfinite(p.scales[i]) || !std::isfinite(p.roi_start[i]) || !std::isfinite(p.roi_end[i])) return bad_call(kernel, "a scale is not a number");
    if (p.scales[i] < 0) return bad_call(kernel, "a scale is negative");
    if (x.dims[i] == 0 && y.dims[i] != 0 && y.count() != 0) return bad_call(kernel, format("{} cannot be stretched to {}: it has no elements", dims_text(x), dims_text(y)));
    // Tables are made of these.
    if (y.dims[i] > (int64_t{1} << 26) || x.dims[i] > (int64_t{1} << 26)) return bad_call(kernel, "an axis is too long");
    if (c.ints[4] != 0 && y.dims[i] > 0 && x.dims[i] > 0) {
      double scale = p.scales[i] > 0 ? p.scales[i] : static_cast<double>(y.dims[i]) / static_cast<double>(x.dims[i]);
      if (static_cast<double>(y.dims[i]) * (4 / std::min(1.0, scale) + 4) > 0x1p28) return bad_call(kernel, "an antialiasing filter is too long");
    }
  }
  bool made = c.ints[0] != static_cast<int64_t>(ResizeMode::nearest) || c.ints[1] == static_cast<int64_t>(ResizeCoordinates::tf_crop_and_resize);
  if (made && !is_number(x.dtype)) return bad_call(kernel, format("cannot interpolate {}", name(x.dtype)));
  return ok();
}

ResizeParameters resize_parameters(const Call& c) {
  auto rank = static_cast<size_t>(c.in[0].rank);
  ResizeParameters p{static_cast<ResizeMode>(c.ints[0]), static_cast<ResizeCoordinates>(c.ints[1]),
                     static_cast<ResizeNearest>(c.ints[2]), c.ints[3] != 0, c.ints[4] != 0,
                     static_cast<float>(c.floats[0]), static_cast<float>(c.floats[1]), {}, {}, {}};
  bool data = c.ints.size() > 5;
  for (size_t i = 0; i < rank; ++i) p.scales[i] = data ? std::bit_cast<double>(c.ints[5 + i]) : c.floats[2 + i];
  auto roi = [&](size_t i) { return data ? double{std::bit_cast<float>(static_cast<uint32_t>(c.ints[5 + i]))} : c.floats[2 + i]; };
  for (size_t i = 0; i < rank && p.coordinates == ResizeCoordinates::tf_crop_and_resize; ++i) p.roi_start[i] = roi(rank + i), p.roi_end[i] = roi(2 * rank + i);
  return p;
}

Taps resize_taps(const ResizeParameters& p, int axis, int64_t in, int64_t out) {
  auto a = static_cast<size_t>(axis);
  Taps t;
  t.out = out;
  bool crop = p.coordinates == ResizeCoordinates::tf_crop_and_resize;
  auto scale = static_cast<float>(p.scales[a]);
  if (scale == 0) scale = static_cast<float>(out) / static_cast<float>(std::max<int64_t>(in, 1));
  t.identity = in == out && (crop ? p.roi_start[a] == 0 && p.roi_end[a] == 1 : scale == 1);
  if (t.identity) {
    for (int64_t i = 0; i < out; ++i) t.index.push_back(i);
    t.weight.assign(static_cast<size_t>(out), 1.0f);
    return t;
  }
  bool nearest = p.mode == ResizeMode::nearest;
  double shrink = p.antialias && !nearest && scale < 1 ? scale : 1;
  auto reach = p.mode == ResizeMode::linear ? 1.0 : 2.0;
  auto half = static_cast<int64_t>(std::ceil(reach / shrink));
  t.per = nearest ? 1 : 2 * half;
  t.index.resize(static_cast<size_t>(out * t.per));
  t.weight.resize(static_cast<size_t>(out * t.per));
  if (crop) t.outside.resize(static_cast<size_t>(out));
  for (int64_t o = 0; o < out; ++o) {
    float x = original_coordinate(p, a, o, in, out, scale);
    if (crop) t.outside[static_cast<size_t>(o)] = x < 0 || x > static_cast<float>(in - 1);
    auto base = static_cast<size_t>(o * t.per);
    if (nearest) {
      t.index[base] = std::clamp<int64_t>(nearest_position(p.nearest, x), 0, in - 1);
      t.weight[base] = 1;
      continue;
    }
    int64_t left = whole(std::floor(x)) - half + 1;
    double total = 0;
    std::vector<double> w(static_cast<size_t>(t.per));
    for (int64_t k = 0; k < t.per; ++k) {
      int64_t at = left + k;
      double v = filter(p.mode, p.cubic_a, (static_cast<double>(at) - x) * shrink);
      if (p.exclude_outside && (at < 0 || at >= in)) v = 0;
      w[static_cast<size_t>(k)] = v;
      total += v;
      t.index[base + static_cast<size_t>(k)] = std::clamp<int64_t>(at, 0, in - 1);
    }
    bool scaled = (p.antialias || p.exclude_outside) && total != 0;
    for (int64_t k = 0; k < t.per; ++k)
      t.weight[base + static_cast<size_t>(k)] = static_cast<float>(w[static_cast<size_t>(k)] / (scaled ? total : 1));
  }
  return t;
}

namespace {

// Sum over the taps of axes [axis, rank).
double sum_taps(const std::vector<Taps>& axes, const View& x, const int64_t* index, int axis, int64_t offset) {
  if (axis == x.rank) return load_f64(x.dtype, x.data + offset * size_of(x.dtype));
  const Taps& t = axes[static_cast<size_t>(axis)];
  double sum = 0;
  for (int64_t k = 0; k < t.per; ++k) {
    float w = t.weight_at(index[axis], k);
    if (w != 0) sum += w * sum_taps(axes, x, index, axis + 1, offset + t.at(index[axis], k) * x.strides[axis]);
  }
  return sum;
}

}  // namespace

void resize_element(const ResizeParameters& p, const std::vector<Taps>& axes, const View& x, const int64_t* index,
                    DType t, std::byte* to) {
  bool outside = false;
  int64_t from = 0;
  for (int i = 0; i < x.rank; ++i) {
    auto& a = axes[static_cast<size_t>(i)];
    outside = outside || (!a.outside.empty() && a.outside[static_cast<size_t>(index[i])]);
    from += a.at(index[i], 0) * x.strides[i];
  }
  if (outside) return store_f64(t, to, p.extrapolation);
  if (p.mode == ResizeMode::nearest) {
    const std::byte* source = x.data + from * size_of(t);
    std::copy(source, source + size_of(t), to);
    return;
  }
  double v = sum_taps(axes, x, index, 0, 0);
  // Images: antialiasing rounds and stays in range, as image libraries do.
  if (p.antialias && is_integer(t) && bits(t) <= 32) {
    double low = is_signed(t) ? -std::ldexp(1.0, bits(t) - 1) : 0;
    v = std::clamp(std::nearbyint(v), low, low + std::ldexp(1.0, bits(t)) - 1);
  }
  store_f64(t, to, v);
}

}  // namespace ge::kernels::move
