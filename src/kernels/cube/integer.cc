#include "kernels/cube/integer.h"

#include <algorithm>
#include <cstring>

#include "kernels/cube/simd.h"
#include "kernels/isa.h"

namespace ge::kernels::cube {

void pack_integer(const View& b, int8_t* out, int32_t* sums) {
  const int64_t k = b.dim(0), n = b.dim(1), q = quads(k), panels = (n + 15) / 16;
  const uint8_t flip = b.dtype == DType::u8 ? 0x80 : 0;
  std::fill_n(out, packed_integer_bytes(k, n), int8_t{0});   // of no elements, too
  std::fill_n(sums, panels * 16, 0);
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const auto v = static_cast<int8_t>(b.as<uint8_t>()[i * b.stride(0) + j * b.stride(1)] ^ flip);
      out[((j / 16 * q + i / 4) * 16 + j % 16) * 4 + i % 4] = v;
      sums[j] += v;
    }
  }
}

namespace {

// The end of a tile in plain code: rows that have a sum of their own, and floats.
void finish_rows(const IntegerBlock& t, int64_t i, int64_t j0, int64_t columns) {
  int32_t* c = t.c + i * t.ldc + j0;
  if (t.row_sum)
    for (int64_t j = 0; j < columns; ++j)
      c[j] = static_cast<int32_t>(static_cast<uint32_t>(c[j]) - static_cast<uint32_t>(t.row_sum[i]) * static_cast<uint32_t>(t.column_zero[j0 + j]));
  if (!t.to_float) return;
  for (int64_t j = 0; j < columns; ++j) {
    float f = static_cast<float>(c[j]) * t.scale[j0 + j];
    f += t.bias[j0 + j];
    std::memcpy(c + j, &f, sizeof f);
  }
}

void multiply_portable(const IntegerBlock& t) {
  for (int64_t j0 = 0; j0 < t.n; j0 += 16) {
    const int8_t* b = t.b + j0 / 16 * t.b_stride;
    for (int64_t i = 0; i < t.m; ++i) {
      const uint8_t* a = t.a + i * t.lda;
      uint32_t sum[16];
      for (int64_t j = 0; j < 16; ++j) sum[j] = static_cast<uint32_t>(t.start[j0 + j]);
      for (int64_t k = 0; k < t.quads; ++k)
        for (int64_t j = 0; j < 16; ++j) {
          const int8_t* q = b + (k * 16 + j) * 4;
          sum[j] += static_cast<uint32_t>(a[4 * k] * q[0] + a[4 * k + 1] * q[1] + a[4 * k + 2] * q[2] + a[4 * k + 3] * q[3]);
        }
      std::memcpy(t.c + i * t.ldc + j0, sum, sizeof sum);
      finish_rows(t, i, j0, 16);
    }
  }
}

#if defined(__x86_64__)
#define GE_EACH(BODY)                            \
  GE_UNROLL                                      \
  for (int i = 0; i < MR; ++i) {                 \
    GE_UNROLL                                    \
    for (int j = 0; j < NV; ++j) { BODY; }       \
  }

// --- AVX2 without dot products: bytes widened to 16 bits, so that no pair of products saturates ---

GE_TARGET_BEGIN(GE_AVX2)
template <int MR>
[[gnu::noinline]] static void tile_avx2(const IntegerBlock& t, int64_t i0, int64_t j0) {
  constexpr int NV = 4;  // four columns each, as two halves of a sum side by side
  const int8_t* b = t.b + j0 / 16 * t.b_stride;
  const uint8_t* a = t.a + i0 * t.lda;
  __m256i acc[MR][NV];
  GE_EACH(acc[i][j] = _mm256_setzero_si256())
  for (int64_t k = 0; k < t.quads; ++k, b += 64) {
    __m256i bv[NV];
    GE_UNROLL
    for (int j = 0; j < NV; ++j) bv[j] = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + 16 * j)));
    GE_UNROLL
    for (int i = 0; i < MR; ++i) {
      int32_t x;
      std::memcpy(&x, a + i * t.lda + 4 * k, 4);
      const __m256i av = _mm256_cvtepu8_epi16(_mm_set1_epi32(x));
      GE_UNROLL
      for (int j = 0; j < NV; ++j) acc[i][j] = _mm256_add_epi32(acc[i][j], _mm256_madd_epi16(av, bv[j]));
    }
  }
  GE_UNROLL
  for (int i = 0; i < MR; ++i) {
    GE_UNROLL
    for (int j = 0; j < NV; j += 2) {
      __m256i s = _mm256_permute4x64_epi64(_mm256_hadd_epi32(acc[i][j], acc[i][j + 1]), 0xd8);
      s = _mm256_add_epi32(s, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(t.start + j0 + 4 * j)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(t.c + (i0 + i) * t.ldc + j0 + 4 * j), s);
    }
  }
}
GE_TARGET_END

