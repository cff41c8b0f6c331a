// Reshape, Flatten, Squeeze, Unsqueeze: the same elements in the same order under other sizes. Views
// wherever the input's memory allows it.
#include <algorithm>

#include "base/text.h"
#include "ops/axes_from_data.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

// Output with the input's elements: type, sizes and known values.
void set_flat(InferContext& c, std::vector<Dim> dims) {
  c.set(0, c.dtype(0), std::move(dims));
  if (auto e = c.elements(0)) c.set_elements(0, *e);
}

std::optional<Strided> view_flat(const Graph& g, const Node& n, int, const Strided& in) {
  auto& out = g.value(n.outputs[0]).type;
  if (!out.ranked) return std::nullopt;
  // Sizes that data say may not fit: the copy checks them.
  bool data = std::any_of(out.dims.begin(), out.dims.end(), [&](auto& d) { return g.decided_by_data(d); });
  if (data && !(product(in.dims) == product(out.dims))) return std::nullopt;
  return reshape_view(in, out.dims);
}

// ---- Reshape

// The size for -1: input / others. Sizes that stand on both sides are struck out first, so that symbols
// (and zeros) cancel.
Result<Dim> inferred_size(const InferContext& c, std::vector<Dim> in, std::vector<Dim> others) {
  for (auto it = others.begin(); it != others.end();) {
    auto same = std::find(in.begin(), in.end(), *it);
    if (same == in.end()) {
      ++it;
      continue;
    }
    in.erase(same);
    it = others.erase(it);
  }
  Dim total = product(in), part = product(others);
  if (part.is(0)) return c.fail("the size for -1 cannot be told: the others multiply to 0");
  if (total.known() && part.known() && total.value() % part.value() != 0)
    return c.fail(format("the size for -1 cannot be told: {} elements do not divide by the product {} of the others", total.value(), part.value()));
  return floordiv(total, part);
}

// A size that data say: it may be -1 or 0.
bool any_number(const Graph& g, const Dim& d) { return g.decided_by_data(d) && lower_bound(g, d) < 0; }

std::vector<Dim> reshaped_by_data(const InferContext& c, const std::vector<Dim>& shape, bool allow_zero) {
  std::vector<Dim> kept, out;
  Dim part(1);
  for (size_t i = 0; i < shape.size(); ++i) {
    kept.push_back(allow_zero || i >= c.dims(0).size() ? shape[i] : select(equal(shape[i], 0), c.dims(0)[i], shape[i]));
    part = part * select(equal(shape[i], -1), 1, kept.back());
  }
  Dim rest = floordiv(product(c.dims(0)), max(part, 1));
  for (size_t i = 0; i < shape.size(); ++i) out.push_back(select(equal(shape[i], -1), rest, kept[i]));
  return out;
}

Result<std::vector<Dim>> reshaped(const InferContext& c, const std::vector<Dim>& shape, bool allow_zero) {
  if (c.ranked(0) && std::any_of(shape.begin(), shape.end(), [&](auto& d) { return any_number(c.graph, d); })) return reshaped_by_data(c, shape, allow_zero);
  std::vector<Dim> out;
  int unknown = -1;
  bool zero = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    const Dim& s = shape[i];
    if (s.is(-1)) {
      if (unknown >= 0) return c.fail(format("shape {} has more than one -1", text(shape)));
      unknown = static_cast<int>(i);
      out.push_back(Dim(1));
    } else if (s.known() && s.value() < 0) {
      return c.fail(format("shape {} has a negative size", text(shape)));
    } else if (s.is(0) && !allow_zero) {
      if (!c.ranked(0)) return c.fail("a size is taken from an input whose shape is not known");
      if (i >= c.dims(0).size()) return c.fail(format("shape {} takes axis {} of {}", text(shape), i, text(c.dims(0))));
      out.push_back(c.dims(0)[i]);
    } else {
      zero |= s.is(0);
      out.push_back(s);
    }
  }
  if (unknown >= 0 && zero) return c.fail("shape has both 0 and -1 with allowzero");
  if (unknown < 0) return out;
  auto others = out;
  others.erase(others.begin() + unknown);
  if (!c.ranked(0)) return out;  // the caller puts a fresh symbol
  GE_TRY(out[static_cast<size_t>(unknown)], inferred_size(c, c.dims(0), others));
  return out;
}

