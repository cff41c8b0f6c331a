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

void fill_bytes(uint8_t* to, uint8_t value, int64_t n) {
  if (n > 0) std::memset(to, value, static_cast<size_t>(n));
}

// The taps [first, last) along the last axis lie inside; the first of all would lie at x.
struct Line {
  int64_t first, last;
  bool joined;  // all bytes of a line are neighbours
};

void copy_line(const IntegerWindow& w, const Line& l, const uint8_t* x, uint8_t pad, uint8_t* to) {
  const int64_t c = w.channels;
  fill_bytes(to, pad, l.first * c);
  if (l.joined) {
    copy_bytes(to + l.first * c, x + l.first * c, (l.last - l.first) * c, 1);
  } else {
    for (int64_t t = l.first; t < l.last; ++t) copy_bytes(to + t * c, x + t * w.dilation[2] * w.xs[2], c, w.xc);
  }
  fill_bytes(to + l.last * c, pad, (w.kernel[2] - l.last) * c);
}

Line line_at(const IntegerWindow& w, int64_t start) {
  const int64_t d = w.dilation[2], k = w.kernel[2], room = w.in[2] - start;
  Line l{0, k, d == 1 && w.xc == 1 && w.xs[2] == w.channels};
  if (start >= 0 && room > (k - 1) * d) return l;
  l.first = start >= 0 ? 0 : std::min((-start + d - 1) / d, k);
  l.last = std::max(l.first, room <= 0 ? 0 : std::min((room + d - 1) / d, k));
  return l;
}

}  // namespace

void window_rows(const IntegerWindow& w, const uint8_t* x, int64_t first, int64_t rows, uint8_t pad, uint8_t* to, int64_t ld) {
  const int64_t line = w.kernel[2] * w.channels, k = w.taps() * w.channels;
  int64_t ow = first % w.out[2], oh = first / w.out[2] % w.out[1], od = first / w.out[2] / w.out[1] % w.out[0];
  int64_t n = first / w.out[2] / w.out[1] / w.out[0];
  for (int64_t r = 0; r < rows; ++r, to += ld) {
    const int64_t start = ow * w.stride[2] - w.pad[2];
    const Line l = line_at(w, start);
    const uint8_t* image = x + n * w.xn + start * w.xs[2];
    uint8_t* at = to;
    const bool whole = l.joined && l.first == 0 && l.last == w.kernel[2];
    for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
      const int64_t d = od * w.stride[0] - w.pad[0] + kd * w.dilation[0];
      for (int64_t kh = 0; kh < w.kernel[1]; ++kh, at += line) {
        const int64_t h = oh * w.stride[1] - w.pad[1] + kh * w.dilation[1];
        if (d < 0 || d >= w.in[0] || h < 0 || h >= w.in[1]) fill_bytes(at, pad, line);
        else if (whole) move::copy_row(reinterpret_cast<std::byte*>(at), reinterpret_cast<const std::byte*>(image + d * w.xs[0] + h * w.xs[1]), line);
        else copy_line(w, l, image + d * w.xs[0] + h * w.xs[1], pad, at);
      }
    }
    for (int64_t i = k; i % 4; ++i) to[i] = 0;
    if (++ow < w.out[2]) continue;
    ow = 0;
    if (++oh < w.out[1]) continue;
    oh = 0;
    if (++od == w.out[0]) od = 0, ++n;
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
