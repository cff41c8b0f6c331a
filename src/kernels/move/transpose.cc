#include "kernels/isa.h"
#include "kernels/move/copy.h"
#include "kernels/move/element_size.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace ge::kernels::move {
namespace {

template <class T>
void transpose_plain(const std::byte* from, int64_t from_pitch, std::byte* to, int64_t to_pitch, int64_t na,
                     int64_t nb) {
  for (int64_t a = 0; a < na; ++a) {
    const std::byte* p = from + a * static_cast<int64_t>(sizeof(T));
    std::byte* q = to + a * to_pitch;
    for (int64_t b = 0; b < nb; ++b) store(q + b * static_cast<int64_t>(sizeof(T)), load<T>(p + b * from_pitch));
  }
}

#if defined(__x86_64__)

using Reg128 = __m128i;
inline Reg128 load128(const std::byte* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
inline void store128(std::byte* p, Reg128 v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v); }

template <int kBytes>
inline Reg128 unpack_low(Reg128 a, Reg128 b) {
  if constexpr (kBytes == 1) return _mm_unpacklo_epi8(a, b);
  else if constexpr (kBytes == 2) return _mm_unpacklo_epi16(a, b);
  else if constexpr (kBytes == 4) return _mm_unpacklo_epi32(a, b);
  else return _mm_unpacklo_epi64(a, b);
}
template <int kBytes>
inline Reg128 unpack_high(Reg128 a, Reg128 b) {
  if constexpr (kBytes == 1) return _mm_unpackhi_epi8(a, b);
  else if constexpr (kBytes == 2) return _mm_unpackhi_epi16(a, b);
  else if constexpr (kBytes == 4) return _mm_unpackhi_epi32(a, b);
  else return _mm_unpackhi_epi64(a, b);
}

#elif defined(__aarch64__)

using Reg128 = uint8x16_t;
inline Reg128 load128(const std::byte* p) { return vld1q_u8(reinterpret_cast<const uint8_t*>(p)); }
inline void store128(std::byte* p, Reg128 v) { vst1q_u8(reinterpret_cast<uint8_t*>(p), v); }

template <int kBytes>
inline Reg128 unpack_low(Reg128 a, Reg128 b) {
  if constexpr (kBytes == 1) return vzip1q_u8(a, b);
  else if constexpr (kBytes == 2) return (Reg128)vzip1q_u16((uint16x8_t)a, (uint16x8_t)b);
  else if constexpr (kBytes == 4) return (Reg128)vzip1q_u32((uint32x4_t)a, (uint32x4_t)b);
  else return (Reg128)vzip1q_u64((uint64x2_t)a, (uint64x2_t)b);
}
template <int kBytes>
inline Reg128 unpack_high(Reg128 a, Reg128 b) {
  if constexpr (kBytes == 1) return vzip2q_u8(a, b);
  else if constexpr (kBytes == 2) return (Reg128)vzip2q_u16((uint16x8_t)a, (uint16x8_t)b);
  else if constexpr (kBytes == 4) return (Reg128)vzip2q_u32((uint32x4_t)a, (uint32x4_t)b);
  else return (Reg128)vzip2q_u64((uint64x2_t)a, (uint64x2_t)b);
}

#endif

#if defined(__x86_64__) || defined(__aarch64__)

// N registers of N elements; log2(N) perfect shuffles transpose them.
template <int kBytes>
inline void transpose_registers(const std::byte* from, int64_t from_pitch, std::byte* to, int64_t to_pitch) {
  constexpr int kN = 16 / kBytes;
  Reg128 x[kN], y[kN];
#pragma GCC unroll 16
  for (int i = 0; i < kN; ++i) x[i] = load128(from + i * from_pitch);
#pragma GCC unroll 4
  for (int round = 1; round < kN; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kN / 2; ++i) {
      y[2 * i] = unpack_low<kBytes>(x[i], x[i + kN / 2]);
      y[2 * i + 1] = unpack_high<kBytes>(x[i], x[i + kN / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kN; ++i) x[i] = y[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kN; ++i) store128(to + i * to_pitch, x[i]);
}

template <int kBytes, class T>
void transpose_blocks(const std::byte* from, int64_t from_pitch, std::byte* to, int64_t to_pitch, int64_t na,
                      int64_t nb) {
  constexpr int64_t kN = 16 / kBytes;
  int64_t full_a = na / kN * kN, full_b = nb / kN * kN;
  for (int64_t b = 0; b < full_b; b += kN)
    for (int64_t a = 0; a < full_a; a += kN)
      transpose_registers<kBytes>(from + a * kBytes + b * from_pitch, from_pitch, to + a * to_pitch + b * kBytes, to_pitch);
  if (full_b < nb)
    transpose_plain<T>(from + full_b * from_pitch, from_pitch, to + full_b * kBytes, to_pitch, na, nb - full_b);
  if (full_a < na)
    transpose_plain<T>(from + full_a * kBytes, from_pitch, to + full_a * to_pitch, to_pitch, na - full_a, full_b);
}

#endif

#if defined(__x86_64__)

// 8x8 of 4 bytes; rows i and i+4 share a register, so that shuffles stay inside 128-bit lanes.
__attribute__((target("avx2"))) inline void transpose_8x8(const std::byte* from, int64_t from_pitch,
                                                          std::byte* to, int64_t to_pitch) {
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const std::byte* p = from + 16 * half;
    std::byte* q = to + 4 * half * to_pitch;
    __m256 x[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      x[i] = _mm256_insertf128_ps(
          _mm256_castps128_ps256(_mm_loadu_ps(reinterpret_cast<const float*>(p + i * from_pitch))),
          _mm_loadu_ps(reinterpret_cast<const float*>(p + (i + 4) * from_pitch)), 1);
    __m256 t0 = _mm256_unpacklo_ps(x[0], x[1]), t1 = _mm256_unpackhi_ps(x[0], x[1]);
    __m256 t2 = _mm256_unpacklo_ps(x[2], x[3]), t3 = _mm256_unpackhi_ps(x[2], x[3]);
    _mm256_storeu_ps(reinterpret_cast<float*>(q), _mm256_shuffle_ps(t0, t2, 0x44));
    _mm256_storeu_ps(reinterpret_cast<float*>(q + to_pitch), _mm256_shuffle_ps(t0, t2, 0xee));
    _mm256_storeu_ps(reinterpret_cast<float*>(q + 2 * to_pitch), _mm256_shuffle_ps(t1, t3, 0x44));
    _mm256_storeu_ps(reinterpret_cast<float*>(q + 3 * to_pitch), _mm256_shuffle_ps(t1, t3, 0xee));
  }
}

// 4x4 of 8 bytes, likewise.
__attribute__((target("avx2"))) inline void transpose_4x4(const std::byte* from, int64_t from_pitch, std::byte* to,
                                                          int64_t to_pitch) {
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const std::byte* p = from + 16 * half;
    std::byte* q = to + 2 * half * to_pitch;
    __m256d x[2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i)
      x[i] = _mm256_insertf128_pd(
          _mm256_castpd128_pd256(_mm_loadu_pd(reinterpret_cast<const double*>(p + i * from_pitch))),
          _mm_loadu_pd(reinterpret_cast<const double*>(p + (i + 2) * from_pitch)), 1);
    _mm256_storeu_pd(reinterpret_cast<double*>(q), _mm256_unpacklo_pd(x[0], x[1]));
    _mm256_storeu_pd(reinterpret_cast<double*>(q + to_pitch), _mm256_unpackhi_pd(x[0], x[1]));
  }
}

template <class T>
__attribute__((target("avx2"))) void transpose_avx2(const std::byte* from, int64_t from_pitch, std::byte* to,
                                                    int64_t to_pitch, int64_t na, int64_t nb) {
  constexpr int64_t kBytes = sizeof(T), kN = 32 / kBytes;
  int64_t full_a = na / kN * kN, full_b = nb / kN * kN;
  for (int64_t b = 0; b < full_b; b += kN)
    for (int64_t a = 0; a < full_a; a += kN) {
      const std::byte* p = from + a * kBytes + b * from_pitch;
      std::byte* q = to + a * to_pitch + b * kBytes;
      if constexpr (kBytes == 4) transpose_8x8(p, from_pitch, q, to_pitch);
      else transpose_4x4(p, from_pitch, q, to_pitch);
    }
  if (full_b < nb)
    transpose_blocks<kBytes, T>(from + full_b * from_pitch, from_pitch, to + full_b * kBytes, to_pitch, na, nb - full_b);
  if (full_a < na)
    transpose_blocks<kBytes, T>(from + full_a * kBytes, from_pitch, to + full_a * to_pitch, to_pitch, na - full_a, full_b);
}

#endif

}  // namespace

void transpose_tile(const std::byte* from, int64_t from_pitch, std::byte* to, int64_t to_pitch, int64_t na,
                    int64_t nb, int64_t bytes) {
#if defined(__x86_64__)
  if (bytes == 4 && isa() >= Isa::avx2) return transpose_avx2<uint32_t>(from, from_pitch, to, to_pitch, na, nb);
  if (bytes == 8 && isa() >= Isa::avx2) return transpose_avx2<uint64_t>(from, from_pitch, to, to_pitch, na, nb);
#endif
  with_element(bytes, [&](auto tag) {
    using T = decltype(tag);
#if defined(__x86_64__) || defined(__aarch64__)
    if constexpr (sizeof(T) <= 8) return transpose_blocks<sizeof(T), T>(from, from_pitch, to, to_pitch, na, nb);
#endif
    transpose_plain<T>(from, from_pitch, to, to_pitch, na, nb);
  });
}

}  // namespace ge::kernels::move
