// The left side of cube.integer_product as dense rows of bytes: rows of a matrix, or the windows of a
// convolution, with signed bytes moved up by 128.
#pragma once

#include "kernels/kernel.h"

namespace ge::kernels::cube {

inline constexpr int kMaxSpatial = 3;

// A window over x [n, spatial..., C]; leading axes that x lacks have size 1.
struct IntegerWindow {
  int rank = 0;                 // spatial axes; 0: no convolution
  int64_t channels = 0;
  int64_t in[kMaxSpatial] = {1, 1, 1}, out[kMaxSpatial] = {1, 1, 1}, kernel[kMaxSpatial] = {1, 1, 1};
  int64_t stride[kMaxSpatial] = {1, 1, 1}, dilation[kMaxSpatial] = {1, 1, 1}, pad[kMaxSpatial] = {0, 0, 0};
  int64_t xn = 0, xc = 0, xs[kMaxSpatial] = {0, 0, 0};  // strides of x
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

// Fills `rows` rows of k bytes, `ld` apart: windows at pixels [first, first + rows), counted over (n, spatial...).
// Outside of x stands `pad`. Bytes k to the next multiple of 4 are 0.
void window_rows(const IntegerWindow& w, const uint8_t* x, int64_t first, int64_t rows, uint8_t pad, uint8_t* to, int64_t ld);
// The same for rows of a matrix.
void matrix_rows(const uint8_t* a, int64_t row_stride, int64_t step, int64_t rows, int64_t k, uint8_t* to, int64_t ld);
// Signed bytes to unsigned ones, 128 more; sums (or null) get the sum of each row's k bytes.
void finish_integer_rows(uint8_t* rows, int64_t count, int64_t k, int64_t ld, bool is_signed, int32_t* sums);

}  // namespace ge::kernels::cube
