// Products and convolutions of bytes: how they reach kernel cube.integer_product, and what they mean.
#pragma once

#include <optional>

#include "kernels/vector/program.h"
#include "ops/op.h"

namespace ge::ops {

// Inputs of the node; -1: absent.
struct IntegerForm {
  bool conv = false;
  int x = 0, w = 1, x_zero = 2, w_zero = 3;
  std::vector<Arg> extras;                        // operands of the program...
  std::vector<Strided> extra_views;               // ...and how they lie, broadcastable to the output
  std::vector<DType> extra_types;
  std::optional<kernels::vector::Program> program;  // of the sums as f32; none: the output is i32
  void extra(LowerContext& c, int input);         // a further operand of the program
  int scale = -1, bias = -1;                      // of extras: along the columns, applied before the program
  bool peeled = false;                            // scale and bias are set, and order: the extras that are left
  std::vector<size_t> order;
};

// Emits the product into the node's outputs; leaves c.calls empty where the kernel does not apply (zero points
// of rows, many groups).
Status lower_integer_product(LowerContext& c, IntegerForm form);
// The sums as i32 into `out`, a temporary or output of the node's shape, by reference kernels.
Status reference_integer_product(LowerContext& c, const IntegerForm& form, Arg out);
// Whether lower_integer_product would take the node: types and shapes of zero points, groups.
bool takes_integer_product(const Graph& g, const Node& n, const IntegerForm& form);
bool is_byte(DType t);

}  // namespace ge::ops
