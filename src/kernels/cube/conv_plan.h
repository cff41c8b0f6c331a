// How cube.conv does a task of given sizes: where A is read from, how the output is cut into blocks
// of pixels and pieces of columns, and what scratch that takes. Pure arithmetic on sizes and
// strides: the same for any thread count and any instruction set.
#pragma once

#include <algorithm>

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
  bool x16 = false, y16 = false, residual16 = false;  // these are bf16 in memory
  int64_t cp = 0;         // channels of a pixel as A has them: cg, in bf16 rounded up to even
  bool has_residual = false;
  bool in_place = false;  // windows are read where x lies: no padding, contiguous channels
  bool uniform = false;   // in place with 1x1 windows whose pixels are evenly spaced: no offsets
  bool scatter = false;   // y has no contiguous channels: results pass through scratch
  bool sums_apart = false;  // the vector program reads sums in scratch and writes a bf16 y
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
  // Input rows, or columns, that one tap of n output rows, or columns, spans; axis 1 or 2.
  int64_t span(int axis, int64_t n) const { return (n - 1) * s.stride[axis] + 1; }
  // Distance of the taps in the buffer: taps whose rows do not meet have them one behind the other.
  int64_t tap_step(int axis, int64_t n) const { return std::min(s.dilation[axis], span(axis, n)); }
  // Rows, or columns, of the buffer for n output rows, or columns.
  int64_t extent(int axis, int64_t n) const { return span(axis, n) + (s.k[axis] - 1) * tap_step(axis, n); }
  PixelBlock block(int64_t i) const;
  // The buffer of a block in its order, as runs f(inside the input, offset of its row in x, first column, columns)
  // of pixels.
  template <class F>
  void each_run(const PixelBlock& b, F f) const {
    const int64_t height = extent(1, b.rows), span_h = span(1, b.rows), span_w = span(2, b.columns);
    const bool rows_apart = tap_step(1, b.rows) < s.dilation[1], columns_apart = tap_step(2, b.columns) < s.dilation[2];
    const int64_t iw = b.at.w * s.stride[2] - s.pad[2], ih0 = b.at.h * s.stride[1] - s.pad[1];
    for (int64_t kd = 0; kd < s.k[0]; ++kd) {
      const int64_t id = b.at.d * s.stride[0] - s.pad[0] + kd * s.dilation[0];
      for (int64_t i = 0; i < height; ++i) {
        const int64_t ih = ih0 + (rows_apart ? i / span_h * s.dilation[1] + i % span_h : i);
        const bool inside = id >= 0 && id < s.in[0] && ih >= 0 && ih < s.in[1];
        const int64_t row = inside ? b.at.n * s.xn + id * s.xs[0] + ih * s.xs[1] : 0;
        if (!columns_apart) f(inside, row, iw, extent(2, b.columns));
        else
          for (int64_t kw = 0; kw < s.k[2]; ++kw) f(inside, row, iw + kw * s.dilation[2], span_w);
      }
    }
  }
};

// Checks what remains of the Call, whose shape is s, and plans.
Result<ConvPlan> plan_conv(const Call& call, const ConvShape& s);

}  // namespace ge::kernels::cube
