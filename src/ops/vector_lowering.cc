#include "ops/vector_lowering.h"

#include <algorithm>

namespace ge::ops {

using kernels::vector::Lane;
using kernels::vector::ProgramBuilder;
using kernels::vector::Reg;

bool vector_dtype(DType t) {
  return t == DType::f32 || t == DType::f16 || t == DType::bf16 || t == DType::i32 || t == DType::boolean || t == DType::u8 ||
         t == DType::i8 || t == DType::u16 || t == DType::i16;
}

Lane vector_lane(DType t) {
  return is_float(t) || t == DType::i64 ? Lane::f32 : Lane::i32;
}

std::optional<std::vector<Reg>> append_vector(const Graph& g, const Node& n, ProgramBuilder& b,
                                              std::vector<Reg> in) {
  auto* def = find(n.op);
  if (!def || !def->vector) return std::nullopt;
  VectorContext c{g, n, b, std::move(in), std::vector<uint16_t>(n.outputs.size(), kernels::vector::kNoReg)};
  if (!def->vector(c)) return std::nullopt;
  return c.out;
}

std::optional<int> vector_row_axes(const Graph& g, const Node& n) {
  auto* def = find(n.op);
  if (!def || !def->vector) return std::nullopt;
  if (def->vector_kind == VectorKind::elementwise) return 0;
  if (def->vector_kind != VectorKind::row || !def->row_axes) return std::nullopt;
  int axes = def->row_axes(g, n);
  return axes > 0 ? std::optional(axes) : std::nullopt;
}

void emit_vector_program(LowerContext& c, const kernels::vector::Program& p, int row_axes, std::vector<Arg> in,
                         std::vector<Arg> out) {
  c.call("vector.program", std::move(in), std::move(out), {row_axes}, {}, kernels::vector::encode(p));
}

Result<bool> lower_as_vector(LowerContext& c, const OpDef& def) {
  if (!def.vector) return false;
  auto axes = vector_row_axes(c.graph, c.node);
  if (!axes) return false;
  auto loadable = [](DType t) {
    return vector_dtype(t) || t == DType::i64 || t == DType::u8 || t == DType::i8 || t == DType::u16 || t == DType::i16;
  };
  ProgramBuilder b;
  std::vector<Reg> regs(c.node.inputs.size(), kernels::vector::kNoReg);
  std::vector<Arg> in, out;
  for (int i = 0; i < c.inputs(); ++i) {
    if (!c.has(i)) continue;
    DType t = c.type(i).dtype;
    if (!loadable(t)) return false;
    regs[static_cast<size_t>(i)] = b.load(static_cast<int>(in.size()), vector_lane(t));
    in.push_back(c.in(i));
  }
  auto made = append_vector(c.graph, c.node, b, std::move(regs));
  if (!made) return false;
  for (size_t i = 0; i < made->size(); ++i) {
    if (!c.wants(static_cast<int>(i))) continue;
    if ((*made)[i] == kernels::vector::kNoReg || !loadable(c.out_type(static_cast<int>(i)).dtype)) return false;
    b.store(static_cast<int>(out.size()), (*made)[i]);
    out.push_back(c.out(static_cast<int>(i)));
  }
  auto program = b.finish(static_cast<int>(in.size()), static_cast<int>(out.size()));
  if (!program.ok()) return false;
  emit_vector_program(c, *program, *axes, std::move(in), std::move(out));
  return true;
}

}  // namespace ge::ops
