// Programs that reduce short rows, with the rows along the lanes: each column of an operand is an operand of an
// elementwise program, a reduction is a tree of operators on columns. Many rows then go through each instruction,
// where one after another each would wait for its own reductions.
#pragma once

#include <memory>

#include "kernels/kernel.h"
#include "kernels/vector/geometry.h"
#include "kernels/vector/program.h"

namespace ge::kernels::vector {

inline constexpr int64_t kShortRow = 64;   // columns at most

// The program for rows of `cols` columns; `single`: operands (inputs, then outputs) that have one value for the row.
// Sums add up in the order of Op's comment.
Result<Program> unrolled(const Program& p, int64_t cols, const std::vector<bool>& single);

class ShortRows {
 public:
  // Null where it does not apply, or would not pay. before: of the same program for other sizes, or null.
  static std::shared_ptr<const ShortRows> plan(const Program& p, const Geometry& g, const Call& call, const ShortRows* before);
  int64_t chunks() const { return chunks_; }
  int64_t scratch() const { return scratch_; }
  void run(const Call& call, int64_t chunk) const;

 private:
  struct Operand {
    int64_t columns = 1, element = 4;
    int64_t row_step = 0, column_step = 0;        // bytes, in memory
    int64_t buffer = -1;                          // offset in the scratch of [column][row]; -1: read where it lies
  };
  void unit(const Call& call, int64_t outer, int64_t row) const;
  int64_t place(size_t k, int64_t outer, int64_t row) const;
  int64_t stride(const Operand& o) const { return block_ * o.element + 64; }  // a power of two would meet in few sets

  Geometry g_;
  std::shared_ptr<const Compiled> compiled_;
  std::vector<Operand> operands_;
  size_t inputs_ = 0;
  int64_t rows_ = 0, block_ = 0, blocks_ = 0, units_ = 0, chunks_ = 0, scratch_ = 0;
};

}  // namespace ge::kernels::vector
