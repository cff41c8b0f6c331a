// Products of bf16 operands with sums in f32: the microkernels' bf16 form, the packed panels of its B, and the
// rounding of A. CPUs with AVX512_BF16 multiply pairs; on others both operands are widened to f32, which gives
// the same products, summed in another order.
//
// Pair panels: bf16 [N/16][ceil(K/2)][16][2], the two values of k together, columns and the odd last k padded
// with zeros. The format belongs to the file, as that of pack.h does.
#pragma once

#include <cstdint>

#include "kernels/cube/microkernel.h"
#include "tensor/view.h"

namespace ge::kernels::cube {

// A Block whose A and B are bf16: all their offsets and strides count bf16s, `a` and `b` are not used, and
// segment_k is even. B's pair panels have segments * segment_k / 2 rows. C, where it is bf16, is at c16 in place of c
// and takes neither accumulate nor finish; the residual, where it is, at residual16.
struct Bf16Block : Block {
  const uint16_t* a16 = nullptr;
  const uint16_t* b16 = nullptr;
  uint16_t* c16 = nullptr;
  const uint16_t* residual16 = nullptr;
};
void multiply(const Bf16Block& block);

// To nearest even; NaN stays NaN. Numbers below 2^-126 may become zeros.
void round_to_bf16(const float* from, int64_t n, uint16_t* to);
void widen_bf16(const uint16_t* from, int64_t n, float* to);

inline int64_t even(int64_t n) { return n + (n & 1); }

// Distance of rows of A of k values in scratch, in bf16s: even, and never a multiple of a page, so that the rows
// of a tile do not push each other out of the cache.
inline int64_t bf16_row(int64_t k) { return (k + 31) / 32 * 32 + 32; }

// Panels f32 [count][k][16] to pair panels. K is made of runs of `run` values, each padded to an even number:
// bf16 [count][k / run * even(run) / 2][16][2].
inline int64_t pair_rows(int64_t k, int64_t run) { return run ? k / run * even(run) / 2 : 0; }
void pair_panels(const float* panels, int64_t count, int64_t k, int64_t run, uint16_t* out);

// Pair panels [first, last) of B[k][n] = b[k * k_stride + n * n_stride]; out points at panel `first`.
void pack_pair_panels(const float* b, int64_t k, int64_t n, int64_t k_stride, int64_t n_stride, int64_t first,
                      int64_t last, uint16_t* out);

// The implementations behind multiply(); isa() and the CPU choose.
namespace bf16 {
namespace dot {
void multiply(const Bf16Block& block);
void round(const float* from, int64_t n, uint16_t* to);
// Rows of 16 columns, k_stride apart, two at a time: a pair panel.
void interleave(const float* b, int64_t k, int64_t k_stride, uint16_t* out);
}  // namespace dot
namespace avx512 {
void multiply(const Bf16Block& block);
}
namespace avx2 {
void multiply(const Bf16Block& block);
}
namespace portable {
void multiply(const Bf16Block& block);
}
}  // namespace bf16

}  // namespace ge::kernels::cube