// --- AVX-VNNI (256 bits) and AVX512-VNNI. The instruction as assembly: gcc 12 spills the accumulators around
// its builtin. ---

GE_TARGET_BEGIN(GE_AVX2 ",avxvnni")
template <int MR>
[[gnu::noinline]] static void tile_avx_vnni(const IntegerBlock& t, int64_t i0, int64_t j0) {
  constexpr int NV = 2;
  const int8_t* b = t.b + j0 / 16 * t.b_stride;
  const uint8_t* a = t.a + i0 * t.lda;
  __m256i acc[MR][NV];
  GE_EACH(acc[i][j] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(t.start + j0 + 8 * j)))
  for (int64_t k = 0; k < t.quads; ++k, b += 64) {
    __m256i bv[NV];
    GE_UNROLL
    for (int j = 0; j < NV; ++j) bv[j] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + 32 * j));
    GE_UNROLL
    for (int i = 0; i < MR; ++i) {
      int32_t x;
      std::memcpy(&x, a + i * t.lda + 4 * k, 4);
      const __m256i av = _mm256_set1_epi32(x);
      GE_UNROLL
      for (int j = 0; j < NV; ++j) asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(acc[i][j]) : "x"(av), "x"(bv[j]));
    }
  }
  GE_EACH(_mm256_storeu_si256(reinterpret_cast<__m256i*>(t.c + (i0 + i) * t.ldc + j0 + 8 * j), acc[i][j]))
}
GE_TARGET_END

GE_TARGET_BEGIN(GE_AVX512 ",avx512vnni")
template <int MR, int NV>
[[gnu::noinline]] static void tile_avx512(const IntegerBlock& t, int64_t i0, int64_t j0) {
  const int8_t* b = t.b + j0 / 16 * t.b_stride;
  const uint8_t* a = t.a + i0 * t.lda;
  __m512i acc[MR][NV];
  GE_EACH(acc[i][j] = _mm512_loadu_si512(t.start + j0 + 16 * j))
  for (int64_t k = 0; k < t.quads; ++k, b += 64) {
    __m512i bv[NV];
    GE_UNROLL
    for (int j = 0; j < NV; ++j) bv[j] = _mm512_loadu_si512(b + j * t.b_stride);
    GE_UNROLL
    for (int i = 0; i < MR; ++i) {
      int32_t x;
      std::memcpy(&x, a + i * t.lda + 4 * k, 4);
      const __m512i av = _mm512_set1_epi32(x);
      GE_UNROLL
      for (int j = 0; j < NV; ++j) asm("vpdpbusd %2, %1, %0" : "+v"(acc[i][j]) : "v"(av), "v"(bv[j]));
    }
    GE_UNROLL
    for (int j = 0; j < NV; ++j) __builtin_prefetch(b + j * t.b_stride + 16 * 64);
  }
  int32_t* c = t.c + i0 * t.ldc + j0;
  if (t.row_sum) {
    GE_EACH(acc[i][j] = _mm512_sub_epi32(acc[i][j], _mm512_mullo_epi32(_mm512_set1_epi32(t.row_sum[i0 + i]), _mm512_loadu_si512(t.column_zero + j0 + 16 * j))))
  }
  if (t.to_float) {
    __m512 scale[NV], bias[NV];
    GE_UNROLL
    for (int j = 0; j < NV; ++j) scale[j] = _mm512_loadu_ps(t.scale + j0 + 16 * j), bias[j] = _mm512_loadu_ps(t.bias + j0 + 16 * j);
    GE_EACH(_mm512_storeu_ps(c + i * t.ldc + 16 * j, _mm512_add_ps(_mm512_mul_ps(_mm512_maskz_cvtepi32_ps(0xffff, acc[i][j]), scale[j]), bias[j])))
  } else {
    GE_EACH(_mm512_storeu_si512(c + i * t.ldc + 16 * j, acc[i][j]))
  }
}
GE_TARGET_END
#undef GE_EACH

