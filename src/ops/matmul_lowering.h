// How products reach the cube.matmul kernel: shared by MatMul, Gemm, ge.MatMul and ops made of products.
// Packs constant B while compiling, casts 16-bit floats, and puts bias, residual, activation and a vector
// program where the kernel takes them. Knows the kernel's parameters, no operator's attributes.
#pragma once

#include "ops/fused_tail.h"
#include "ops/op.h"

namespace ge::ops {

struct MatMulForm {
  int a = 0, b = 1;                               // inputs of the node
  bool transpose_a = false, transpose_b = false;  // the last two axes
  FusedTail tail;
};

// Emits the product of inputs a and b into the node's outputs. Leaves c.calls empty where the kernel does
// not apply (integers, f64).
Status lower_matmul(LowerContext& c, const MatMulForm& form);

// dims of numpy's matmul; the last two axes transposed as said, for operands of rank 2 or more.
Result<std::vector<Dim>> matmul_dims(const InferContext& c, std::vector<Dim> a, std::vector<Dim> b,
                                     bool transpose_a, bool transpose_b);

// The right side of a product in panels, for a view [batch..., K, N]: of a constant, made now; of a computed
// f32 operand, by a call into a temporary.
Tensor pack_constant_matrices(const Tensor& t, const Strided& view);
Arg pack_computed_matrices(LowerContext& c, Arg b, const Strided& view);

}  // namespace ge::ops
