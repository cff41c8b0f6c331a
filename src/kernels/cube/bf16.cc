// Dispatch of bf16 products, the build's baseline, and the pair panels.
#include "kernels/cube/bf16.h"

#include <algorithm>
#include <cstring>

#include "kernels/cube/simd.h"
#include "kernels/isa.h"
#include "kernels/move/cast_row.h"
#include "tensor/half.h"

namespace ge::kernels::cube {
namespace bf16::portable {
#include "kernels/cube/microkernel-inl.h"
#include "kernels/cube/bf16-inl.h"

static constexpr Tiles kTiles = make_pair_tiles<Widened<V128>, V128::kRegisters == 32 ? 4 : 2, 4>();
static const Tiles& choose(int64_t) { return kTiles; }
void multiply(const Bf16Block& block) { run_block(block, choose); }

}  // namespace bf16::portable

void multiply(const Bf16Block& block) {
#if defined(__x86_64__)
  if (has_avx512_bf16()) return bf16::dot::multiply(block);
  if (isa() == Isa::avx512) return bf16::avx512::multiply(block);
  if (isa() == Isa::avx2) return bf16::avx2::multiply(block);
#endif
  bf16::portable::multiply(block);
}

void round_to_bf16(const float* from, int64_t n, uint16_t* to) {
#if defined(__x86_64__)
  if (has_avx512_bf16()) return bf16::dot::round(from, n, to);
#endif
  move::cast_row(DType::f32, DType::bf16)(reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to), n);
}

void widen_bf16(const uint16_t* from, int64_t n, float* to) {
  move::cast_row(DType::bf16, DType::f32)(reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to), n);
}

void pair_panels(const float* panels, int64_t count, int64_t k, int64_t run, uint16_t* out) {
  const int64_t runs = run ? k / run : 0;
  for (int64_t r = 0; r < count * runs; ++r, panels += run * 16)
    for (int64_t i = 0; i < run; i += 2)
      for (int64_t j = 0; j < 16; ++j) {
        *out++ = f32_to_bf16(panels[i * 16 + j]);
        *out++ = i + 1 < run ? f32_to_bf16(panels[(i + 1) * 16 + j]) : uint16_t{0};
      }
}

namespace {

constexpr int64_t kStep = 64;  // values of k packed at a time: 4 KB of a panel

// Rows k0 .. k0 + count of one panel of `width` columns, as [16][kStep] with zeros around.
void gather(const float* b, int64_t count, int64_t width, int64_t k_stride, int64_t n_stride, float (&out)[16][kStep]) {
  for (int64_t j = 0; j < 16; ++j) {
    int64_t i = 0;
    if (j < width && k_stride == 1) {
      std::memcpy(out[j], b + j * n_stride, static_cast<size_t>(count) * sizeof(float));
      i = count;
    } else if (j < width) {
      for (; i < count; ++i) out[j][i] = b[i * k_stride + j * n_stride];
    }
    for (; i < even(count); ++i) out[j][i] = 0;
  }
}

// Whole rows of 16 columns: two rows become one of pairs.
void interleave(const float* b, int64_t k, int64_t k_stride, uint16_t* out) {
#if defined(__x86_64__)
  if (has_avx512_bf16()) return bf16::dot::interleave(b, k, k_stride, out);
#endif
  alignas(64) uint16_t rows[2][16];
  for (int64_t i = 0; i < k; i += 2, out += 32) {
    round_to_bf16(b + i * k_stride, 16, rows[0]);
    if (i + 1 < k) round_to_bf16(b + (i + 1) * k_stride, 16, rows[1]);
    else std::fill_n(rows[1], 16, uint16_t{0});
    for (int j = 0; j < 16; ++j) out[2 * j] = rows[0][j], out[2 * j + 1] = rows[1][j];
  }
}

void pack_pair_panel(const float* b, int64_t k, int64_t width, int64_t k_stride, int64_t n_stride, uint16_t* out) {
  if (width == 16 && n_stride == 1) return interleave(b, k, k_stride, out);
  alignas(64) float block[16][kStep];
  alignas(64) uint16_t rounded[16][kStep];
  for (int64_t k0 = 0; k0 < k; k0 += kStep) {
    const int64_t count = std::min(kStep, k - k0);
    gather(b + k0 * k_stride, count, width, k_stride, n_stride, block);
    for (int64_t j = 0; j < 16; ++j) round_to_bf16(block[j], even(count), rounded[j]);
    for (int64_t i = 0; i < count; i += 2, out += 32)
      for (int64_t j = 0; j < 16; ++j) std::memcpy(out + 2 * j, &rounded[j][i], 4);
  }
}

}  // namespace

void pack_pair_panels(const float* b, int64_t k, int64_t n, int64_t k_stride, int64_t n_stride, int64_t first,
                      int64_t last, uint16_t* out) {
  for (int64_t p = first; p < last; ++p)
    pack_pair_panel(b + p * 16 * n_stride, k, std::min<int64_t>(16, n - p * 16), k_stride, n_stride,
                    out + (p - first) * even(k) * 16);
}

}  // namespace ge::kernels::cube
