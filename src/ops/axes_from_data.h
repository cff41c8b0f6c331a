// Axes that only running tells: sizes as expressions over the numbers that name them.
#pragma once

#include <vector>

#include "ops/op.h"

namespace ge::ops {

// An axis in -rank..rank-1 as 0..rank-1.
Dim wrapped_axis(const Dim& axis, int rank);
// For each axis 1 where the list names it, else 0. Evaluating one that does not count as many axes as the list has (one
// outside of the rank, or named twice) is an error.
std::vector<Dim> axis_mask(const std::vector<Dim>& axes, int rank);
// For each axis what the list that goes with the axes says, else `otherwise`.
std::vector<Dim> by_axis(const std::vector<Dim>& axes, const std::vector<Dim>& list, std::vector<Dim> otherwise);
// Sizes with 1 where the mask says.
std::vector<Dim> with_ones(const std::vector<Dim>& dims, const std::vector<Dim>& mask);
// Sizes without the `count` axes that the mask names.
std::vector<Dim> without_axes(const std::vector<Dim>& dims, const std::vector<Dim>& mask, size_t count);
// Sizes with 1 put in at the axes of the result that the mask names.
std::vector<Dim> with_axes_of(const std::vector<Dim>& dims, const std::vector<Dim>& mask);
// d; evaluating it is an error where the condition is 0.
Dim only_if(const Dim& condition, const Dim& d);

}  // namespace ge::ops
