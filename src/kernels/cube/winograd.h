// cube.winograd: convolutions with 3x3 (or 1x3) windows, stride 1, any dilation, one group, by minimal filtering
// (Winograd 1980; Lavin & Gray, arXiv 1509.09308): a tile of T x T outputs from (T + 2)^2 products a channel
// instead of 9 T^2. T = 4 with the points 0, +-sqrt(1/2), +-sqrt(2), infinity, whose rounding error is that of a
// direct sum; T = 2 with 0, +-1, infinity, whose error is smaller. With a
// dilation d, every d-th pixel makes an image of its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/view.h"

namespace ge::kernels::cube {

// Weights f32 [M, C, 3, 3] or [M, C, 1, 3] or [M, C, 3] (leading axes of 1 allowed), transformed to panels
// [frequencies][ceil(M / 16)][C][16], unused columns zero. tile: 2 or 4. The format stands in .om files.
int64_t packed_winograd_floats(const View& w, int tile);
void pack_winograd_weights(const View& w, int tile, float* out);

// Whether minimal filtering is faster for outputs of these sizes: with weights that are transformed in each run, or
// (kept) once, in the first.
struct WinogradSizes {
  int64_t m = 0, c = 0, images = 0, height = 0, width = 0, dilation_h = 1, dilation_w = 1;
  bool two_axes = true;
};
bool pays_unstored(const WinogradSizes& s, int tile, bool kept);
// Inputs that cube.winograd_or_direct takes at most.
inline constexpr size_t kMostOfChoice = 24;

// The part of a tile that its patch of the input, (T + 2) x (T + 2) pixels or 1 x (T + 2), covers.
struct WinogradPatch {
  const float* at = nullptr;         // of the pixel at (0, 0), which may lie outside
  int64_t row = 0, column = 0;       // strides
  int64_t r0 = 0, r1 = 0, c0 = 0, c1 = 0;  // pixels inside the input
};

// Where the outputs of a tile go, and what is added to them.
struct WinogradOut {
  float* y = nullptr;
  int64_t row = 0, column = 0;
  int64_t rows = 0, columns = 0;     // that lie inside the output
  const float* residual = nullptr;
  int64_t residual_row = 0, residual_column = 0;
};

}  // namespace ge::kernels::cube
