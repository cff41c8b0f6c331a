// TopK, ArgMax, ArgMin, CumSum, CumProd: ops along one axis that order or accumulate.
#include <algorithm>

#include "base/text.h"
#include "ops/axes_from_data.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

int axis_of(const LowerContext& c, int64_t otherwise) { return wrap_axis(attr_int(c.node, "axis", otherwise), c.type(0).rank()); }

// ---- TopK

Status infer_top_k(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  if (c.dtype(1) != DType::i64) return c.fail(format("k is {}, not i64", name(c.dtype(1))));
  GE_RETURN_IF_ERROR(require_one(c, 1));
  if (!c.ranked(0)) {
    c.set_unranked(0, c.dtype(0));
    c.set_unranked(1, DType::i64);
    return ok();
  }
  GE_TRY(int axis, normalize_axis(c, attr_int(c.node, "axis", -1), c.rank(0)));
  auto dims = c.dims(0);
  auto& n = dims[static_cast<size_t>(axis)];
  auto k = c.elements(1);
  if (k && (*k)[0].known() && ((*k)[0].value() < 0 || (n.known() && (*k)[0].value() > n.value())))
    return c.fail(format("k is {}, but axis {} of its input has {} elements; k must be 0 to {}", (*k)[0].value(), axis, n.text(), n.text()));
  n = k ? (*k)[0] : c.fresh("k");
  c.set(0, c.dtype(0), dims);
  c.set(1, DType::i64, std::move(dims));
  return ok();
}

Status upgrade_top_k(UpgradeContext& c) {
  if (c.version >= 10) return ok();
  // k becomes a list of one.
  int64_t k = attr_int(c.node(), "k", 0);
  c.node().attrs.erase("k");
  c.graph.add_node_input(c.id, c.constant_ints({k}));
  return ok();
}

Status emit_top_k(LowerContext& c) {
  c.call("ref.TopK", {c.in(0)}, {c.out(0), c.out(1)}, {axis_of(c, -1), attr_int(c.node, "largest", 1) != 0});
  return ok();
}

// ---- ArgMax, ArgMin

Status infer_arg(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  bool keep = attr_int(c.node, "keepdims", 1) != 0;
  if (!c.ranked(0)) {
    c.set_unranked(0, DType::i64);
    return ok();
  }
  GE_TRY(int axis, normalize_axis(c, attr_int(c.node, "axis", 0), c.rank(0)));
  auto dims = c.dims(0);
  if (dims[static_cast<size_t>(axis)].is(0)) return c.fail(format("axis {} of {} has no elements, of which one would be the largest", axis, text(dims)));
  if (keep) dims[static_cast<size_t>(axis)] = 1;
  else dims.erase(dims.begin() + axis);
  c.set(0, DType::i64, std::move(dims));
  return ok();
}

Status emit_arg(LowerContext& c, const char* kernel) {
  c.call(kernel, {c.in(0)}, {c.out()}, {axis_of(c, 0), c.node.op == "ArgMax", attr_int(c.node, "select_last_index", 0) != 0});
  return ok();
}
Status reference_arg(LowerContext& c) { return emit_arg(c, "ref.ArgMax"); }
Status lower_arg(LowerContext& c) {
  return emit_arg(c, c.type(0).dtype == DType::f32 ? "move.arg_max" : "ref.ArgMax");
}

// ---- CumSum, CumProd

Status infer_cum(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  GE_RETURN_IF_ERROR(require_index(c, 1));
  GE_RETURN_IF_ERROR(require_one(c, 1));
  c.out[0] = c.type(0);
  auto axis = c.ints(1);
  if (!axis) return ok();
  if (c.ranked(0)) {
    GE_TRY(int checked, normalize_axis(c, (*axis)[0], c.rank(0)));
    (void)checked;
  }
  return ok();
}

Status emit_cum(LowerContext& c) {
  auto axis = c.elements(1);
  if (!axis || axis->size() != 1 || !c.type(0).ranked) return c.fail("its axis is known only at run time");
  c.call("ref.CumSum", {c.in(0)}, {c.out()},
         {wrapped_axis((*axis)[0], c.type(0).rank()), attr_int(c.node, "exclusive", 0) != 0,
          attr_int(c.node, "reverse", 0) != 0, c.node.op == "CumProd"});
  return ok();
}

OpDef arg(const char* op) {
  return {.name = op,
          .min_inputs = 1,
          .max_inputs = 1,
          .attrs = {{"axis", "Along which to look."}, {"keepdims", "Keep the axis with size 1."}, {"select_last_index", "Last of equal elements."}},
          .doc = "Index of the largest or smallest element along an axis.",
          .types = types::all - types::complex - types::text - types::boolean,
          .infer = infer_arg,
          .reference = reference_arg,
          .lower = lower_arg};
}
OpDef cumulative(const char* op, int since) {
  return {.name = op,
          .min_inputs = 2,
          .max_inputs = 2,
          .since = since,
          .attrs = {{"exclusive", "Without the element itself."}, {"reverse", "From the end."}},
          .doc = "Sums or products of all elements up to each one along an axis.",
          .types = types::all - types::complex - types::text - types::boolean,
          .infer = infer_cum,
          .reference = emit_cum,
          .parameters = 1u << 1};
}

const Register registered[] = {
    Register(OpDef{.name = "TopK", .min_inputs = 2, .max_inputs = 2, .max_outputs = 2,
                   .attrs = {{"axis", "Along which to look."}, {"largest", "Largest (1) or smallest."}, {"sorted", "Always sorted here."}},
                   .doc = "The k largest or smallest elements along an axis, and their indices.", .types = types::all - types::complex - types::text - types::boolean, .infer = infer_top_k,
                   .upgrade = upgrade_top_k, .reference = emit_top_k, .sizes = 1u << 1}),
    Register(arg("ArgMax")),
    Register(arg("ArgMin")),
    Register(cumulative("CumSum", 11)),
    Register(cumulative("CumProd", 26)),
};

}  // namespace
}  // namespace ge::ops