Status infer_reshape(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  if (c.dtype(1) != DType::i64) return c.fail(format("the shape is {}, not i64", name(c.dtype(1))));
  if (c.ranked(1) && c.rank(1) != 1) return c.fail("the shape is not a list");
  auto e = c.elements(1);
  if (!e) {
    if (auto n = listed_rank(c, 1)) set_flat(c, fresh_dims(c, *n));
    else c.set_unranked(0, c.dtype(0));
    return ok();
  }
  if (e->size() > static_cast<size_t>(kMaxRank)) return c.fail(format("its output would have {} axes; at most {} are possible", e->size(), kMaxRank));
  GE_TRY(auto dims, reshaped(c, *e, attr_int(c.node, "allowzero", 0) != 0));
  if (!c.ranked(0)) {
    for (size_t i = 0; i < dims.size(); ++i)
      if ((*e)[i].is(-1)) dims[i] = c.fresh("rest");
  } else {
    Dim a = product(c.dims(0)), b = product(dims);
    if (a.known() && b.known() && !(a == b))
      return c.fail(format("{} cannot become {}: the numbers of elements differ", text(c.dims(0)), text(dims)));
  }
  set_flat(c, std::move(dims));
  return ok();
}

// ---- Flatten

Status infer_flatten(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  if (!c.ranked(0)) {
    c.set(0, c.dtype(0), fresh_dims(c, 2));
    return ok();
  }
  int64_t axis = attr_int(c.node, "axis", 1), rank = c.rank(0);
  if (axis < -rank || axis > rank) return c.fail(format("axis {} is outside -{}..{}", axis, rank, rank));
  auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  set_flat(c, {product(c.dims(0), 0, at), product(c.dims(0), at)});
  return ok();
}

// ---- Squeeze, Unsqueeze

