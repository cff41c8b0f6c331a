// What follows the sums of a product or convolution, as the lowering helpers hand it to the cube kernels:
// scale, bias, residual, activation, vector program. Also the small conversions that both need.
#pragma once

#include <optional>
#include <vector>

#include "kernels/vector/program.h"
#include "ops/op.h"

namespace ge::ops {

// In this order: act(x * scale + bias + residual), then the program, whose input 0 is that value and whose
// inputs 1.. are the extras.
struct FusedTail {
  double scale = 1;
  int bias = -1, residual = -1;  // inputs of the node, or -1
  double bias_scale = 1;         // Gemm's beta
  std::vector<int> extras;       // inputs of the node
  int64_t act = 0;               // kernels/cube/microkernel.h: 0 none, 1 relu, 2 clip to [p, q], 3 leaky with p
  double p = 0, q = 0;
  std::optional<kernels::vector::Program> program;
};

// Attributes of the fused operators ("ge.MatMul", "ge.Conv"): act ("none", "relu", "clip", "leaky"),
// act_alpha, act_beta, program (text, or the bytes of encode()), dtypes (of the outputs, when they are not
// input 0's). Inputs from `first` on: bias, residual (either may be absent), extras.
Result<FusedTail> read_tail(const Node& n, int first);
std::vector<AttrDef> tail_attrs();
// Sets every output: `dims`, and the types that attribute dtypes says.
void set_fused_outputs(InferContext& c, const std::vector<Dim>& dims, DType otherwise);

// Makes the tail one that a kernel takes: a bias that is no vector along the channels (bias_fits false), or
// is scaled, becomes the residual or part of the program. Sets bias_scale to 1 but for constants.
Status settle_tail(LowerContext& c, FusedTail& tail, bool bias_fits);
// The residual joins the extras, the activation the program.
Status residual_into_program(FusedTail& tail);
// Only store(load(0)): lets a kernel store another type than f32, or is a copy.
kernels::vector::Program identity_program(kernels::vector::Lane lane = kernels::vector::Lane::f32);

bool cube_float(DType t);  // f32, f16, bf16
// A constant's content as f32, times scale, of the same dims.
Tensor constant_f32(const Tensor& t, double scale = 1);
// Input i as f32: itself, or a temporary that a cast fills. The view of what is returned is in `view`.
Arg input_as_f32(LowerContext& c, int i, Strided& view);
// Copies one operand to another of the same dims, any strides, converting where the types differ.
void emit_copy(LowerContext& c, Arg from, DType from_type, Arg to, DType to_type);
// The bias as a dense f32 vector of `count` elements, scaled.
Arg bias_vector(LowerContext& c, const FusedTail& tail, const Dim& count);
std::vector<std::byte> encode_program(const FusedTail& tail);

// Views.
Strided reshaped_vector(const Strided& v, const Dim& count);  // all axes but one are 1
Strided transposed_last(Strided v);
Strided with_axis(Strided v, size_t at);                      // an axis of size 1

}  // namespace ge::ops
