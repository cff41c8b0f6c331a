// What the Conv and MatMul rules share: reading a Conv, Gemm or MatMul (fused or not) as a group of
// operands and attributes, and writing the group back as ge.Conv or ge.MatMul.
#pragma once

#include "passes/fusion.h"

namespace ge::passes {

struct CubeGroup {
  std::string op;                      // that it becomes: ge.Conv, ge.ConvTranspose, ge.MatMul or one of the ge.Integer ops
  ir::ValueId x, w, bias, residual;    // of a ge.Integer op: x, w and their zero points
  std::vector<ir::ValueId> extras;     // operands of the epilogue program
  ir::Attrs attrs;                     // of ge.Conv or ge.MatMul
  bool has_act() const;
  bool has_program() const;
};

// ge.IntegerConv or ge.IntegerMatMul.
bool is_integer_product(const ir::Node& n);
// The node as a group; a Gemm whose attributes ge.MatMul cannot say gives no(…).
Verdict read_group(const ir::Graph& g, ir::NodeId id, CubeGroup& group);
// Only a convolution whose lowering has a tail: says why a ConvTranspose has none.
Verdict takes_tail(const ir::Graph& g, ir::NodeId id);
// Puts the group in place of `replaced` (the match's last value) and erases the matched nodes.
ir::NodeId write_group(ir::Graph& g, const Match& m, const CubeGroup& group, ir::ValueId replaced);

// A constant that holds one value for each channel of an output [N, C, ...] (axis 1), e.g. [C,1,1]:
// its values as a vector of C. Scalars are spread.
std::optional<std::vector<float>> per_channel(const ir::Graph& g, ir::ValueId v, const ir::Type& out, int axis);
// The constant weights of a convolution group, each output channel times its factor.
Tensor scaled_weights(const Tensor& w, const CubeGroup& group, const std::vector<double>& factor);
std::optional<double> scalar_constant(const ir::Graph& g, ir::ValueId v);
Tensor vector_f32(const std::vector<float>& v);

}  // namespace ge::passes
