#include "ops/rows.h"

#include <algorithm>

#include "ops/fused_tail.h"
#include "ops/vector_lowering.h"

namespace ge::ops {

using kernels::vector::ProgramBuilder;
using kernels::vector::Reg;

bool float_lane(DType t) { return t == DType::f32 || t == DType::f16 || t == DType::bf16; }

bool contiguous_row(const Strided& v, int axes) {
  Dim step(1);
  for (size_t a = v.dims.size(); a-- > v.dims.size() - static_cast<size_t>(axes);) {
    if (v.dims[a].is(1)) continue;
    if (!(v.strides[a] == step)) return false;
    step = step * v.dims[a];
  }
  return true;
}

bool rows_in_order(const Graph& g, const Node& n, int axes) {
  auto& layout = g.value(n.inputs[0]).layout;
  for (size_t i = layout.size(); i-- > layout.size() - std::min(layout.size(), static_cast<size_t>(axes));)
    if (layout[i] != static_cast<int>(i)) return false;
  return true;
}

Strided with_axes(Strided v, size_t first, size_t count) {
  for (size_t i = 0; i < count; ++i) v = with_axis(std::move(v), first);
  return v;
}

Strided along_channels(const Strided& v, int rank) {
  return rank < 2 ? v : with_axes(v, 1, static_cast<size_t>(rank) - 2);
}

namespace {

// The axes [first, first + count) moved to the end.
Strided rows_last(const Strided& v, size_t first, size_t count) {
  Strided out{v.offset, {}, {}};
  auto take = [&](size_t a) { out.dims.push_back(v.dims[a]), out.strides.push_back(v.strides[a]); };
  for (size_t a = 0; a < v.dims.size(); ++a)
    if (a < first || a >= first + count) take(a);
  for (size_t a = first; a < first + count; ++a) take(a);
  return out;
}

}  // namespace

void emit_row_program(LowerContext& c, const kernels::vector::Program& p, const Strided& x_view, const Strided& y_view,
                      int first, int count, std::vector<Arg> others, std::vector<Arg> more) {
  Strided x = rows_last(x_view, static_cast<size_t>(first), static_cast<size_t>(count));
  Strided y = rows_last(y_view, static_cast<size_t>(first), static_cast<size_t>(count));
  DType t = c.type(0).dtype, to = c.out_type(0).dtype;
  Arg in = c.in_as(0, x), out = c.out_as(0, y);
  if (!contiguous_row(x, count)) {
    in = c.temp(t, x.dims);
    emit_copy(c, c.in_as(0, x), t, in, t);
  }
  bool copy_out = !contiguous_row(y, count);
  if (copy_out) out = c.temp(to, y.dims);
  others.insert(others.begin(), in);
  more.insert(more.begin(), out);
  emit_vector_program(c, p, count, std::move(others), std::move(more));
  if (copy_out) emit_copy(c, out, to, c.out_as(0, y), to);
}

Status lower_rows(LowerContext& c, int first, int count) {
  bool last = first + count == c.type(0).rank();
  if (last && contiguous_row(c.view(0), count) && contiguous_row(c.out_view(0), count)) return ok();
  ProgramBuilder b;
  std::vector<Reg> regs(c.node.inputs.size(), kernels::vector::kNoReg);
  std::vector<Arg> others, more;
  for (int i = 0; i < c.inputs(); ++i) {
    if (!c.has(i)) continue;
    regs[static_cast<size_t>(i)] = b.load(i ? static_cast<int>(others.size()) + 1 : 0, vector_lane(c.type(i).dtype));
    if (i) others.push_back(c.in(i));
  }
  auto made = append_vector(c.graph, c.node, b, std::move(regs));
  if (!made) return ok();
  for (size_t i = 0; i < made->size(); ++i) {
    if (!c.wants(static_cast<int>(i))) continue;
    b.store(i ? static_cast<int>(more.size()) + 1 : 0, (*made)[i]);
    if (i) more.push_back(c.out(static_cast<int>(i)));
  }
  auto program = b.finish(static_cast<int>(others.size()) + 1, static_cast<int>(more.size()) + 1);
  if (program.ok()) emit_row_program(c, *program, c.view(0), c.out_view(0), first, count, std::move(others), std::move(more));
  return ok();
}

}  // namespace ge::ops
