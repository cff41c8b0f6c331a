// Packed panels of B: f32 [N/16][K][16], the columns padded with zeros to a multiple of 16. The format
// belongs to the file, not to an instruction set; the microkernels read it (microkernel.h).
//
// pack_b() serves the compiler (weights) and kernels that pack for themselves; the kernel "cube.pack_b"
// packs computed operands at run time: in[0] f32 [batch..., K, N] with any strides, out[0] dense f32
// [batch..., ceil(N / 16), K, 16], or bf16 [batch..., ceil(N / 16), ceil(K / 2), 32], pair panels (bf16.h); no
// ints, floats or blob.
#pragma once

#include <cstdint>

#include "tensor/view.h"

namespace ge::kernels::cube {

inline int64_t panels(int64_t n) { return (n + 15) / 16; }
// Floats of the packed form.
inline int64_t packed_floats(int64_t k, int64_t n) { return panels(n) * 16 * k; }

// Packs all of b, f32 [K, N] with any strides, to packed_floats(K, N) floats at out. One thread.
void pack_b(const View& b, float* out);

// Panels [first, last) of B[k][n] = b[k * k_stride + n * n_stride]; out points at panel `first`.
void pack_panels(const float* b, int64_t k, int64_t n, int64_t k_stride, int64_t n_stride, int64_t first,
                 int64_t last, float* out);

}  // namespace ge::kernels::cube
