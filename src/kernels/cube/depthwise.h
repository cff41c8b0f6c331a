// Convolution by rows, one vector of output channels at a time, for groups of one channel
// (cube.depthwise) and narrow groups (part of cube.conv): what depthwise.cc hands to the loops of
// depthwise-inl.h, which are compiled once for each instruction set, and what conv.cc calls. Not
// for wide groups: those are matrix products.
#pragma once

#include "kernels/cube/conv_shape.h"
#include "kernels/cube/microkernel.h"

namespace ge::kernels::cube {

// Neighbouring pixels that are computed together, and which of their columns lie outside the input:
// none, the first, the last, both, or any.
inline constexpr int kMaxTile = 8;
inline constexpr int kMaxRowsTile = 7;  // where several output rows are computed together
inline constexpr int kMinPairsTile = 4;  // where they are for two vectors of channels at a time
enum Edge { kInside = 0, kLeft = 1, kRight = 2, kBoth = 3, kAny = 4 };
struct DepthwiseTile {
  int64_t begin = 0;
  int width = 0, edge = kInside;
};

struct DepthwiseRow {
  // The kernel rows that lie inside the input: pointers to their input at column 0, and to their
  // weights [KW][group][weight_step]. All pointers stand at the first channel.
  int64_t rows = 0;
  const float* const* x = nullptr;
  const float* const* w = nullptr;
  int64_t x_step = 0, weight_step = 0;  // floats from pixel to pixel, from tap to tap
  int64_t width = 0;                    // input columns
  int64_t kw = 0, stride = 1, dilation = 1, pad = 0;
  const float* bias = nullptr;
  const float* residual = nullptr;
  int64_t residual_step = 0;
  void* y = nullptr;
  bool y16 = false;  // it is bf16
  int64_t y_step = 0, out = 0;
  // Several output rows together: x are all the input rows of these, null where outside, w all the
  // kernel rows; from an output row to the next:
  int64_t y_row = 0, residual_row = 0;
  bool pairs = false;  // two vectors of channels at a time; no tile is narrower than kMinPairsTile
  int64_t channels = 0;
  int64_t group = 1;                     // channels of a group, in and out: 1, 2, 4 or 8
  const DepthwiseTile* tiles = nullptr;  // or null: depthwise_tile() gives them
  int64_t tile_count = 0;
  Act act = Act::none;
  float lo = 0, hi = 0, alpha = 0;
};

// Tile i of a row: tiles are of nearly equal width.
inline DepthwiseTile depthwise_tile(const DepthwiseRow& r, int64_t i) {
  Range t = piece(r.out, i, r.tile_count);
  int64_t left = r.pad - t.begin * r.stride;  // columns cut off on either side
  int64_t right = (t.end - 1) * r.stride - r.pad + r.kw - r.width;
  int edge = left > 1 || right > 1 ? kAny : (left == 1 ? kLeft : 0) | (right == 1 ? kRight : 0);
  return {t.begin, static_cast<int>(t.end - t.begin), edge};
}

// The whole kernel for a checked shape whose groups are of one input channel or narrow
// (conv_pack.h). x, y and the residual are f32 or bf16.
Result<Work> prepare_by_rows(const Call& call, const ConvShape& s, std::string_view kernel);
Status run_by_rows(const Call& call, const void* state, int64_t chunk);

}  // namespace ge::kernels::cube
