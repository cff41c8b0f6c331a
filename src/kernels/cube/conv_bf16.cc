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

// The same of an input that is bf16.
void copy_row16(const ConvPlan& p, const uint16_t* from, int64_t iw, int64_t columns, uint16_t* dst) {
  const ConvShape& s = p.s;
  const int64_t before = std::min(columns, std::max<int64_t>(0, -iw));
  const int64_t inside = std::clamp<int64_t>(s.in[2] - iw - before, 0, columns - before);
  std::fill_n(dst, before * p.cp, uint16_t{0});
  std::fill_n(dst + (before + inside) * p.cp, (columns - before - inside) * p.cp, uint16_t{0});
  from += (iw + before) * s.xs[2], dst += before * p.cp;
  if (s.xc == 1 && s.xs[2] == p.cp) {
    std::copy_n(from, inside * p.cp, dst);
    return;
  }
  for (int64_t i = 0; i < inside; ++i, from += s.xs[2], dst += p.cp) {
    if (s.xc == 1) std::copy_n(from, p.cg, dst);
    else
      for (int64_t c = 0; c < p.cg; ++c) dst[c] = from[c * s.xc];
    if (p.cp > p.cg) dst[p.cg] = 0;
  }
}

}  // namespace

void fill_bf16_buffer(const ConvPlan& p, const View& x, const PixelBlock& block, int64_t g, float* row, uint16_t* buffer) {
  const int64_t group = g * p.cg * p.s.xc;
  p.each_run(block, [&](bool inside, int64_t at, int64_t iw, int64_t columns) {
    if (!inside) std::fill_n(buffer, columns * p.cp, uint16_t{0});
    else if (p.x16) copy_row16(p, x.as<uint16_t>() + group + at, iw, columns, buffer);
    else round_row(p, x.as<float>() + group + at, iw, columns, row, buffer);
    buffer += columns * p.cp;
  });
}

void round_pixels(const ConvPlan& p, const float* x, const int64_t* offset, int64_t step, int64_t count, uint16_t* out) {
  for (int64_t i = 0; i < count; ++i, out += bf16_row(p.cp)) {
    round_to_bf16(x + (offset ? offset[i] : i * step), p.cg, out);
    if (p.cp > p.cg) out[p.cg] = 0;
  }
}

}  // namespace ge::kernels::cube
