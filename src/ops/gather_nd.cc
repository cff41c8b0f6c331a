// GatherElements, GatherND, ScatterElements (Scatter before opset 11), ScatterND.
#include <algorithm>

#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

int64_t reduction_of(const Node& n) {
  std::string r = attr_string(n, "reduction", "none");
  return r == "none" ? 0 : r == "add" ? 1 : r == "mul" ? 2 : r == "max" ? 3 : r == "min" ? 4 : -1;
}

Status check_reduction(const InferContext& c) {
  if (reduction_of(c.node) < 0) return c.fail(format("reduction '{}' is not known; it is 'none', 'add', 'mul', 'max' or 'min'", attr_string(c.node, "reduction", "")));
  if (reduction_of(c.node) > 0 && !is_integer(c.dtype(0)) && !is_float(c.dtype(0)) && c.dtype(0) != DType::boolean)
    return c.fail(format("{} cannot be reduced", name(c.dtype(0))));
  return ok();
}

int axis_of(const LowerContext& c) { return wrap_axis(attr_int(c.node, "axis", 0), c.type(0).rank()); }

// ---- GatherElements

Status infer_gather_elements(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  GE_RETURN_IF_ERROR(require_index(c, 1));
  if (!c.ranked(1)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  if (c.ranked(0)) {
    if (c.rank(0) != c.rank(1)) return c.fail(format("data {} and indices {} differ in rank", text(c.dims(0)), text(c.dims(1))));
    GE_TRY(int axis, normalize_axis(c, attr_int(c.node, "axis", 0), c.rank(0)));
    (void)axis;
  }
  c.set(0, c.dtype(0), c.dims(1));
  return ok();
}
Status emit_gather_elements(LowerContext& c, const char* kernel) {
  c.call(kernel, {c.in(0), c.in(1)}, {c.out()}, {axis_of(c)});
  return ok();
}

// ---- GatherND

Status infer_gather_nd(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  GE_RETURN_IF_ERROR(require_index(c, 1));
  if (!c.ranked(0) || !c.ranked(1) || c.rank(1) < 1 || !c.dims(1).back().known()) {
    if (c.ranked(1) && c.rank(1) < 1) return c.fail("the indices are a scalar");
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  int64_t batch = attr_int(c.node, "batch_dims", 0), k = c.dims(1).back().value();
  if (batch < 0 || batch >= c.rank(1) || batch > c.rank(0) || k < 0 || k > c.rank(0) - batch)
    return c.fail(format("tuples of {} numbers with {} batch axes cannot name places in {}", k, batch, text(c.dims(0))));
  std::vector<Dim> out(c.dims(1).begin(), c.dims(1).end() - 1);
  for (size_t i = 0; i < static_cast<size_t>(batch); ++i) {
    GE_TRY(out[i], unify(c, out[i], c.dims(0)[i], format("batch axis {}", i)));
  }
  out.insert(out.end(), c.dims(0).begin() + batch + k, c.dims(0).end());
  if (out.size() > static_cast<size_t>(kMaxRank)) return c.fail(format("its output would have {} axes; at most {} are possible", out.size(), kMaxRank));
  c.set(0, c.dtype(0), std::move(out));
  return ok();
}
Status emit_gather_nd(LowerContext& c, const char* kernel) {
  c.call(kernel, {c.in(0), c.in(1)}, {c.out()}, {attr_int(c.node, "batch_dims", 0)});
  return ok();
}

// ---- ScatterElements, ScatterND

Status infer_scatter(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 3));
  GE_RETURN_IF_ERROR(require_index(c, 1));
  GE_RETURN_IF_ERROR(check_reduction(c));
  if (c.dtype(2) != c.dtype(0)) return c.fail(format("the updates are {}, but the data are {}; they need one type", name(c.dtype(2)), name(c.dtype(0))));
  c.out[0] = c.type(0);
  if (!c.ranked(0) || !c.ranked(1) || !c.ranked(2)) return ok();
  if (c.node.op == "ScatterElements") {
    GE_TRY(int axis, normalize_axis(c, attr_int(c.node, "axis", 0), c.rank(0)));
    (void)axis;
    if (c.rank(0) != c.rank(1) || c.rank(1) != c.rank(2)) return c.fail("data, indices and updates differ in rank");
    for (size_t i = 0; i < c.dims(1).size(); ++i) {
      GE_TRY(Dim same, unify(c, c.dims(1)[i], c.dims(2)[i], format("axis {} of indices and updates", i)));
      (void)same;
    }
    return ok();
  }
  if (c.rank(1) < 1) return c.fail("the indices are a scalar");
  auto& k = c.dims(1).back();
  if (!k.known()) return ok();
  if (k.value() > c.rank(0)) return c.fail(format("tuples of {} numbers cannot name places in {}", k.value(), text(c.dims(0))));
  std::vector<Dim> want(c.dims(1).begin(), c.dims(1).end() - 1);
  want.insert(want.end(), c.dims(0).begin() + k.value(), c.dims(0).end());
  if (want.size() != c.dims(2).size()) return c.fail(format("the updates have shape {}; {} is needed", text(c.dims(2)), text(want)));
  for (size_t i = 0; i < want.size(); ++i) {
    GE_TRY(Dim same, unify(c, want[i], c.dims(2)[i], format("axis {} of the updates", i)));
    (void)same;
  }
  // Shape arithmetic: one list, numbers as places.
  auto data = known_elements(c, 0), index = known_elements(c, 1), updates = known_elements(c, 2);
  if (!data || !index || !updates || data->dims.size() != 1 || !k.is(1) || reduction_of(c.node) != 0) return ok();
  for (size_t i = 0; i < index->values.size(); ++i) {
    auto& at = index->values[i];
    if (!at.known()) return ok();
    int64_t n = data->dims[0], place = at.value() < 0 ? at.value() + n : at.value();
    if (place < 0 || place >= n) return c.fail(format("index {} is outside -{}..{}", at.value(), n, n - 1));
    data->values[static_cast<size_t>(place)] = updates->values[i];
  }
  c.set_elements(0, std::move(data->values));
  return ok();
}

