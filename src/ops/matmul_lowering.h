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

// The constant that `v` is or is a view of (an embedding tied to the output through a Transpose), and how `v`
// sees it; or null. Packed ahead, it is never packed in a run.
const Tensor* constant_behind(const Graph& g, ValueId v, Strided& view);
// Up to so many rows, or an unknown number, read a constant that others share in place.
inline constexpr int64_t kFewRowsInPlace = 8;

// The right side of a product, as cube.matmul takes it.
struct RightSide {
  Arg arg;
  bool plain = false;  // not in panels

  std::vector<Dim> ints(int64_t act) const { return plain ? std::vector<Dim>{Dim(act), Dim(1)} : std::vector<Dim>{Dim(act)}; }
};
// For a view [batch..., K, N]: of a constant, panels made now; of a computed f32 operand, the view itself, or
// panels made by a call into a temporary if it is known to meet many rows.
RightSide constant_right_side(LowerContext& c, const Tensor& t, const Strided& view);
RightSide computed_right_side(LowerContext& c, Arg b, const Strided& view, const Dim& rows);

}  // namespace ge::ops
