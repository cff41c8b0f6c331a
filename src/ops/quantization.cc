#include "ops/quantization.h"

#include <cmath>

#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {

using kernels::vector::kNoReg;
using kernels::vector::ProgramBuilder;
using kernels::vector::Reg;
using V = kernels::vector::Op;

Granularity granularity(const Graph& g, const Node& n) {
  auto &x = g.value(n.inputs[0]).type, &scale = g.value(n.inputs[1]).type;
  Granularity r;
  int64_t axis = ir::attr_int(n, "axis", 1);
  r.axis = static_cast<int>(axis < 0 ? axis + x.rank() : axis);
  r.block = ir::attr_int(n, "block_size", 0);
  if (scale.rank() == 0) return r;
  if (r.block > 0 && scale.rank() == x.rank()) r.kind = Granularity::Kind::blocks;
  else if (scale.rank() == 1 && !(scale.dims[0].is(1))) r.kind = Granularity::Kind::axis;
  // One axis is the whole tensor: the axis need not be said.
  if (r.kind == Granularity::Kind::axis && x.rank() == 1) r.axis = 0;
  return r;
}

Status check_granularity(const InferContext& c) {
  const int64_t block = ir::attr_int(c.node, "block_size", 0);
  if (block < 0) return c.fail(format("attribute block_size is {}; it must be 0 (no blocks) or more", block));
  if (c.has(2) && c.ranked(1) && c.ranked(2) && c.dims(1) != c.dims(2)) {
    auto may_be_one = [](const std::vector<Dim>& dims) { return std::all_of(dims.begin(), dims.end(), [](auto& d) { return !d.known() || d.is(1); }); };
    bool one = may_be_one(c.dims(1)) && may_be_one(c.dims(2));
    // Sizes that only the run tells may be equal after all.
    bool open = c.rank(1) == c.rank(2);
    for (size_t k = 0; open && k < c.dims(1).size(); ++k) open = !c.dims(1)[k].known() || !c.dims(2)[k].known() || c.dims(1)[k] == c.dims(2)[k];
    // A zero point of one element serves any shape of scale with one element.
    if (!one && !open)
      return c.fail(format("the zero point {} has another shape than the scale {}", text(c.dims(2)), text(c.dims(1))));
  }
  if (!c.ranked(0) || !c.ranked(1)) return ok();
  const Granularity g = granularity(c.graph, c.node);
  if (g.kind == Granularity::Kind::tensor) {
    if (product(c.dims(1)).known() && !product(c.dims(1)).is(1)) return c.fail(format("the scale has shape {}; without block_size it is one number, or one for each entry of the axis", text(c.dims(1))));
    return ok();
  }
  if (g.axis < 0 || g.axis >= c.rank(0)) return c.fail(format("axis {} is outside -{}..{}", ir::attr_int(c.node, "axis", 1), c.rank(0), c.rank(0) - 1));
  for (int a = 0; a < c.rank(0); ++a) {
    if (g.kind == Granularity::Kind::axis && a != g.axis) continue;
    const Dim& x = c.dims(0)[static_cast<size_t>(a)];
    const Dim& s = c.dims(1)[g.kind == Granularity::Kind::axis ? 0 : static_cast<size_t>(a)];
    const Dim want = g.kind == Granularity::Kind::blocks && a == g.axis ? ceildiv(x, Dim(g.block)) : x;
    if (want.known() && s.known() && !(want == s))
      return c.fail(format("the scale {} does not fit axis {} of {}", text(c.dims(1)), a, text(c.dims(0))));
  }
  return ok();
}

std::vector<Dim> granularity_ints(const Granularity& g) {
  return {Dim(g.kind == Granularity::Kind::blocks ? g.axis : -1), Dim(std::max<int64_t>(g.block, 0))};
}

Arg parameter_operand(LowerContext& c, int i, const Granularity& g) {
  if (!c.has(i)) return {};
  Strided v = c.view(i);
  if (g.kind == Granularity::Kind::blocks) return c.in_as(i, v);
  const size_t rank = static_cast<size_t>(c.type(0).rank());
  Strided spread{v.offset, std::vector<Dim>(rank, Dim(1)), std::vector<Dim>(rank, Dim(0))};
  if (g.kind == Granularity::Kind::axis) {
    spread.dims[static_cast<size_t>(g.axis)] = v.dims[0];
    spread.strides[static_cast<size_t>(g.axis)] = v.strides[0];
  }
  return c.in_as(i, spread);
}

bool vector_quantized(DType t) { return t == DType::u8 || t == DType::i8 || t == DType::u16 || t == DType::i16; }

// NaN and what lies below i32 become the smallest i32, so the lower bound is that of integers.
Reg saturate(ProgramBuilder& b, Reg quotient, Reg zero, DType to) {
  const int low = is_signed(to) ? -(1 << (bits(to) - 1)) : 0, high = low + (1 << bits(to)) - 1;
  Reg r = b.op(V::round, quotient);
  if (zero != kNoReg) r = b.op(V::add, r, b.op(V::to_f32, zero));
  r = b.op(V::min, r, static_cast<float>(high));
  return b.op(V::imax, b.op(V::to_i32, r), b.constant_i32(low));
}

Reg quantize(ProgramBuilder& b, Reg x, Reg scale, Reg zero, DType to) {
  return saturate(b, b.op(V::div, x, scale), zero, to);
}

Reg dequantize(ProgramBuilder& b, Reg x, Reg scale, Reg zero) {
  if (zero != kNoReg) x = b.op(V::isub, x, zero);
  return b.op(V::mul, b.op(V::to_f32, x), scale);
}

}  // namespace ge::ops
