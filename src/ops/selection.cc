// NonZero, Compress, ReverseSequence. How many entries the first two have depends on data: a task counts them, and
// the rest runs in a later segment.
#include "base/text.h"
#include "kernels/move/element.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

// Emits the count that decides axis `axis` of the output, where that is not known while compiling.
void count_entries(LowerContext& c, int of, int axis, Dim most) {
  const Dim& count = c.out_type().dims[static_cast<size_t>(axis)];
  if (!(count == c.own("count"))) return;
  Arg counted = c.temp(DType::i64, {1});
  c.call("host.count_nonzero", {c.in(of)}, {counted}, {std::move(most)});
  c.size(count, counted, 0);
}

Status infer_non_zero(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  Dim rank = c.ranked(0) ? Dim(std::max(c.rank(0), 1)) : c.fresh("rank");
  if (auto* t = c.constant(0); t && t->dtype() != DType::string) {
    int64_t n = 0;
    for (int64_t i = 0; i < t->count(); ++i) n += !kernels::move::is_zero(t->dtype(), t->data() + i * size_of(t->dtype()));
    c.set(0, DType::i64, {rank, n});
    return ok();
  }
  c.set(0, DType::i64, {rank, c.fresh("count")});
  return ok();
}

Status emit_non_zero(LowerContext& c) {
  if (!c.type(0).ranked) return c.fail("the number of axes of its input is not known");
  count_entries(c, 0, 1, product(c.type(0).dims));
  c.call("ref.NonZero", {c.in(0)}, {c.out()});
  return ok();
}

// ---- Compress

Status infer_compress(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  if (c.dtype(1) != DType::boolean) return c.fail(format("the condition is {}, not bool", name(c.dtype(1))));
  if (c.ranked(1) && c.rank(1) != 1) return c.fail("the condition is not a list");
  bool flat = !has_attr(c.node, "axis");
  if (!c.ranked(0) && !flat) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  int axis = 0;
  if (!flat) {
    GE_TRY(axis, normalize_axis(c, attr_int(c.node, "axis", 0), c.rank(0)));
  }
  Dim count;
  if (auto* t = c.constant(1)) {
    int64_t n = 0;
    for (int64_t i = 0; i < t->count(); ++i) n += t->at_int(i);
    // A condition longer than the axis counts only up to its end.
    Dim size = flat ? (c.ranked(0) ? product(c.dims(0)) : Dim(0)) : c.dims(0)[static_cast<size_t>(axis)];
    bool fits = size.known() && t->count() <= size.value();
    count = fits ? Dim(n) : c.fresh("count");
  } else {
    count = c.fresh("count");
  }
  std::vector<Dim> dims{count};
  if (!flat) dims = c.dims(0), dims[static_cast<size_t>(axis)] = count;
  c.set(0, c.dtype(0), std::move(dims));
  return ok();
}

Status emit_compress(LowerContext& c) {
  if (!c.type(0).ranked) return c.fail("the number of axes of its input is not known");
  auto& dims = c.type(0).dims;
  int along = has_attr(c.node, "axis") ? wrap_axis(attr_int(c.node, "axis", 0), c.type(0).rank()) : 0;
  // A condition longer than the axis counts only up to its end.
  count_entries(c, 1, along, has_attr(c.node, "axis") ? dims[static_cast<size_t>(along)] : product(dims));
  int64_t axis = has_attr(c.node, "axis") ? wrap_axis(attr_int(c.node, "axis", 0), c.type(0).rank()) : -1;
  c.call("ref.Compress", {c.in(0), c.in(1)}, {c.out()}, {axis});
  return ok();
}

// ---- ReverseSequence

Status infer_reverse(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  if (c.dtype(1) != DType::i64) return c.fail(format("lengths are {}, not i64", name(c.dtype(1))));
  int64_t batch = attr_int(c.node, "batch_axis", 1), time = attr_int(c.node, "time_axis", 0);
  if (batch == time || batch < 0 || batch > 1 || time < 0 || time > 1) return c.fail(format("batch_axis is {} and time_axis {}; they must be 0 and 1, or 1 and 0", batch, time));
  if (c.ranked(0) && c.rank(0) < 2) return c.fail(format("{} has less than 2 axes", text(c.dims(0))));
  c.out[0] = c.type(0);
  return ok();
}

Status emit_reverse(LowerContext& c) {
  c.call("ref.ReverseSequence", {c.in(0), c.in(1)}, {c.out()}, {attr_int(c.node, "batch_axis", 1), attr_int(c.node, "time_axis", 0)});
  return ok();
}

const Register registered[] = {
    Register(OpDef{.name = "NonZero", .min_inputs = 1, .max_inputs = 1, .since = 9, .unit = kernels::Unit::host,
                   .doc = "Indices of the elements that are not zero.", .infer = infer_non_zero, .reference = emit_non_zero}),
    Register(OpDef{.name = "Compress", .min_inputs = 2, .max_inputs = 2, .since = 9,
                   .attrs = {{"axis", "Along which; absent: the flat input."}},
                   .doc = "The entries for which the condition holds.", .infer = infer_compress, .reference = emit_compress}),
    Register(OpDef{.name = "ReverseSequence", .min_inputs = 2, .max_inputs = 2, .since = 10,
                   .attrs = {{"batch_axis", "0 or 1."}, {"time_axis", "0 or 1."}},
                   .doc = "Reverses the first entries of each sequence.", .infer = infer_reverse, .reference = emit_reverse}),
};

}  // namespace
}  // namespace ge::ops
