// What follows the sums of a convolution: bias, residual and activation in registers, then an
// optional vector program on a tile that is hot in cache. Shared by cube.conv and cube.depthwise.
//
// The program's inputs are 0: the convolution's result so far, 1..: the operands in[4..] of the
// Call, each broadcastable to the output and, along channels, of stride 1 or broadcast; its one
// output is y, or f32 where y is made from that.
#pragma once

#include <memory>
#include <string_view>

#include "kernels/cube/conv_shape.h"
#include "kernels/cube/microkernel.h"
#include "kernels/vector/program.h"

namespace ge::kernels::cube {

inline constexpr size_t kMaxExtra = 16;

// The part that sizes decide; null program: there is none.
struct ConvTail {
  std::shared_ptr<const vector::Compiled> program;
  double cycles = 0;  // of the program, for each element
  size_t extras = 0;
  RowStrides extra[kMaxExtra];
  // Pixels, in the order of the output, over which the extra operands advance evenly; it divides
  // the number of pixels at each level (row, plane, image, batch).
  int64_t even = 0;
};

// Checks bias, residual, activation code and the program of a Call, whose output is of type `stored`; extra operands
// start at in[4]. or_bf16: of the residual.
Result<ConvTail> conv_tail(const Call& call, const ConvShape& s, std::string_view kernel, bool or_bf16 = false,
                           DType stored = DType::f32);
// Bytes of scratch that finish_tile needs for tiles of up to `columns` columns.
int64_t tail_scratch(const ConvTail& t, int64_t columns);

// The register part: activation and its numbers. Bias and residual are the caller's to place.
Epilogue register_epilogue(const Call& call, const ConvShape& s);

// Runs the program on rows of y: pixels [pixel, pixel + rows) counted over (n, d, h, w), channels
// [channel, channel + columns), c at their first element. With a step, every step-th pixel of one row of
// the output. The results go to `to`, rows to_step bytes apart, or take c's place.
void finish_tile(const ConvTail& t, const ConvShape& s, const Call& call, float* c, int64_t ldc,
                 int64_t pixel, int64_t rows, int64_t channel, int64_t columns, std::byte* scratch,
                 int64_t step = 1, std::byte* to = nullptr, int64_t to_step = 0);

struct Pixel {
  int64_t n, d, h, w;
};
inline Pixel pixel_at(const ConvShape& s, int64_t p) {
  int64_t row = p / s.out[2];
  return {row / (s.out[0] * s.out[1]), row / s.out[1] % s.out[0], row % s.out[1], p % s.out[2]};
}
inline int64_t pixel_offset(const RowStrides& r, const Pixel& p) {
  return p.n * r.n + p.d * r.s[0] + p.h * r.s[1] + p.w * r.s[2];
}
// Strides of an operand of the output's sizes, where a width of 1 takes over the stride of the
// innermost axis that is longer: then s[2] leads from pixel to pixel as far as anything does.
RowStrides pixel_strides(const ConvShape& s, RowStrides r);
// Pixels over which an operand of such strides advances by s[2] each.
int64_t even_run(const ConvShape& s, const RowStrides& r);

}  // namespace ge::kernels::cube
