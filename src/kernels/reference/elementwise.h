// Codes of the elementwise operators, as they stand in the parameters of "ref.elementwise" (the meaning
// of each, one element at a time, any strides) and "elementwise.typed" (the same in typed loops; what
// vector programs do not cover). The numbers stand in .om files: append only.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace ge::kernels::reference {

enum class Ew : int64_t {
  none = 0,
  // One input. p0, p1 are floats[0], floats[1].
  abs = 1, neg, sqrt, reciprocal, exp, log, erf, tanh, sigmoid, relu,
  leaky_relu /* p0 alpha */, elu /* p0 alpha */, selu /* p0 alpha, p1 gamma */, celu /* p0 alpha */,
  thresholded_relu /* p0 alpha */, softplus, softsign, hard_sigmoid /* p0 alpha, p1 beta */, hard_swish,
  mish, gelu, gelu_tanh, swish /* p0 alpha */, floor, ceil, round, sign, sin, cos, tan, asin, acos, atan,
  sinh, cosh, asinh, acosh, atanh, logical_not, is_nan, is_inf /* p0 negative, p1 positive */,
  bitwise_not, shrink /* p0 bias, p1 lambd */, square,
  // Two inputs.
  add = 100, sub, mul, div, pow, mod /* sign of the divisor */, fmod, prelu, bit_shift_left,
  bit_shift_right, bitwise_and, bitwise_or, bitwise_xor, logical_and, logical_or, logical_xor, equal,
  less, less_or_equal, greater, greater_or_equal,
  // One input or more.
  max = 150, min, sum, mean,
  // x, low, high; either bound may be absent.
  clip = 160,
};

inline bool is_unary(Ew op) { return op >= Ew::abs && op <= Ew::square; }
inline bool is_binary(Ew op) { return op >= Ew::add && op <= Ew::greater_or_equal; }
inline bool is_variadic(Ew op) { return op >= Ew::max && op <= Ew::mean; }
inline bool is_known(Ew op) { return is_unary(op) || is_binary(op) || is_variadic(op) || op == Ew::clip; }
inline bool gives_bool(Ew op) {
  return op == Ew::logical_not || op == Ew::is_nan || op == Ew::is_inf ||
         (op >= Ew::logical_and && op <= Ew::greater_or_equal);
}
// Whether inputs may have this dtype (pow's exponent aside).
bool takes(Ew op, DType t);

}  // namespace ge::kernels::reference
