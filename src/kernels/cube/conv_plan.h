// How cube.conv does a task of given sizes: where A is read from, how the output is cut into blocks
// of pixels and pieces of columns, and what scratch that takes. Pure arithmetic on sizes and
// strides: the same for any thread count and any instruction set.
#pragma once

#include "kernels/cube/conv_epilogue.h"
#include "kernels/cube/conv_shape.h"

namespace ge::kernels::cube {

// A block of output pixels that one chunk computes. Buffered: rows [oh, oh + rows) and columns
// [ow, ow + columns) of one image plane (n, od), where columns is the whole width unless rows is 1.
// In place: pixels [first, first + count) of the flat order over (n, d, h, w).
struct PixelBlock {
  int64_t first = 0, count = 0;
  Pixel at{};
  int64_t rows = 1, columns = 0;
};

struct ConvPlan {
  ConvShape s;
  ConvTail tail;
  RowStrides x, y, residual;
  int64_t cg = 0, mg = 0, k = 0,
          panels = 0;  // of one group: channels in and out, rows of B, its panels
  bool bf16 = false;      // the weights are pair panels: A is rounded to bf16 in the buffer
  int64_t cp = 0;         // channels of a pixel as A has them: cg, in bf16 rounded up to even
  bool has_residual = false;
  bool in_place = false;  // windows are read where x lies: no padding, contiguous channels
  bool uniform = false;   // in place with 1x1 windows whose pixels are evenly spaced: no offsets
  bool scatter = false;   // y has no contiguous channels: results pass through scratch
  bool gather_residual = false;  // the residual is copied to where the results go first
  int64_t even = 0;  // pixels over which y (and a residual read in place) advance evenly

  // Segments of K: runs of segment_k floats.
  bool run_over_kw = false;  // a kernel row is one run
  int64_t segments = 0, segment_k = 0;

  // The cut: chunk = block * pieces + piece.
  int64_t row_pieces = 1, column_pieces = 1;  // buffered: of each plane's height, of its width
  int64_t runs = 1, run_pieces = 1;           // in place: even runs, pieces of each
  int64_t pieces = 1;                         // of the columns (groups == 1) or of the groups
  int64_t column_unit = 1;                    // panels that stay together

  // Scratch: row, buffer, row offsets, segment offsets, tile for scattered results, program.
  int64_t buffer_height = 0, buffer_width = 0;  // input rows and columns of the largest block
  int64_t row_bytes = 0;                        // one row of the input in f32, and in bf16 behind it
  int64_t buffer_bytes = 0, rows_bytes = 0, segments_bytes = 0, tile_bytes = 0, program_bytes = 0;
  int64_t max_pixels = 0;  // of a block

  int64_t blocks() const {
    return in_place ? runs * run_pieces : s.n * s.out[0] * row_pieces * column_pieces;
  }
  int64_t chunks() const { return s.empty() ? 0 : blocks() * pieces; }
  int64_t scratch() const {
    return row_bytes + buffer_bytes + rows_bytes + segments_bytes + tile_bytes + program_bytes;
  }
  // Input rows, or columns, that n output rows, or columns, need; axis 1 or 2.
  int64_t extent(int axis, int64_t n) const {
    return (n - 1) * s.stride[axis] + (s.k[axis] - 1) * s.dilation[axis] + 1;
  }
  PixelBlock block(int64_t i) const;
};

// Checks what remains of the Call, whose shape is s, and plans.
Result<ConvPlan> plan_conv(const Call& call, const ConvShape& s);

}  // namespace ge::kernels::cube
