// Products of bytes with exact sums: the microkernels of cube.integer_product, and the packed form of the
// right side.
//
// B is packed as i8 [N/16][K/4][16][4]: panels of 16 columns, four values of k side by side, as the dot product
// instructions read them; what is beyond K or N is 0. Unsigned B is stored less 128.
#pragma once

#include <cstdint>

#include "tensor/view.h"

namespace ge::kernels::cube {

inline int64_t quads(int64_t k) { return (k + 3) / 4; }
inline int64_t packed_integer_bytes(int64_t k, int64_t n) { return (n + 15) / 16 * quads(k) * 64; }

// Packs b, i8 or u8 [K, N] of any strides; sums gets the sum of each column of what was packed, for 16 * panels
// columns.
void pack_integer(const View& b, int8_t* out, int32_t* sums);

struct IntegerBlock {
  int64_t m = 0, n = 0, quads = 0;
  const uint8_t* a = nullptr;           // row i at a + i * lda, 4 * quads bytes readable
  int64_t lda = 0;
  const int8_t* b = nullptr;            // panels, b_stride bytes apart
  int64_t b_stride = 0;
  const int32_t* start = nullptr;       // [16 * panels]: what the sums of a column begin with
  const int32_t* row_sum = nullptr;     // [m], or null: row_sum[i] * column_zero[j] is taken off
  const int32_t* column_zero = nullptr; // [16 * panels]
  bool to_float = false;                // C is f32: the sum rounded to nearest even, * scale[j] + bias[j]; else i32
  const float* scale = nullptr;         // [16 * panels] each, with to_float
  const float* bias = nullptr;
  int32_t* c = nullptr;                 // row i at c + i * ldc, 16 * panels values; overlaps nothing
  int64_t ldc = 0;
};

// C[i][j] = start[j] + sum over k of a[i][k] * b[k][j] - row_sum[i] * column_zero[j], modulo 2^32.
void multiply_integer(const IntegerBlock& block);

// The implementations; which one runs is decided by isa() and the CPU.
enum class IntegerPath : uint8_t { portable, avx2, avx_vnni, avx512_vnni };
bool has_path(IntegerPath p);
void multiply_integer_on(IntegerPath p, const IntegerBlock& block);

}  // namespace ge::kernels::cube
