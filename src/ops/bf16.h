// Operands of products in bf16. The attribute "compute" of a product, convolution or attention says what its
// operands are rounded to while sums stay f32; pass precision sets it, the lowering helpers read it.
#pragma once

#include "ops/op.h"

namespace ge::ops {

inline constexpr const char* kCompute = "compute";  // "bf16", or absent
bool computes_bf16(const Node& n);

// Packed panels f32 [..., K, 16] of runs of `run` values of k each, as pair panels of kernels/cube/bf16.h:
// bf16 [..., pairs, 32].
Tensor pair_panels(const Tensor& panels, int64_t run);

}  // namespace ge::ops
