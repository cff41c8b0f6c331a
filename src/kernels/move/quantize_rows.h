// Rows as bytes with a scale each: symmetric, so that x is about q * scale. A row's scale is its largest |x| / 127, and
// q is x / scale rounded to nearest even, at most 127 to either side. A row of zeros has the scale 0; one that holds NaN
// or infinity has a scale that is neither finite, and bytes of 0, so that it is NaN when it is widened.
#pragma once

#include <cstdint>

namespace ge::kernels::move {

// to[i] = from[i * step] * scale, for the instruction set now in use.
void dequantize_row(const int8_t* from, int64_t step, float scale, float* to, int64_t n);

}  // namespace ge::kernels::move
