// The register-blocked f32 microkernels under matmul, convolution, attention and the recurrent cells:
// C[m][n] = epilogue(sum over k of A[m][k] * B[k][n]) with B in packed panels of 16 columns, or as it lies for
// a few rows.
//
// One thread, one block of C that a chunk owns; cutting work into chunks is the caller's. A is read in
// place. Each element of C depends on its row of A, its column of B, and m (few rows sum k in several
// chains), never on who runs it. Not here: packing (pack.h), the kernels of the table (matmul.cc, …).
#pragma once

#include <cstdint>

namespace ge::kernels::cube {

inline constexpr int64_t kPanel = 16;      // columns of a packed panel of B
inline constexpr int64_t kBlockRows = 96;  // rows between two passes over B; finish() sees at most these,
inline constexpr int64_t kSlice = 128;     // and at most so many columns: one step of the interpreter
inline constexpr int64_t kRowGroup = 8;    // rows of A that may be known to lie evenly
inline constexpr int64_t kFewRows = 16;    // up to so many rows B may be read as it lies

// How B lies: in packed panels; or B[k][n] with n contiguous; or with k contiguous (B^T row-major).
enum class BForm : uint8_t { panels, rows, columns };

// Narrow types that B may have where it is read as it lies.
enum class Narrow : uint8_t { bf16, f16, i8 };

// The activations that the epilogue applies in registers; NaN passes through all of them.
enum class Act : uint8_t { none = 0, relu = 1, clip = 2, leaky = 3 };

// What happens to a finished sum, in this order:
// x = sum * scale; x += old C (accumulate); x += bias[column]; x += residual; act; then finish().
struct Epilogue {
  float scale = 1;
  bool accumulate = false;
  const float* bias = nullptr;      // [n], or null
  const float* residual = nullptr;  // row i at residual + i * ld_residual, inner stride 1; may be C itself
  int64_t ld_residual = 0;
  Act act = Act::none;
  float lo = 0, hi = 0;             // clip to [lo, hi]
  float alpha = 0;                  // leaky: x < 0 ? alpha * x : x
  // Further work on a cache-hot part of C: rows [row, row + rows) and columns [column, column + columns)
  // of the Block, column a multiple of 16, c pointing at the first element. Each element is seen once.
  void (*finish)(const void* context, float* c, int64_t ldc, int64_t row, int64_t rows, int64_t column,
                 int64_t columns) = nullptr;
  const void* context = nullptr;
};

struct Block {
  int64_t m = 0, n = 0;
  // Row i of A starts at a + (row_offset ? row_offset[i] : i * lda). Its K = segments * segment_k values
  // are runs of segment_k contiguous floats, run s at row start + segment_offset[s]; a null
  // segment_offset means that all runs start at 0 (plain matmul: segments = 1, segment_k = K).
  // With row_offset and lda, rows lie evenly in groups: row i starts at a + row_offset[i / kRowGroup] + i % kRowGroup * lda.
  // Offsets are in floats and may be negative.
  const float* a = nullptr;
  int64_t lda = 0;
  const int64_t* row_offset = nullptr;
  const int64_t* segment_offset = nullptr;
  int64_t segments = 1, segment_k = 0;
  // B: ceil(n / 16) panels [K][16], the next panel b_stride floats on (normally K * 16). The columns
  // beyond n of the last panel must be readable; their values do not matter. In the other two forms
  // b_stride is the step between rows or between columns, m <= kFewRows and segments = 1.
  BForm b_form = BForm::panels;
  const float* b = nullptr;
  const void* b_narrow = nullptr;  // in place of b, in those other two forms: elements of type `narrow`
  Narrow narrow = Narrow::bf16;
  int64_t b_stride = 0;
  // C: row i at c + i * ldc, inner stride 1; nothing beyond column n is touched. Never overlaps A or B.
  float* c = nullptr;
  int64_t ldc = 0;
  Epilogue epilogue;
};

// Computes all of C with the instruction set that isa() names. Any m and n; K = 0 gives sums of 0.
void multiply(const Block& block);

// Rows of C that the widest tile takes at a time for n columns: cut m into multiples of it.
int64_t tile_rows(int64_t n);

// The implementations behind multiply(); isa() chooses.
namespace avx512 {
void multiply(const Block& block);
}
namespace avx2 {
void multiply(const Block& block);
}
namespace portable {
void multiply(const Block& block);
}

}  // namespace ge::kernels::cube
