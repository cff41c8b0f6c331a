// Copies of small strided blocks between views and dense buffers in L1. Elements are moved, not looked
// at. Plain loops: the compiler and the cache do the rest.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ge::kernels::vector {

// One side of a copy: strides in bytes, any sign, 0 to repeat (sources only).
struct Block {
  std::byte* data;
  int64_t row_stride, col_stride;
};

// dst[r, c] = src[r, c] for elements of 1, 2, 4 or 8 bytes. The sides do not overlap.
void copy_block(const Block& dst, const Block& src, int64_t rows, int64_t cols, int64_t element);

}  // namespace ge::kernels::vector