using TileFn = void (*)(const IntegerBlock&, int64_t, int64_t);

// Rows [0, m) in tiles of nearly equal height.
void run_rows(const IntegerBlock& t, const TileFn* fn, int64_t height, int64_t j0) {
  const int64_t count = (t.m + height - 1) / height;
  for (int64_t s = 0, i = 0; s < count; ++s) {
    const int64_t rows = t.m / count + (s < t.m % count ? 1 : 0);
    fn[rows - 1](t, i, j0);
    i += rows;
  }
}

void finish_block(const IntegerBlock& t) {
  if (!t.row_sum && !t.to_float) return;
  for (int64_t i = 0; i < t.m; ++i) finish_rows(t, i, 0, (t.n + 15) / 16 * 16);
}

void multiply_avx2(const IntegerBlock& t) {
  constexpr TileFn kFn[] = {tile_avx2<1>, tile_avx2<2>, tile_avx2<3>};
  for (int64_t j0 = 0; j0 < t.n; j0 += 16) run_rows(t, kFn, 3, j0);
  finish_block(t);
}

void multiply_avx_vnni(const IntegerBlock& t) {
  constexpr TileFn kFn[] = {tile_avx_vnni<1>, tile_avx_vnni<2>, tile_avx_vnni<3>, tile_avx_vnni<4>, tile_avx_vnni<5>, tile_avx_vnni<6>};
  for (int64_t j0 = 0; j0 < t.n; j0 += 16) run_rows(t, kFn, 6, j0);
  finish_block(t);
}

template <int NV>
struct Rows512 {
  static constexpr TileFn kFn[8] = {tile_avx512<1, NV>, tile_avx512<2, NV>, tile_avx512<3, NV>, tile_avx512<4, NV>,
                                    tile_avx512<5, NV>, tile_avx512<6, NV>, tile_avx512<7, NV>, tile_avx512<8, NV>};
};
template <>
struct Rows512<4> {
  static constexpr TileFn kFn[6] = {tile_avx512<1, 4>, tile_avx512<2, 4>, tile_avx512<3, 4>, tile_avx512<4, 4>, tile_avx512<5, 4>, tile_avx512<6, 4>};
};

void multiply_avx512(const IntegerBlock& t) {
  for (int64_t j0 = 0; j0 < t.n;) {
    // 5 panels are 3 + 2: a last one alone would be bound by loads.
    const int64_t left = (t.n - j0 + 15) / 16, panels = left == 5 ? 3 : left > 4 ? 4 : left;
    switch (panels) {
      case 4: run_rows(t, Rows512<4>::kFn, 6, j0); break;
      case 3: run_rows(t, Rows512<3>::kFn, 8, j0); break;
      case 2: run_rows(t, Rows512<2>::kFn, 8, j0); break;
      default: run_rows(t, Rows512<1>::kFn, 8, j0); break;
    }
    j0 += panels * 16;
  }
}
#endif

IntegerPath best_path() {
  for (IntegerPath p : {IntegerPath::avx512_vnni, IntegerPath::avx_vnni, IntegerPath::avx2})
    if (has_path(p)) return p;
  return IntegerPath::portable;
}

}  // namespace

bool has_path(IntegerPath p) {
  switch (p) {
    case IntegerPath::portable: return true;
    case IntegerPath::avx2: return isa() >= Isa::avx2;
    case IntegerPath::avx_vnni: return has_avx_vnni();
    case IntegerPath::avx512_vnni: return has_avx512_vnni();
  }
  return false;
}

void multiply_integer_on(IntegerPath p, const IntegerBlock& block) {
#if defined(__x86_64__)
  switch (p) {
    case IntegerPath::avx512_vnni: return multiply_avx512(block);
    case IntegerPath::avx_vnni: return multiply_avx_vnni(block);
    case IntegerPath::avx2: return multiply_avx2(block);
    case IntegerPath::portable: break;
  }
#endif
  multiply_portable(block);
}

void multiply_integer(const IntegerBlock& block) { multiply_integer_on(best_path(), block); }

}  // namespace ge::kernels::cube
