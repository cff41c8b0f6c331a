// The row space of an output [d0, ..., dn, columns]: all index tuples of the leading axes, for operands that
// broadcast to it, with axes merged where every operand allows it. Kernels then see a few outer axes and one
// long axis of rows with a constant stride for each operand. Pure index arithmetic.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "tensor/view.h"

namespace ge::kernels::cube {

inline constexpr int kMaxRowOperands = 72;

class RowSpace {
 public:
  // dims: the leading axes of the output.
  explicit RowSpace(std::span<const int64_t> dims);
  // The leading axes of v (all but the last `tail` ones), aligned right with dims, sizes equal or 1.
  // False if they do not fit. Operands are numbered in the order of these calls.
  bool add(const View& v, int tail);
  // Merges axes. Afterwards rows() is the innermost merged axis on which operand `fixed` does not move.
  void merge(int fixed);

  int64_t outer() const { return outer_; }  // product of the outer axes
  int64_t rows() const { return rows_; }
  int64_t row_stride(int operand) const { return row_stride_[operand]; }
  int64_t offset(int operand, int64_t outer_index) const;

 private:
  int rank_ = 0, operands_ = 0;
  std::array<int64_t, kMaxRank> dims_{};
  std::array<std::array<int64_t, kMaxRank>, kMaxRowOperands> strides_{};
  int64_t outer_ = 1, rows_ = 1;
  std::array<int64_t, kMaxRowOperands> row_stride_{};
};

}  // namespace ge::kernels::cube
