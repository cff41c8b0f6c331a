// What this core can do at most, measured: the limit that kernels are held against.
#pragma once

#include <cstdint>

namespace ge::kernels::cube {

// Runs `steps` steps of independent f32 multiply-adds in registers, with the instruction set that isa() names.
// Returns the floating-point operations done.
int64_t run_multiply_adds(int64_t steps);
// Reads n floats; returns a number that depends on all of them.
float read_floats(const float* data, int64_t n);

}  // namespace ge::kernels::cube
