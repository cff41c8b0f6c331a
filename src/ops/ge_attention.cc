// ge.Attention: softmax(scale * q x kt + mask) x v over the last axes, tiled: no matrix of all scores.
// Inputs q [..., S, D], kt [..., D, T] (already transposed: usually a view), v [..., T, Dv], mask f32 added
// or bool (false: the score becomes `masked`), broadcastable to [..., S, T]. Rank 2 to 4; leading axes equal,
// but in rank 4 each head of kt and v may serve several heads of q that lie side by side. kt and v may be f16, bf16 or i8 (a cache that
// is stored so); they are widened where they are read. i8 is multiplied by the scales kt_scale f32 [..., 1, T] and
// v_scale f32 [..., T, 1], inputs 4 and 5.
#include <limits>

#include "ops/bf16.h"
#include "ops/fused_tail.h"
#include "ops/op.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  if (!c.ranked(0) || !c.ranked(2)) return ok();
  auto dims = c.dims(0);
  if (dims.size() < 2 || c.rank(2) < 2) return c.fail("its operands need two axes");
  dims.back() = c.dims(2).back();
  c.set(0, c.dtype(0), std::move(dims));
  return ok();
}

// Rank 4, as the kernel has it: [B, 1, S, D] for rank 3.
Strided rank4(Strided v, size_t full_rank) {
  while (v.dims.size() < full_rank) v = with_axis(std::move(v), 0);
  if (v.dims.size() == 3) v = with_axis(std::move(v), 1);
  while (v.dims.size() < 4) v = with_axis(std::move(v), 0);
  return v;
}

Status lower(LowerContext& c) {
  auto rank = static_cast<size_t>(c.out_type().rank());
  if (c.out_type().dtype != DType::f32 || rank > 4) return c.fail("only f32 of rank 2 to 4");
  Strided q = rank4(c.view(0), rank), kt = rank4(c.view(1), rank), v = rank4(c.view(2), rank);
  const Dim &queries = q.dims[2], &depth = q.dims[3], &keys = v.dims[2], &width = v.dims[3];
  Arg k_arg, v_arg;
  Dim group = kt.dims[1].known() && kt.dims[1].value() > 0 ? floordiv(q.dims[1], kt.dims[1]) : Dim(1);
  Dim rows = queries * group;
  const bool narrow = c.type(1).dtype != DType::f32 || c.type(2).dtype != DType::f32;   // the kernel alone widens them
  if (narrow || !rows.known() || rows.value() <= 512) {
    // Each chunk packs for itself, or reads K and V as they lie: cheaper than two more tasks.
    k_arg = c.in_as(1, transposed_last(kt));
    v_arg = c.in_as(2, v);
  } else {
    const bool pairs = computes_bf16(c.node);
    auto rows_of = [&](const Dim& k) { return pairs ? ceildiv(k, 2) : k; };
    const DType type = pairs ? DType::bf16 : DType::f32;
    const Dim panel = pairs ? 32 : 16;
    k_arg = c.temp(type, {kt.dims[0], kt.dims[1], ceildiv(keys, 16), rows_of(depth), panel});
    v_arg = c.temp(type, {v.dims[0], v.dims[1], ceildiv(width, 16), rows_of(keys), panel});
    c.call("cube.pack_b", {c.in_as(1, kt)}, {k_arg});
    c.call("cube.pack_b", {c.in_as(2, v)}, {v_arg});
  }
  GE_TRY(Dim offset, Dim::parse(ir::attr_string(c.node, "offset", "0")));
  Arg mask;
  if (c.has(3)) mask = c.in_as(3, rank4(c.view(3), rank));
  std::vector<Arg> in{c.in_as(0, q), k_arg, v_arg, mask};
  if (c.inputs() > 4) in.insert(in.end(), {c.has(4) ? c.in_as(4, transposed_last(rank4(c.view(4), rank))) : Arg{}, c.has(5) ? c.in_as(5, rank4(c.view(5), rank)) : Arg{}});
  std::vector<Dim> ints{ir::attr_int(c.node, "causal", 0), offset, ir::attr_int(c.node, "rows", 0)};
  if (computes_bf16(c.node)) ints.insert(ints.end(), {Dim(1), keys});
  c.call("cube.attention", std::move(in), {c.out_as(0, rank4(c.out_view(), rank))}, std::move(ints),
         {ir::attr_float(c.node, "scale", 1), ir::attr_float(c.node, "softcap", 0), ir::attr_float(c.node, "masked", -std::numeric_limits<double>::infinity())});
  return ok();
}

// Where a Transpose alone reads the result, it is written so that the Transpose is a view of row-major memory.
std::vector<int> layout(const Graph& g, const Node& n) {
  NodeId reader = g.only_reader(n.outputs[0]);
  if (!reader || g.node(reader).op != "Transpose") return {};
  auto perm = ir::attr_ints(g.node(reader), "perm");
  if (perm.size() != g.value(n.outputs[0]).type.dims.size() || perm.empty() || perm.back() != static_cast<int64_t>(perm.size()) - 1) return {};
  return {perm.begin(), perm.end()};
}

const Register r(OpDef{.name = "ge.Attention",
                       .min_inputs = 3,
                       .max_inputs = 6,
                       .attrs = {{"scale", "factor of the scores"},
                                 {"causal", "1: query i sees keys j <= i + offset; 2: j <= i + T - S"},
                                 {"offset", "an expression; absent: 0"},
                                 {"softcap", "c > 0: scores become c * tanh(score / c) before the mask"},
                                 {"masked", "what a score becomes where a bool mask is false; absent: -inf"},
                                 {"compute", "bf16: the operands of both products are rounded to it; absent: f32"},
                                 {"rows", "what a row gives whose scores are all -inf: 0 zeros; 1 NaN; 2 zeros, and so does one whose softmax is NaN"}},
                       .unit = kernels::Unit::cube,
                       .doc = "attention, tiled",
                       .infer = infer,
                       .lower = lower,
                       .layout = layout});

}  // namespace
}  // namespace ge::ops
