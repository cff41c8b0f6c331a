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
