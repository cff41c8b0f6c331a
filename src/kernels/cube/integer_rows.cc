#include "kernels/cube/integer_rows.h"

#include <algorithm>
#include <cstring>

#include "kernels/move/copy.h"

namespace ge::kernels::cube {
namespace {

void copy_bytes(uint8_t* to, const uint8_t* from, int64_t n, int64_t step) {
  if (step == 1) return move::copy_row(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from), n);
  for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
}

// The taps along the last axis for one (depth, height) of the window.
void window_line(const IntegerWindow& w, const uint8_t* line, int64_t ow, uint8_t pad, uint8_t* to) {
  const int64_t start = ow * w.stride[2] - w.pad[2], d = w.dilation[2], c = w.channels;
  const bool joined = d == 1 && w.xc == 1 && w.xs[2] == c;
  int64_t first = start >= 0 ? 0 : std::min((-start + d - 1) / d, w.kernel[2]);
  int64_t last = start >= w.in[2] ? 0 : std::min((w.in[2] - start + d - 1) / d, w.kernel[2]);
  last = std::max(first, last);
  std::memset(to, pad, static_cast<size_t>(first * c));
  if (joined) {
    copy_bytes(to + first * c, line + (start + first) * c, (last - first) * c, 1);
  } else {
    for (int64_t t = first; t < last; ++t) copy_bytes(to + t * c, line + (start + t * d) * w.xs[2], c, w.xc);
  }
  std::memset(to + last * c, pad, static_cast<size_t>((w.kernel[2] - last) * c));
}

}  // namespace

void window_rows(const IntegerWindow& w, const uint8_t* x, int64_t first, int64_t rows, uint8_t pad, uint8_t* to, int64_t ld) {
  const int64_t line = w.kernel[2] * w.channels, k = w.taps() * w.channels;
  for (int64_t r = 0; r < rows; ++r, to += ld) {
    int64_t p = first + r;
    const int64_t ow = p % w.out[2];
    p /= w.out[2];
    const int64_t oh = p % w.out[1];
    p /= w.out[1];
    const int64_t od = p % w.out[0], n = p / w.out[0];
    uint8_t* at = to;
    for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
      const int64_t d = od * w.stride[0] - w.pad[0] + kd * w.dilation[0];
      for (int64_t kh = 0; kh < w.kernel[1]; ++kh, at += line) {
        const int64_t h = oh * w.stride[1] - w.pad[1] + kh * w.dilation[1];
        if (d < 0 || d >= w.in[0] || h < 0 || h >= w.in[1]) std::memset(at, pad, static_cast<size_t>(line));
        else window_line(w, x + n * w.xn + d * w.xs[0] + h * w.xs[1], ow, pad, at);
      }
    }
    for (int64_t i = k; i % 4; ++i) to[i] = 0;
  }
}

void matrix_rows(const uint8_t* a, int64_t row_stride, int64_t step, int64_t rows, int64_t k, uint8_t* to, int64_t ld) {
  for (int64_t r = 0; r < rows; ++r, a += row_stride, to += ld) {
    copy_bytes(to, a, k, step);
    for (int64_t i = k; i % 4; ++i) to[i] = 0;
  }
}

void finish_integer_rows(uint8_t* rows, int64_t count, int64_t k, int64_t ld, bool is_signed, int32_t* sums) {
  for (int64_t r = 0; r < count; ++r, rows += ld) {
    if (is_signed)
      for (int64_t i = 0; i < k; ++i) rows[i] ^= 0x80;
    if (!sums) continue;
    int32_t sum = 0;
    for (int64_t i = 0; i < k; ++i) sum += rows[i];
    sums[r] = sum;
  }
}

}  // namespace ge::kernels::cube
