// The input of a convolution rounded to bf16, as cube.conv's chunks read it when the weights are pair panels:
// rows of the padded buffer, or the pixels of a window of one tap. A pixel has an even number of channels there,
// the odd one more being zero.
#pragma once

#include "kernels/cube/conv_plan.h"

namespace ge::kernels::cube {

// The buffer [kd][row][column][channel] of a block for group g; `row` holds one row of floats.
void fill_bf16_buffer(const ConvPlan& p, const View& x, const PixelBlock& block, int64_t g, float* row, uint16_t* buffer);

// `count` pixels, the i-th at x + offset[i] or, without offsets, at x + i * step; bf16_row(cp) apart in `out`.
void round_pixels(const ConvPlan& p, const float* x, const int64_t* offset, int64_t step, int64_t count, uint16_t* out);

}  // namespace ge::kernels::cube
