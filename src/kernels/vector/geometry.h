// How the index space of a "vector.program" task is walked: axes of all operands together, without the
// ones of size 1, ordered by the first output's strides and merged where every operand allows it.
// Knows shapes and strides only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "tensor/view.h"

namespace ge::kernels::vector {

struct Axis {
  int64_t size = 1;
  std::vector<int64_t> steps;  // bytes, for each operand; 0 where it is broadcast
};

struct Geometry {
  std::vector<Axis> outer;  // slowest first; the last one makes the rows of tiles
  std::vector<Axis> row;    // one axis unless some operand keeps them apart; of size 1 if there are none
  std::vector<bool> single; // for each operand: one value for the row (and the row has not just one)
  int64_t row_size = 1, rows = 1;
};

// Operands are inputs, then outputs, broadcast as in numpy. row_axes: trailing axes of the common shape
// that form the row; 0: elementwise, then the row is the axis where the first output is densest.
Result<Geometry> make_geometry(std::span<const View> in, std::span<const View> out, int64_t row_axes);

}  // namespace ge::kernels::vector
