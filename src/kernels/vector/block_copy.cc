#include "kernels/vector/block_copy.h"

#include <cstring>

namespace ge::kernels::vector {
namespace {

template <class T>
void move_one(std::byte* dst, const std::byte* src) {
  T x;
  std::memcpy(&x, src, sizeof x);
  std::memcpy(dst, &x, sizeof x);
}

template <class T>
void fill_row(std::byte* dst, const std::byte* src, int64_t cols) {
  T x;
  std::memcpy(&x, src, sizeof x);
  for (int64_t c = 0; c < cols; ++c) std::memcpy(dst + c * static_cast<int64_t>(sizeof x), &x, sizeof x);
}

// Four rows of four adjacent elements to four columns of four adjacent ones.
void turn_four(std::byte* dst, int64_t dst_step, const std::byte* src, int64_t src_step) {
  using Four = uint32_t __attribute__((vector_size(16)));
  Four r[4];
  for (int i = 0; i < 4; ++i) std::memcpy(&r[i], src + i * src_step, sizeof r[i]);
  const Four low{0, 4, 1, 5}, high{2, 6, 3, 7}, first{0, 1, 4, 5}, second{2, 3, 6, 7};
  const Four a = __builtin_shuffle(r[0], r[1], low), b = __builtin_shuffle(r[2], r[3], low);
  const Four c = __builtin_shuffle(r[0], r[1], high), d = __builtin_shuffle(r[2], r[3], high);
  const Four out[4] = {__builtin_shuffle(a, b, first), __builtin_shuffle(a, b, second), __builtin_shuffle(c, d, first),
                       __builtin_shuffle(c, d, second)};
  for (int i = 0; i < 4; ++i) std::memcpy(dst + i * dst_step, &out[i], sizeof out[i]);
}

// The part of a transposition that is made of whole squares of four; returns how many rows that is. Columns are adjacent
// on one side, rows on the other.
int64_t turn_squares(const Block& d, const Block& s, int64_t rows, int64_t cols) {
  const int64_t whole_rows = rows / 4 * 4, whole_cols = cols / 4 * 4;
  const bool gathers = s.col_stride == 4;   // the rows of the source are its runs
  for (int64_t r = 0; r < whole_rows; r += 4) {
    for (int64_t c = 0; c < whole_cols; c += 4) {
      std::byte* to = d.data + r * d.row_stride + c * d.col_stride;
      const std::byte* from = s.data + r * s.row_stride + c * s.col_stride;
      turn_four(to, gathers ? d.col_stride : d.row_stride, from, gathers ? s.row_stride : s.col_stride);
    }
    for (int64_t c = whole_cols; c < cols; ++c)
      for (int64_t i = r; i < r + 4; ++i)
        move_one<uint32_t>(d.data + i * d.row_stride + c * d.col_stride, s.data + i * s.row_stride + c * s.col_stride);
  }
  return whole_rows;
}

template <class T>
void copy_typed(const Block& d, const Block& s, int64_t rows, int64_t cols) {
  constexpr int64_t kSize = sizeof(T);
  bool dense = d.col_stride == kSize;
  if (dense && (s.col_stride == kSize || s.col_stride == 0)) {
    for (int64_t r = 0; r < rows; ++r) {
      std::byte* to = d.data + r * d.row_stride;
      const std::byte* from = s.data + r * s.row_stride;
      if (s.col_stride) std::memcpy(to, from, static_cast<size_t>(cols * kSize));
      else fill_row<T>(to, from, cols);
    }
    return;
  }
  if constexpr (kSize == 4)
    if ((d.row_stride == 4 && s.col_stride == 4) || (d.col_stride == 4 && s.row_stride == 4)) {
      const int64_t done = turn_squares(d, s, rows, cols);
      for (int64_t r = done; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c) move_one<T>(d.data + r * d.row_stride + c * d.col_stride, s.data + r * s.row_stride + c * s.col_stride);
      return;
    }
  // A transposition: as many rows at a time as share a cache line on the side where rows are adjacent.
  if (s.row_stride == kSize || d.row_stride == kSize) {
    constexpr int64_t kRows = 64 / kSize;
    for (int64_t r0 = 0; r0 < rows; r0 += kRows) {
      int64_t n = rows - r0 < kRows ? rows - r0 : kRows;
      std::byte* to = d.data + r0 * d.row_stride;
      const std::byte* from = s.data + r0 * s.row_stride;
      for (int64_t c = 0; c < cols; ++c, to += d.col_stride, from += s.col_stride)
        for (int64_t r = 0; r < n; ++r) move_one<T>(to + r * d.row_stride, from + r * s.row_stride);
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      move_one<T>(d.data + r * d.row_stride + c * d.col_stride, s.data + r * s.row_stride + c * s.col_stride);
}

}  // namespace

void copy_block(const Block& dst, const Block& src, int64_t rows, int64_t cols, int64_t element) {
  switch (element) {
    case 1: return copy_typed<uint8_t>(dst, src, rows, cols);
    case 2: return copy_typed<uint16_t>(dst, src, rows, cols);
    case 4: return copy_typed<uint32_t>(dst, src, rows, cols);
    default: return copy_typed<uint64_t>(dst, src, rows, cols);
  }
}

}  // namespace ge::kernels::vector
