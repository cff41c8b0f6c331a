#include "kernels/cube/conv_bf16.h"

#include <algorithm>

#include "kernels/cube/bf16.h"

#define GE_TARGET_BODY "kernels/cube/conv-inl.h"
#include "kernels/cube/conv_targets.h"

namespace ge::kernels::cube {
namespace {

// `columns` pixels of one row of the input from column iw on, zeros outside.
void round_row(const ConvPlan& p, const float* from, int64_t iw, int64_t columns, float* row, uint16_t* dst) {
  const ConvShape& s = p.s;
  if (p.cg == p.cp && (s.xc == 1 || p.cg == 1) && s.xs[2] == p.cg) {
    const int64_t before = std::min(columns, std::max<int64_t>(0, -iw));
    const int64_t inside = std::clamp<int64_t>(s.in[2] - iw - before, 0, columns - before);
    std::fill_n(dst, before * p.cg, uint16_t{0});
    round_to_bf16(from + (iw + before) * p.cg, inside * p.cg, dst + before * p.cg);
    std::fill_n(dst + (before + inside) * p.cg, (columns - before - inside) * p.cg, uint16_t{0});
    return;
  }
  GE_ON_ISA(copy_row)(s, from, p.cg, iw, columns, row);
  if (p.cg == p.cp) return round_to_bf16(row, columns * p.cg, dst);
  // An odd number of channels, usually three: rounded in place of the floats, then spread.
  auto* rounded = reinterpret_cast<uint16_t*>(row + columns * p.cg);
  round_to_bf16(row, columns * p.cg, rounded);
  for (int64_t i = 0; i < columns; ++i) {
    for (int64_t c = 0; c < p.cg; ++c) dst[i * p.cp + c] = rounded[i * p.cg + c];
    dst[i * p.cp + p.cg] = 0;
  }
}

}  // namespace

void fill_bf16_buffer(const ConvPlan& p, const View& x, const PixelBlock& block, int64_t g, float* row, uint16_t* buffer) {
  const ConvShape& s = p.s;
  const int64_t height = p.extent(1, block.rows), width = p.extent(2, block.columns);
  const int64_t iw = block.at.w * s.stride[2] - s.pad[2], ih0 = block.at.h * s.stride[1] - s.pad[1];
  const float* image = x.as<float>() + block.at.n * s.xn + g * p.cg * s.xc;
  for (int64_t kd = 0; kd < s.k[0]; ++kd) {
    const int64_t id = block.at.d * s.stride[0] - s.pad[0] + kd * s.dilation[0];
    for (int64_t i = 0; i < height; ++i, buffer += width * p.cp) {
      const int64_t ih = ih0 + i;
      if (id < 0 || id >= s.in[0] || ih < 0 || ih >= s.in[1])
        std::fill_n(buffer, width * p.cp, uint16_t{0});
      else
        round_row(p, image + id * s.xs[0] + ih * s.xs[1], iw, width, row, buffer);
    }
  }
}

void round_pixels(const ConvPlan& p, const float* x, const int64_t* offset, int64_t step, int64_t count, uint16_t* out) {
  for (int64_t i = 0; i < count; ++i, out += bf16_row(p.cp)) {
    round_to_bf16(x + (offset ? offset[i] : i * step), p.cg, out);
    if (p.cp > p.cg) out[p.cg] = 0;
  }
}

}  // namespace ge::kernels::cube
