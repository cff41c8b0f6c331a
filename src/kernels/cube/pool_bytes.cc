// vector.max_bytes: max pooling of u8 or i8, any strides; fast for channels-last. Outside of the input nothing
// is the largest; a window that sees nothing gives the smallest value.
// ints: [rank, 0, k[rank], stride[rank], dilation[rank], pad_begin[rank], pad_end[rank]], as of vector.pool.
#include <algorithm>
#include <limits>

#include "base/text.h"
#include "kernels/cube/conv_shape.h"

namespace ge::kernels::cube {
namespace {

constexpr std::string_view kName = "vector.max_bytes";

int64_t chunks(const ConvShape& s) {
  return chunk_count(s.out_rows(), static_cast<double>(s.out[2]) * static_cast<double>(s.taps()) * (static_cast<double>(s.c) / 16 + 4));
}

Result<Work> prepare(const Call& call) {
  if (call.in.size() != 1 || call.out.size() != 1) return error(code::kBadOp, format("{}: takes 1 input and 1 output", kName));
  View x = call.in[0], y = call.out[0];
  if ((x.dtype != DType::u8 && x.dtype != DType::i8) || y.dtype != x.dtype) return error(code::kBadOp, format("{}: takes bytes", kName));
  // The checks of the f32 kernels are about sizes, which count elements.
  x.dtype = y.dtype = DType::f32;
  Call sizes = call;
  sizes.in = {&x, 1}, sizes.out = {&y, 1};
  GE_TRY(ConvShape s, pool_shape(sizes, kName));
  Work w;
  w.chunks = s.empty() ? 0 : chunks(s);
  return w;
}

template <class T>
void larger(T* y, int64_t y_step, const T* x, int64_t x_step, int64_t n) {
  if (y_step == 1 && x_step == 1) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] > y[i] ? x[i] : y[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i * y_step] = std::max(y[i * y_step], x[i * x_step]);
  }
}

template <class T>
void pool_row(const ConvShape& s, const T* x, T* y, int64_t d0, int64_t h0) {
  const TapRange d = valid_taps(s, 0, d0), h = valid_taps(s, 1, h0);
  for (int64_t o = 0; o < s.out[2]; ++o) {
    T* to = y + o * s.ys[2];
    for (int64_t i = 0; i < s.c; ++i) to[i * s.yc] = std::numeric_limits<T>::min();
    const TapRange w = valid_taps(s, 2, o);
    for (int64_t kd = d.first; kd < d.last; ++kd)
      for (int64_t kh = h.first; kh < h.last; ++kh)
        for (int64_t kw = w.first; kw < w.last; ++kw) {
          const int64_t at = (d0 * s.stride[0] - s.pad[0] + kd * s.dilation[0]) * s.xs[0] + (h0 * s.stride[1] - s.pad[1] + kh * s.dilation[1]) * s.xs[1] +
                             (o * s.stride[2] - s.pad[2] + kw * s.dilation[2]) * s.xs[2];
          larger(to, s.yc, x + at, s.xc, s.c);
        }
  }
}

Status run(const Call& call, int64_t chunk) {
  const ConvShape s = pool_shape_unchecked(call);
  const Range rows = piece(s.out_rows(), chunk, chunks(s));
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t h = r % s.out[1], d = r / s.out[1] % s.out[0], n = r / s.out[1] / s.out[0];
    const int64_t ix = n * s.xn, iy = n * s.yn + d * s.ys[0] + h * s.ys[1];
    if (call.in[0].dtype == DType::u8) pool_row(s, call.in[0].as<uint8_t>() + ix, call.out[0].as<uint8_t>() + iy, d, h);
    else pool_row(s, call.in[0].as<int8_t>() + ix, call.out[0].as<int8_t>() + iy, d, h);
  }
  return ok();
}

const Register r(Kernel{.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::cube
