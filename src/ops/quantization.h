// What the operators of linear quantisation share: which elements have a scale in common, and the
// conversions as vector programs.
#pragma once

#include "kernels/vector/program.h"
#include "ops/op.h"

namespace ge::ops {

// Which elements of x share a scale: all of them, those with one index of `axis`, or blocks along `axis`.
struct Granularity {
  enum class Kind : uint8_t { tensor, axis, blocks } kind = Kind::tensor;
  int axis = 0;
  int64_t block = 0;
};
// Of a node whose inputs 0, 1, 2 are x, scale and zero point; x and scale are ranked.
Granularity granularity(const Graph& g, const Node& n);
// Errors for shapes of scale and zero point that fit no granularity, or blocks that do not.
Status check_granularity(const InferContext& c);
// The parameters of the reference kernels: the axis of the blocks or -1, the size of a block.
std::vector<Dim> granularity_ints(const Granularity& g);
// Scale or zero point i with the rank of x, as the reference kernels and programs take them.
Arg parameter_operand(LowerContext& c, int i, const Granularity& g);

// Types that programs read and write: integers of 8 and 16 bits.
bool vector_quantized(DType t);
// saturate(round(x / scale) + zero) as a register of integer lanes; zero may be kNoReg. x and scale are
// float lanes, zero is one of integers.
kernels::vector::Reg quantize(kernels::vector::ProgramBuilder& b, kernels::vector::Reg x, kernels::vector::Reg scale,
                              kernels::vector::Reg zero, DType to);
// The same without the division, of a quotient.
kernels::vector::Reg saturate(kernels::vector::ProgramBuilder& b, kernels::vector::Reg quotient, kernels::vector::Reg zero, DType to);
// (x - zero) * scale, x and zero of integer lanes.
kernels::vector::Reg dequantize(kernels::vector::ProgramBuilder& b, kernels::vector::Reg x, kernels::vector::Reg scale,
                                kernels::vector::Reg zero);

}  // namespace ge::ops
