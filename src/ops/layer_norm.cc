// LayerNormalization, RMSNormalization and LpNormalization: row operators over the last axes.
#include "base/text.h"
#include "ops/rows.h"

namespace ge::ops {
namespace {

using V = kernels::vector::Op;

int first_axis(const Graph& g, const Node& n) {
  int rank = g.value(n.inputs[0]).type.rank();
  int64_t axis = ir::attr_int(n, "axis", -1);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

bool is_rms(const Node& n) { return n.op == "RMSNormalization"; }
double epsilon(const Node& n) { return ir::attr_float(n, "epsilon", static_cast<double>(1e-5f)); }

Status infer_layer(InferContext& c) {
  DType statistics = ir::attr_int(c.node, "stash_type", 1) == 1 ? DType::f32 : c.dtype(0);
  if (!c.ranked(0)) {
    c.set_unranked(0, c.dtype(0));
    c.set_unranked(1, statistics);
    c.set_unranked(2, statistics);
    return ok();
  }
  GE_TRY(int axis, normalize_axis(c, ir::attr_int(c.node, "axis", -1), c.rank(0)));
  auto dims = c.dims(0);
  for (int i = 1; i < c.inputs(); ++i) {
    if (!c.has(i) || !c.ranked(i)) continue;
    GE_TRY(auto whole, broadcast_dims(c, dims, c.dims(i)));
    if (whole.size() != dims.size()) return c.fail(format("input {} {} does not broadcast to {}", i, text(c.dims(i)), text(dims)));
  }
  c.set(0, c.dtype(0), dims);
  for (size_t a = static_cast<size_t>(axis); a < dims.size(); ++a) dims[a] = Dim(1);
  c.set(1, statistics, dims);
  c.set(2, statistics, dims);
  return ok();
}

Status reference_layer(LowerContext& c) {
  std::vector<Arg> in{c.in(0), c.in(1)}, out{c.out()};
  if (c.has(2)) in.push_back(c.in(2));
  if (c.wants(1) || c.wants(2)) out.push_back(c.out(1));
  if (c.wants(2)) out.push_back(c.out(2));
  c.call("ref.LayerNormalization", std::move(in), std::move(out), {first_axis(c.graph, c.node), is_rms(c.node)},
         {epsilon(c.node)});
  return ok();
}

bool all_float(const Graph& g, const Node& n) {
  for (ValueId v : n.inputs)
    if (v && !float_lane(g.value(v).type.dtype)) return false;
  return true;
}

int layer_axes(const Graph& g, const Node& n) {
  auto& x = g.value(n.inputs[0]).type;
  if (!x.ranked || !all_float(g, n)) return 0;
  int axes = x.rank() - first_axis(g, n);
  return rows_in_order(g, n, axes) ? axes : 0;
}

bool vector_layer(VectorContext& c) {
  if (!all_float(c.graph, c.node)) return false;
  auto& b = c.builder;
  auto x = c.in[0];
  if (!is_rms(c.node)) {
    auto mean = b.reduce(V::row_mean, x);
    x = b.op(V::sub, x, mean);
    if (c.out.size() > 1) c.out[1] = mean;
  }
  auto variance = b.reduce(V::row_mean, b.op(V::square, x));
  auto inverse = b.op(V::rsqrt, b.op(V::add, variance, static_cast<float>(epsilon(c.node))));
  if (c.out.size() > 2) c.out[2] = inverse;
  auto y = b.op(V::mul, b.op(V::mul, x, inverse), c.in[1]);
  if (c.in.size() > 2 && c.in[2] != kernels::vector::kNoReg) y = b.op(V::add, y, c.in[2]);
  c.out[0] = y;
  return true;
}

Status lower_layer(LowerContext& c) {
  if (!all_float(c.graph, c.node)) return ok();
  int first = first_axis(c.graph, c.node);
  return lower_rows(c, first, c.type(0).rank() - first);
}

// --- LpNormalization ---

Status infer_lp(InferContext& c) {
  c.out[0] = c.type(0);
  int64_t p = ir::attr_int(c.node, "p", 2);
  if (p != 1 && p != 2) return c.fail(format("p is {}, not 1 or 2", p));
  if (c.ranked(0)) {
    GE_TRY(int axis, normalize_axis(c, ir::attr_int(c.node, "axis", -1), c.rank(0)));
    (void)axis;
  }
  return ok();
}

Status reference_lp(LowerContext& c) {
  c.call("ref.LpNormalization", {c.in(0)}, {c.out()}, {first_axis(c.graph, c.node), ir::attr_int(c.node, "p", 2)});
  return ok();
}

int lp_axes(const Graph& g, const Node& n) {
  auto& x = g.value(n.inputs[0]).type;
  if (!x.ranked || !float_lane(x.dtype) || !rows_in_order(g, n, 1)) return 0;
  return first_axis(g, n) + 1 == x.rank() ? 1 : 0;
}

bool vector_lp(VectorContext& c) {
  if (!float_lane(c.graph.value(c.node.inputs[0]).type.dtype)) return false;
  auto& b = c.builder;
  bool one = ir::attr_int(c.node, "p", 2) == 1;
  auto norm = b.reduce(V::row_sum, b.op(one ? V::abs : V::square, c.in[0]));
  if (!one) norm = b.op(V::sqrt, norm);
  auto zero = b.constant(0.0f);
  c.out[0] = b.op(V::select, b.op(V::eq, norm, zero), zero, b.op(V::div, c.in[0], norm));
  return true;
}

Status lower_lp(LowerContext& c) {
  return float_lane(c.type(0).dtype) ? lower_rows(c, first_axis(c.graph, c.node), 1) : ok();
}

const Register r1(OpDef{.name = "LayerNormalization",
                        .min_inputs = 2,
                        .max_inputs = 3,
                        .max_outputs = 3,
                        .since = 17,
                        .attrs = {{"axis", "first axis of the row"}, {"epsilon", "added to the variance"}, {"stash_type", "type of the statistics"}},
                        .doc = "normalization of rows, with scale and bias",
                        .types = types::floats,
                        .infer = infer_layer,
                        .reference = reference_layer,
                        .lower = lower_layer,
                        .vector_kind = VectorKind::row,
                        .vector = vector_layer,
                        .row_axes = layer_axes});
const Register r2(OpDef{.name = "RMSNormalization",
                        .min_inputs = 2,
                        .max_inputs = 2,
                        .since = 23,
                        .attrs = {{"axis", "first axis of the row"}, {"epsilon", "added to the mean square"}, {"stash_type", "type of the arithmetic"}},
                        .doc = "division of rows by their root mean square, with scale",
                        .types = types::floats,
                        .infer = infer_layer,
                        .reference = reference_layer,
                        .lower = lower_layer,
                        .vector_kind = VectorKind::row,
                        .vector = vector_layer,
                        .row_axes = layer_axes});
const Register r3(OpDef{.name = "LpNormalization",
                        .min_inputs = 1,
                        .max_inputs = 1,
                        .attrs = {{"axis", "the axis of the row"}, {"p", "1 or 2"}},
                        .doc = "division of rows by their norm",
                        .types = types::floats,
                        .infer = infer_lp,
                        .reference = reference_lp,
                        .lower = lower_lp,
                        .vector_kind = VectorKind::row,
                        .vector = vector_lp,
                        .row_axes = lp_axes});

}  // namespace
}  // namespace ge::ops
