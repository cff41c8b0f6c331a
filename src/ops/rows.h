// What row operators (softmax, normalizations, reductions over the last axes) share: the types that
// vector programs compute in, and whether rows lie in one piece so that a program can run over them.
#pragma once

#include "kernels/vector/program.h"
#include "ops/op.h"

namespace ge::ops {

// f32, f16 or bf16: an f32 register.
bool float_lane(DType t);
// The last `axes` axes of the view are one contiguous run.
bool contiguous_row(const Strided& v, int axes);
// The last `axes` axes of input 0 come last and in order in memory too, as far as its layout says.
bool rows_in_order(const Graph& g, const Node& n, int axes);
// v seen with axes [first, first + count) of size 1 inserted; strides 0.
Strided with_axes(Strided v, size_t first, size_t count);
// A [C] operand seen along axis 1 of a tensor with `rank` axes: [C, 1, ...].
Strided along_channels(const Strided& v, int rank);

// A program over rows: the axes [first, first + count) of x and y, which have the same sizes. x is input 0
// seen as `x`, y output 0 seen as `y`; `others` are inputs 1.. of the program, `more` outputs 1... Where the
// rows do not come last, or do not lie in one piece, x is copied first and the result copied back; then
// `others` and `more` must not depend on where the row axes stand, unless the rows come last.
void emit_row_program(LowerContext& c, const kernels::vector::Program& p, const Strided& x, const Strided& y, int first,
                      int count, std::vector<Arg> others = {}, std::vector<Arg> more = {});
// The node's own vector form in this way. Emits nothing where default lowering will do, or without such a form.
Status lower_rows(LowerContext& c, int first, int count);

}  // namespace ge::ops
