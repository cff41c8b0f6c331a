// OneHot, EyeLike, Trilu.
#include "base/text.h"
#include "kernels/move/element.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

// ---- OneHot

Status infer_one_hot(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 3));
  for (int i = 0; i < 2; ++i)
    if (!is_integer(c.dtype(i)) && !is_float(c.dtype(i))) return c.fail(format("{} is not a type of input {}", name(c.dtype(i)), i));
  GE_RETURN_IF_ERROR(require_one(c, 1));
  DType t = c.dtype(2);
  if (size_of(t) == 0) return c.fail(format("values of type {} are not supported", name(t)));
  if (!c.ranked(0)) {
    c.set_unranked(0, t);
    return ok();
  }
  GE_TRY(int axis, normalize_axis(c, attr_int(c.node, "axis", -1), c.rank(0) + 1));
  Dim depth;
  if (auto e = c.elements(1); e && e->size() == 1) depth = (*e)[0];
  else if (auto* k = c.constant(1); k && k->count() == 1) depth = static_cast<int64_t>(k->at(0));
  else depth = c.fresh("depth");
  if (depth.known() && depth.value() < 0) return c.fail(format("the depth is {}; it must be 0 or more", depth.value()));
  auto dims = c.dims(0);
  dims.insert(dims.begin() + axis, depth);
  if (dims.size() > static_cast<size_t>(kMaxRank)) return c.fail(format("its output would have {} axes; at most {} are possible", dims.size(), kMaxRank));
  c.set(0, t, std::move(dims));
  return ok();
}

Status emit_one_hot(LowerContext& c) {
  c.call("ref.OneHot", {c.in(0), c.in(2)}, {c.out()}, {wrap_axis(attr_int(c.node, "axis", -1), c.out_type().rank())});
  return ok();
}

// ---- EyeLike

Status infer_eye(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  int64_t to = attr_int(c.node, "dtype", static_cast<int64_t>(c.dtype(0)));
  if (to <= 0 || to >= kDTypeCount || !kernels::move::is_number(static_cast<DType>(to))) return c.fail(format("attribute dtype = {} is no type of numbers", to));
  if (c.ranked(0) && c.rank(0) != 2) return c.fail(format("{} is not a matrix", text(c.dims(0))));
  if (c.ranked(0)) c.set(0, static_cast<DType>(to), c.dims(0));
  else c.set(0, static_cast<DType>(to), fresh_dims(c, 2));
  return ok();
}

Status emit_eye(LowerContext& c) {
  c.call("ref.EyeLike", {}, {c.out()}, {attr_int(c.node, "k", 0)});
  return ok();
}

// ---- Trilu

Status infer_trilu(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  if (c.has(1) && c.dtype(1) != DType::i64) return c.fail(format("k is {}, not i64", name(c.dtype(1))));
  if (c.ranked(0) && c.rank(0) < 2) return c.fail(format("{} has no matrices", text(c.dims(0))));
  c.out[0] = c.type(0);
  return ok();
}

Status emit_trilu(LowerContext& c) {
  bool upper = attr_int(c.node, "upper", 1) != 0;
  auto k = c.elements(1);
  if (!c.has(1)) c.call("ref.Trilu", {c.in(0)}, {c.out()}, {upper, 0});
  else if (k && k->size() == 1) c.call("ref.Trilu", {c.in(0)}, {c.out()}, {upper, (*k)[0]});
  else c.call("ref.Trilu", {c.in(0), c.in(1)}, {c.out()}, {upper, 0});
  return ok();
}

const Register registered[] = {
    Register(OpDef{.name = "OneHot", .min_inputs = 3, .max_inputs = 3, .since = 9,
                   .attrs = {{"axis", "The axis that is added; default last."}},
                   .doc = "On at each index along a new axis, off elsewhere.", .data = 2, .infer = infer_one_hot,
                   .reference = emit_one_hot, .sizes = 1u << 1}),
    Register(OpDef{.name = "EyeLike", .min_inputs = 1, .max_inputs = 1, .since = 9,
                   .attrs = {{"dtype", "Type of the output."}, {"k", "Which diagonal."}},
                   .doc = "Ones on a diagonal of a matrix of the input's sizes.", .infer = infer_eye, .reference = emit_eye}),
    Register(OpDef{.name = "Trilu", .min_inputs = 1, .max_inputs = 2, .since = 14,
                   .attrs = {{"upper", "Upper (1) or lower triangle."}},
                   .doc = "A triangle of each matrix, zeros elsewhere.", .infer = infer_trilu, .reference = emit_trilu}),
};

}  // namespace
}  // namespace ge::ops
