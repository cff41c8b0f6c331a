// CopyPlan: how elements of one strided view are brought into another of the same sizes; made once in
// prepare(), then run in any number of pieces. Used by move.copy and by kernels that move blocks (reshape,
// pad, concatenation). Knows nothing of element types, only their bytes.
#pragma once

#include "kernels/move/nest.h"

namespace ge::kernels::move {

struct CopyPlan {
  enum class Kind : uint8_t {
    rows,     // the inner axis is contiguous on both sides: block copies
    strided,  // one element at a time along the inner axis
    tiles,    // another axis is contiguous in the input than in the output: square tiles
  } kind = Kind::rows;
  int64_t element = 1;  // bytes moved as one
  Nest nest;            // operand 0: from, 1: to; at least two axes
  int64_t units = 0;    // independent pieces of work
  int64_t unit_bytes = 1;
  int64_t pieces = 1, piece = 0;  // rows and strided: cutting of the inner axis
  int64_t block_a = 0, block_b = 0, blocks_a = 0, blocks_b = 0;  // tiles: cutting of the last two axes

  int64_t chunks() const { return chunks_for(units, unit_bytes); }
};

// `nest` has operands {from, to}; elements have `bytes` bytes (1, 2, 4, 8 or 16).
CopyPlan plan_copy(Nest nest, int64_t bytes);
// Does units [begin, end) of the plan.
void run_copy(const CopyPlan& plan, const std::byte* from, std::byte* to, int64_t begin, int64_t end);
inline void run_copy_chunk(const CopyPlan& plan, const std::byte* from, std::byte* to, int64_t chunk) {
  Span s = chunk_span(plan.units, plan.chunks(), chunk);
  run_copy(plan, from, to, s.begin, s.end);
}

// Copies n bytes; faster than memcpy for short rows.
inline void copy_row(std::byte* to, const std::byte* from, int64_t n) {
  struct B16 { char b[16]; };
  auto move16 = [&](int64_t i) {
    B16 t;
    std::memcpy(&t, from + i, 16);
    std::memcpy(to + i, &t, 16);
  };
  if (n >= 16 && n <= 256) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) move16(i);
    if (i < n) move16(n - 16);
  } else if (n > 256) {
    std::memcpy(to, from, static_cast<size_t>(n));
  } else if (n >= 8) {
    uint64_t a, b;
    std::memcpy(&a, from, 8), std::memcpy(&b, from + n - 8, 8);
    std::memcpy(to, &a, 8), std::memcpy(to + n - 8, &b, 8);
  } else if (n >= 4) {
    uint32_t a, b;
    std::memcpy(&a, from, 4), std::memcpy(&b, from + n - 4, 4);
    std::memcpy(to, &a, 4), std::memcpy(to + n - 4, &b, 4);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  }
}

// Transposes one tile: to[a][b] = from[b][a], na x nb elements of `bytes` bytes; pitches in bytes.
void transpose_tile(const std::byte* from, int64_t from_pitch, std::byte* to, int64_t to_pitch, int64_t na,
                    int64_t nb, int64_t bytes);

}  // namespace ge::kernels::move
