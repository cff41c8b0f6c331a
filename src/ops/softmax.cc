// Softmax, LogSoftmax, Hardmax. Before opset 13 the row was everything from `axis` on: the attribute
// `flatten` (ours) keeps that meaning.
#include "ops/rows.h"

namespace ge::ops {
namespace {

using V = kernels::vector::Op;

int kind_of(const Node& n) { return n.op == "LogSoftmax" ? 1 : n.op == "Hardmax" ? 2 : 0; }

struct RowAxes {
  int first, last;
};
RowAxes row_of(const Graph& g, const Node& n) {
  int rank = g.value(n.inputs[0]).type.rank();
  int axis = static_cast<int>(ir::attr_int(n, "axis", -1));
  if (axis < 0) axis += rank;
  if (ir::attr_int(n, "flatten", 0) != 0) return {axis, rank};
  return {axis, rank == 0 ? 0 : axis + 1};
}

Status infer(InferContext& c) {
  if (!c.ranked(0)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  int64_t axis = ir::attr_int(c.node, "axis", -1), rank = c.rank(0);
  // Flattening may begin after the last axis.
  bool end = ir::attr_int(c.node, "flatten", 0) != 0 && axis == rank;
  if (rank && !end) {
    GE_TRY(int a, normalize_axis(c, axis, c.rank(0)));
    (void)a;
  }
  c.set(0, c.dtype(0), c.dims(0));
  return ok();
}

Status upgrade(UpgradeContext& c) {
  if (c.version >= 13) return ok();
  int64_t axis = ir::attr_int(c.node(), "axis", 1);
  c.node().attrs["axis"] = axis;
  if (axis != -1) c.node().attrs["flatten"] = int64_t{1};
  return ok();
}

Status reference(LowerContext& c) {
  RowAxes r = row_of(c.graph, c.node);
  c.call("ref.Softmax", {c.in(0)}, {c.out()}, {kind_of(c.node), r.first, r.last});
  return ok();
}

int row_axes(const Graph& g, const Node& n) {
  auto& x = g.value(n.inputs[0]);
  if (!x.type.ranked || !float_lane(x.type.dtype) || kind_of(n) == 2) return 0;
  RowAxes r = row_of(g, n);
  return r.last == x.type.rank() && rows_in_order(g, n, r.last - r.first) ? r.last - r.first : 0;
}

bool vector(VectorContext& c) {
  if (!float_lane(c.graph.value(c.node.inputs[0]).type.dtype) || kind_of(c.node) == 2) return false;
  auto& b = c.builder;
  auto shifted = b.op(V::sub, c.in[0], b.reduce(V::row_max, c.in[0]));
  auto e = b.op(V::exp, shifted);
  auto sum = b.reduce(V::row_sum, e);
  c.out[0] = kind_of(c.node) == 1 ? b.op(V::sub, shifted, b.op(V::log, sum)) : b.op(V::div, e, sum);
  return true;
}

Status lower(LowerContext& c) {
  RowAxes r = row_of(c.graph, c.node);
  if (!float_lane(c.type(0).dtype) || kind_of(c.node) == 2 || r.first == r.last) return ok();
  const bool one_axis = r.last == c.type(0).rank() && r.last - r.first == 1;
  if (c.type(0).dtype == DType::f32 && kind_of(c.node) == 0 && one_axis && contiguous_row(c.view(0), 1) && contiguous_row(c.out_view(0), 1)) {
    c.call("vector.softmax", {c.in(0)}, {c.out()});
    return ok();
  }
  return lower_rows(c, r.first, r.last - r.first);
}

OpDef define(const char* name) {
  OpDef d;
  d.name = name;
  d.min_inputs = d.max_inputs = 1;
  d.types = types::floats;
  d.attrs = {{"axis", "the axis of the row"}, {"flatten", "1: the row is everything from axis on"}};
  d.doc = "along one axis";
  d.infer = infer;
  d.upgrade = upgrade;
  d.reference = reference;
  d.lower = lower;
  d.vector_kind = VectorKind::row;
  d.vector = vector;
  d.row_axes = row_axes;
  return d;
}

const Register r1(define("Softmax"));
const Register r2(define("LogSoftmax"));
const Register r3(define("Hardmax"));

}  // namespace
}  // namespace ge::ops
