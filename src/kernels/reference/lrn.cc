// lrn: local response normalization of f32, vectorised over what lies together: the spatial positions of one
// channel, or the channels of one position. Parameters and operands as ref.LRN.
#include "kernels/reference/access.h"

#define GE_TARGET_BODY "kernels/reference/lrn-inl.h"
#include "kernels/cube/conv_targets.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kName = "lrn";
constexpr int64_t kBlock = 256;

Status check(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1, 3));
  const View &x = c.in[0], &y = c.out[0];
  if (x.dtype != DType::f32 || y.dtype != DType::f32 || !same_dims(x, y) || x.rank < 2) return bad(kName, "takes f32 of two axes or more");
  if (c.ints[0] < 1) return bad(kName, "size must be positive");
  return ok();
}

// Units: channels of a position are done in one go, positions in blocks along the last axis.
struct Shape {
  int64_t channels = 1, width = 1, rows = 1;  // rows: batch and all spatial axes but the last
  int64_t back = 0, forward = 0;
  bool by_channel = false;                    // channels lie together
  int64_t blocks = 1, units = 0;
};

Shape shape_of(const Call& c) {
  const View& x = c.in[0];
  Shape s;
  s.channels = x.dims[1];
  s.width = x.rank > 2 ? x.dim(-1) : 1;
  for (int a = 0; a < x.rank; ++a)
    if (a != 1 && (a == 0 || a + 1 < x.rank)) s.rows *= x.dims[a];
  int64_t size = std::min(c.ints[0], 2 * s.channels + 1);
  s.back = (size - 1) / 2, s.forward = size - 1 - s.back;
  s.by_channel = x.strides[1] == 1 || s.width == 1;
  s.blocks = s.by_channel ? s.width : (s.width + kBlock - 1) / kBlock;
  s.units = s.rows * s.blocks;
  return s;
}

double unit_cost(const Shape& s) {
  double window = static_cast<double>(std::min(s.back + s.forward + 1, s.channels)) + 20;
  return window * static_cast<double>(s.channels) * static_cast<double>(s.by_channel ? 1 : std::min(s.width, kBlock));
}

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check(c));
  Shape s = shape_of(c);
  Work w;
  w.chunks = c.in[0].count() ? cut(s.units, unit_cost(s)) : 0;
  return w;
}

// y = x / scale^beta; the usual 0.75 by two square roots.
void divide(const float* x, int64_t xs, const float* sum, float* y, int64_t ys, int64_t n, float alpha, float beta, float bias) {
  if (beta == 0.75f && xs == 1 && ys == 1) return GE_ON_ISA(lrn_divide)(x, sum, y, n, alpha, bias);
  if (beta == 0.75f) {
    for (int64_t i = 0; i < n; ++i) {
      float root = std::sqrt(bias + alpha * sum[i]);
      y[i * ys] = x[i * xs] / (root * std::sqrt(root));
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) y[i * ys] = x[i * xs] / std::pow(bias + alpha * sum[i], beta);
}

struct Numbers {
  float alpha, beta, bias;
};

// `n` positions xs apart, every channel.
void positions(const Shape& s, const float* x, int64_t xs, int64_t xc, float* y, int64_t ys, int64_t yc, int64_t n, Numbers p) {
  float sum[kBlock];
  for (int64_t ch = 0; ch < s.channels; ++ch) {
    std::fill(sum, sum + n, 0.0f);
    for (int64_t k = std::max<int64_t>(0, ch - s.back); k <= std::min(s.channels - 1, ch + s.forward); ++k) {
      const float* v = x + k * xc;
      if (xs == 1) GE_ON_ISA(lrn_add_squares)(v, sum, n);
      else
        for (int64_t i = 0; i < n; ++i) sum[i] += v[i * xs] * v[i * xs];
    }
    divide(x + ch * xc, xs, sum, y + ch * yc, ys, n, p.alpha, p.beta, p.bias);
  }
}

// One position, blocks of channels.
void channels(const Shape& s, const float* x, int64_t xc, float* y, int64_t yc, Numbers p) {
  float sum[kBlock];
  for (int64_t first = 0; first < s.channels; first += kBlock) {
    int64_t n = std::min(kBlock, s.channels - first);
    std::fill(sum, sum + n, 0.0f);
    for (int64_t k = -s.back; k <= s.forward; ++k) {
      int64_t begin = std::max<int64_t>(0, -(first + k)), end = std::min(n, s.channels - first - k);
      const float* v = x + (first + k) * xc;
      if (xc == 1) GE_ON_ISA(lrn_add_squares)(v + begin, sum + begin, std::max<int64_t>(0, end - begin));
      else
        for (int64_t i = begin; i < end; ++i) sum[i] += v[i * xc] * v[i * xc];
    }
    divide(x + first * xc, xc, sum, y + first * yc, yc, n, p.alpha, p.beta, p.bias);
  }
}

Status run(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &y = c.out[0];
  Shape s = shape_of(c);
  Numbers p{static_cast<float>(c.floats[0] / static_cast<double>(c.ints[0])), static_cast<float>(c.floats[1]), static_cast<float>(c.floats[2])};
  int64_t xs = x.rank > 2 ? x.stride(-1) : 0, ys = x.rank > 2 ? y.stride(-1) : 0;
  Span span = slice(s.units, chunk, cut(s.units, unit_cost(s)));
  for (int64_t u = span.begin; u < span.end; ++u) {
    int64_t row = u / s.blocks, block = u % s.blocks, from = 0, to = 0;
    for (int a = x.rank - (x.rank > 2 ? 2 : 1); a >= 0; --a) {
      if (a == 1) continue;
      from += row % x.dims[a] * x.strides[a], to += row % x.dims[a] * y.strides[a];
      row /= x.dims[a];
    }
    const float* px = x.as<float>() + from;
    float* py = y.as<float>() + to;
    if (s.by_channel) channels(s, px + block * xs, x.strides[1], py + block * ys, y.strides[1], p);
    else
      positions(s, px + block * kBlock * xs, xs, x.strides[1], py + block * kBlock * ys, ys, y.strides[1],
                std::min(kBlock, s.width - block * kBlock), p);
  }
  return ok();
}

const Register r({.name = kName, .unit = Unit::vector, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::reference
