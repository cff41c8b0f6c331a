// bf16 products on x86: pairs by AVX512_BF16, else widened to f32. Tiles as in f32.
#include <cstring>

#include "kernels/cube/bf16.h"
#include "kernels/cube/simd.h"

#if defined(__x86_64__)

GE_TARGET_BEGIN(GE_AVX512 ",avx512bf16" GE_TILES)
namespace ge::kernels::cube::bf16::dot {
#include "kernels/cube/microkernel-inl.h"
#include "kernels/cube/bf16-inl.h"

struct Pairs {
  using V = V512;
  using A = __m512bh;
  using B = __m512bh;
  GE_INLINE A set1(const uint16_t* p) {
    int bits;
    std::memcpy(&bits, p, 4);
    return reinterpret_cast<A>(_mm512_set1_epi32(bits));
  }
  GE_INLINE B load(const uint16_t* p) { return reinterpret_cast<B>(_mm512_loadu_si512(p)); }
  GE_INLINE V::F dot(V::F sum, A a, B b) { return _mm512_dpbf16_ps(sum, a, b); }
  GE_INLINE void narrow(uint16_t* p, V::F x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
  }
  GE_INLINE void narrow_n(uint16_t* p, V::F x, int64_t n) {
    _mm256_mask_storeu_epi16(p, V::mask(n), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
  }
};

static constexpr Tiles kTiles[4] = {make_pair_tiles<Pairs, 1, 8>(), make_pair_tiles<Pairs, 2, 8>(),
                                make_pair_tiles<Pairs, 3, 8>(), make_pair_tiles<Pairs, 4, 6>()};

// A last panel alone would be bound by loads: 5 panels are 3 + 2, not 4 + 1.
static const Tiles& choose(int64_t columns) {
  const int64_t panels = (columns + kPanel - 1) / kPanel;
  return kTiles[panels == 5 ? 2 : panels > 4 ? 3 : panels - 1];
}

void multiply(const Bf16Block& block) { run_block(block, choose); }

void round(const float* from, int64_t n, uint16_t* to) {
  int64_t i = 0;
  for (; i + 32 <= n; i += 32)
    _mm512_storeu_si512(to + i, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + i + 16), _mm512_loadu_ps(from + i))));
  for (; i < n; i += 16) {
    const __mmask16 mask = V512::mask(n - i < 16 ? n - i : 16);
    _mm256_mask_storeu_epi16(to + i, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, from + i))));
  }
}

void interleave(const float* b, int64_t k, int64_t k_stride, uint16_t* out) {
  const __m512i halves = _mm512_add_epi32(_mm512_set1_epi32(0x00100000), _mm512_setr_epi32(
      0x00000, 0x10001, 0x20002, 0x30003, 0x40004, 0x50005, 0x60006, 0x70007, 0x80008, 0x90009, 0xa000a, 0xb000b,
      0xc000c, 0xd000d, 0xe000e, 0xf000f));  // j of the first row, then j of the second
  for (int64_t i = 0; i < k; i += 2, out += 32) {
    const __m512 first = _mm512_loadu_ps(b + i * k_stride);
    const __m512 second = i + 1 < k ? _mm512_loadu_ps(b + (i + 1) * k_stride) : _mm512_setzero_ps();
    const auto rows = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
    _mm512_storeu_si512(out, _mm512_maskz_permutexvar_epi16(0xffffffffu, halves, rows));
  }
}

}  // namespace ge::kernels::cube::bf16::dot
GE_TARGET_END

GE_TARGET_BEGIN(GE_AVX512 GE_TILES)
namespace ge::kernels::cube::bf16::avx512 {
#include "kernels/cube/microkernel-inl.h"
#include "kernels/cube/bf16-inl.h"

static constexpr Tiles kTiles[2] = {make_pair_tiles<Widened<V512>, 1, 8>(), make_pair_tiles<Widened<V512>, 2, 8>()};
// A last panel alone: behind it B may end.
static const Tiles& choose(int64_t columns) { return kTiles[columns > kPanel]; }
void multiply(const Bf16Block& block) { run_block(block, choose); }

}  // namespace ge::kernels::cube::bf16::avx512
GE_TARGET_END

GE_TARGET_BEGIN(GE_AVX2)
namespace ge::kernels::cube::bf16::avx2 {
#include "kernels/cube/microkernel-inl.h"
#include "kernels/cube/bf16-inl.h"

static constexpr Tiles kTiles = make_pair_tiles<Widened<V256>, 2, 4>();
static const Tiles& choose(int64_t) { return kTiles; }
void multiply(const Bf16Block& block) { run_block(block, choose); }

}  // namespace ge::kernels::cube::bf16::avx2
GE_TARGET_END
#endif
