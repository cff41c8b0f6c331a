// Nest: the loops over one index space with up to kNestOperands strided operands, brought to the
// simplest form (no axes of size 1, axes that every operand steps through evenly joined), and the cutting
// of such loops into chunks. Offsets are in bytes.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "tensor/view.h"

namespace ge::kernels::move {

inline constexpr int kNestOperands = 4;
inline constexpr int kNestRank = 2 * kMaxRank;

struct Nest {
  int rank = 0;
  int operands = 0;
  int64_t dims[kNestRank];
  int64_t steps[kNestOperands][kNestRank];  // bytes

  // All operands must have the dims of the first.
  static Nest of(std::span<const View> views);
  int64_t count() const;
  // Sorts axes so that operand k walks its memory forward (largest step outermost).
  void sort_for(int k);
  // Drops axes of size 1 and joins neighbours; keeps order. An empty space becomes rank 1, size 0.
  void simplify();
};

// Odometer over the outer `rank` axes of a Nest; positions as byte offsets.
struct Walker {
  const Nest& nest;
  int rank;
  int64_t index[kNestRank];
  int64_t at[kNestOperands];

  // Starts at flat position `start` of the outer axes.
  Walker(const Nest& n, int outer_rank, int64_t start);
  void next() {
    for (int i = rank - 1; i >= 0; --i) {
      if (++index[i] < nest.dims[i]) {
        for (int k = 0; k < nest.operands; ++k) at[k] += nest.steps[k][i];
        return;
      }
      index[i] = 0;
      for (int k = 0; k < nest.operands; ++k) at[k] -= nest.steps[k][i] * (nest.dims[i] - 1);
    }
  }
};

// Range of units that a chunk does: units are dealt out evenly.
struct Span {
  int64_t begin, end;
};
inline Span chunk_span(int64_t units, int64_t chunks, int64_t chunk) {
  // units may be near 2^52 and chunks is small, but the product must not overflow.
  int64_t q = units / chunks, r = units % chunks;
  int64_t begin = q * chunk + (chunk < r ? chunk : r);
  return {begin, begin + q + (chunk < r ? 1 : 0)};
}
// How many chunks for so many units of so many bytes: about 128 KiB a chunk, at most 256 chunks.
int64_t chunks_for(int64_t units, int64_t unit_bytes);

}  // namespace ge::kernels::move