Status emit_scatter(LowerContext& c, bool reference) {
  std::vector<Dim> ints{reduction_of(c.node)};
  bool nd = c.node.op == "ScatterND";
  if (!nd) ints.insert(ints.begin(), axis_of(c));
  std::string kernel = nd ? (reference ? "ref.ScatterND" : "move.scatter_nd")
                          : (reference ? "ref.ScatterElements" : "move.scatter_elements");
  c.call(kernel, {c.in(0), c.in(1), c.in(2)}, {c.out()}, std::move(ints));
  return ok();
}

// The old name of ScatterElements.
Status upgrade_scatter(UpgradeContext& c) {
  c.node().op = "ScatterElements";
  return ok();
}

OpDef scatter(const char* op, int since) {
  OpDef d;
  d.name = op;
  d.min_inputs = d.max_inputs = 3;
  d.since = since;
  d.attrs = {{"reduction", "none, add, mul, max or min."}};
  d.doc = "The first input with the updates put at the indices.";
  d.infer = infer_scatter;
  d.reference = [](LowerContext& c) { return emit_scatter(c, true); };
  d.lower = [](LowerContext& c) { return emit_scatter(c, false); };
  d.updates = true;
  return d;
}
OpDef with_axis(OpDef d) {
  d.attrs.push_back({"axis", "Along which indices count."});
  return d;
}
OpDef old_scatter() {
  OpDef d = with_axis(scatter("Scatter", 9));
  d.newest = 10;
  d.upgrade = upgrade_scatter;
  return d;
}

const Register registered[] = {
    Register(OpDef{.name = "GatherElements", .min_inputs = 2, .max_inputs = 2, .since = 11,
                   .attrs = {{"axis", "Along which indices count."}},
                   .doc = "The element that each index names along the axis.", .infer = infer_gather_elements,
                   .reference = [](LowerContext& c) { return emit_gather_elements(c, "ref.GatherElements"); },
                   .lower = [](LowerContext& c) { return emit_gather_elements(c, "move.gather_elements"); }}),
    Register(OpDef{.name = "GatherND", .min_inputs = 2, .max_inputs = 2, .since = 11,
                   .attrs = {{"batch_dims", "Leading axes that indices and data share."}},
                   .doc = "The block that each tuple of indices names.", .infer = infer_gather_nd,
                   .reference = [](LowerContext& c) { return emit_gather_nd(c, "ref.GatherND"); },
                   .lower = [](LowerContext& c) { return emit_gather_nd(c, "move.gather_nd"); }}),
    Register(with_axis(scatter("ScatterElements", 11))),
    Register(scatter("ScatterND", 11)),
    Register(old_scatter()),
};

}  // namespace
}  // namespace ge::ops
