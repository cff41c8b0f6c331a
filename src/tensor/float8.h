// Scalar conversions of the floats under 16 bits: the four float8 types, f4e2m1 and f8e8m0. Codes are one
// byte each. Decoding is exact; encoding rounds to nearest even and follows the tables of ONNX's Cast.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace ge {

bool is_small_float(DType t);
// The value of a code; NaN where the type has it.
float small_float_value(DType t, uint8_t code);

enum class Round : uint8_t { up = 0, down = 1, nearest = 2 };  // f8e8m0 only

// saturate: out of range (infinities too) becomes the largest value; else infinity or NaN, whichever the
// type has. f4e2m1 always saturates, and NaN becomes -0. f8e8m0 of a negative number is NaN.
uint8_t small_float_code(DType t, double value, bool saturate, Round round = Round::up);

}  // namespace ge