Status infer_squeeze(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  if (!c.ranked(0)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  auto& dims = c.dims(0);
  std::vector<bool> drop(dims.size());
  if (c.has(1)) {
    GE_RETURN_IF_ERROR(require_index(c, 1));
    auto axes = c.ints(1);
    if (!axes) {
      auto e = c.elements(1);
      if (!e || e->size() > dims.size()) return c.fail("its axes are known only at run time");
      set_flat(c, without_axes(dims, axis_mask(*e, c.rank(0)), e->size()));
      return ok();
    }
    for (int64_t a : *axes) {
      GE_TRY(int axis, normalize_axis(c, a, c.rank(0)));
      const Dim& d = dims[static_cast<size_t>(axis)];
      if (d.known() && !d.is(1)) return c.fail(format("axis {} of {} is not of size 1", a, text(dims)));
      drop[static_cast<size_t>(axis)] = true;
    }
  } else {
    // A symbol is taken to be a size other than 1: what follows needs to know how many axes there are.
    for (size_t i = 0; i < dims.size(); ++i) drop[i] = dims[i].is(1);
  }
  std::vector<Dim> out;
  for (size_t i = 0; i < dims.size(); ++i)
    if (!drop[i]) out.push_back(dims[i]);
  set_flat(c, std::move(out));
  return ok();
}

Status infer_unsqueeze(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  GE_RETURN_IF_ERROR(require_index(c, 1));
  auto axes = c.ints(1);
  auto e = c.elements(1);
  if (!e) return c.fail("its axes are known only at run time");
  if (!c.ranked(0)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  int rank = c.rank(0) + static_cast<int>(e->size());
  if (!axes && rank <= kMaxRank) {
    set_flat(c, with_axes_of(c.dims(0), axis_mask(*e, rank)));
    return ok();
  }
  if (rank > kMaxRank) return c.fail(format("its output would have {} axes; at most {} are possible", rank, kMaxRank));
  std::vector<bool> fresh(static_cast<size_t>(rank));
  for (int64_t a : *axes) {
    GE_TRY(int axis, normalize_axis(c, a, rank));
    if (fresh[static_cast<size_t>(axis)]) return c.fail(format("axis {} is given twice", a));
    fresh[static_cast<size_t>(axis)] = true;
  }
  std::vector<Dim> out;
  auto next = c.dims(0).begin();
  for (bool f : fresh) out.push_back(f ? Dim(1) : *next++);
  set_flat(c, std::move(out));
  return ok();
}

Status upgrade_axes(UpgradeContext& c) {
  if (c.version < 13) c.attr_to_input("axes", 1);
  return ok();
}

// Squeeze and Unsqueeze keep every axis that has more than one element, so any strides will do.
std::optional<Strided> view_axes(const Graph& g, const Node& n, int, const Strided& in) {
  auto& out = g.value(n.outputs[0]).type;
  if (!out.ranked) return std::nullopt;
  Strided v;
  v.offset = in.offset;
  v.dims = out.dims;
  bool squeeze = n.op == "Squeeze";
  auto& more = squeeze ? in.dims : out.dims;
  auto axes = n.inputs.size() > 1 && n.inputs[1] ? g.elements(n.inputs[1]) : std::nullopt;
  std::vector<bool> one(more.size());
  if (axes) {
    if (!known_dims(*axes)) return std::nullopt;
    for (auto& a : *axes) one[static_cast<size_t>(wrap_axis(a.value(), static_cast<int>(more.size())))] = true;
  } else {
    for (size_t i = 0; i < more.size(); ++i) one[i] = more[i].is(1);
  }
  size_t next = 0;
  for (size_t i = 0; i < more.size(); ++i) {
    if (squeeze) {
      if (!one[i]) v.strides.push_back(in.strides[i]);
    } else {
      v.strides.push_back(one[i] ? Dim(1) : in.strides[next++]);
    }
  }
  return v;
}

OpDef flat(const char* op, int min_inputs, int max_inputs, const char* doc, Status (*infer)(InferContext&)) {
  OpDef d;
  d.name = op;
  d.min_inputs = min_inputs;
  d.max_inputs = max_inputs;
  d.doc = doc;
  d.infer = infer;
  d.reference = reference_flat;
  d.lower = lower_flat;
  d.view = view_flat;
  d.parameters = max_inputs > 1 ? 1u << 1 : 0;
  return d;
}

// The graph output that v becomes element by element, whatever its number of axes; none if more is done with it.
ValueId becomes_output(const Graph& g, ValueId v) {
  while (!g.is_output(v)) {
    NodeId reader = g.only_reader(v);
    if (!reader) return {};
    auto& n = g.node(reader);
    auto* def = find(n.op);
    if (!def || def->vector_kind != VectorKind::elementwise || n.outputs.size() != 1) return {};
    for (ValueId in : n.inputs)
      if (in && in != v && (!g.value(in).type.ranked || g.value(in).type.rank() > 0)) return {};
    v = n.outputs[0];
  }
  return g.value(v).uses.empty() ? v : ValueId{};
}

// The caller gets the axes that the sizes of the run leave: only at the end, as kernels are chosen by their number.
Result<bool> expand_squeeze(UpgradeContext& c) {
  const Node n = c.node();
  if (n.inputs.size() > 1 && n.inputs[1]) return false;
  Graph& g = c.graph;
  auto& type = g.value(n.inputs[0]).type;
  if (!type.ranked) return false;
  bool open = std::any_of(type.dims.begin(), type.dims.end(), [&](auto& d) { return !d.known() && lower_bound(g, d) < 2; });
  ValueId end = open ? becomes_output(g, n.outputs[0]) : ValueId{};
  if (!end) return false;
  if (end == n.outputs[0]) {
    c.node().op = "ge.SqueezeOnes";
    return true;
  }
  g.replace_uses(n.outputs[0], n.inputs[0]);
  NodeId squeeze = g.insert("ge.SqueezeOnes", {end}, {Type{g.value(end).type.dtype, false, {}, ir::TypeKind::tensor}}, {}, c.id);
  ValueId squeezed = g.node(squeeze).outputs[0];
  for (size_t i = 0; i < g.outputs.size(); ++i)
    if (g.outputs[i] == end) g.set_graph_output(i, squeezed);
  g.erase(c.id);
  return true;
}

OpDef axes_op(OpDef d) {
  d.upgrade = upgrade_axes;
  d.view = view_axes;
  return d;
}

OpDef with_attr(OpDef d, const char* attr, const char* doc) {
  d.attrs.push_back({attr, doc});
  return d;
}

const Register reshape(with_attr(flat("Reshape", 2, 2, "The elements under other sizes; 0 keeps an axis, -1 is what is left.", infer_reshape),
                                 "allowzero", "1: a 0 in the shape means a size of 0."));
const Register flatten(with_attr(flat("Flatten", 1, 1, "Two axes: the product of those before, and of those from `axis`.", infer_flatten),
                                 "axis", "First axis of the second group."));
OpDef with_expand(OpDef d) {
  d.expand = expand_squeeze;
  return d;
}
const Register squeeze(with_expand(axes_op(flat("Squeeze", 1, 2, "Drops axes of size 1.", infer_squeeze))));
const Register unsqueeze(axes_op(flat("Unsqueeze", 2, 2, "Inserts axes of size 1.", infer_unsqueeze)));

}  // namespace
}  // namespace ge::ops
