// Pad: constant, reflect, edge and wrap; negative pads crop.
#include "base/text.h"
#include "kernels/move/element.h"
#include "ops/axes_from_data.h"
#include "ops/pad.h"
#include "ops/shape_util.h"

namespace ge::ops {

std::optional<Pads> pads_of(const Graph& g, const Node& n) {
  auto e = g.elements(n.inputs[1]);
  auto rank = static_cast<size_t>(g.value(n.inputs[0]).type.rank());
  if (!e) return std::nullopt;
  std::vector<size_t> axes;
  if (n.inputs.size() > 3 && n.inputs[3]) {
    auto given = g.elements(n.inputs[3]);
    if (!given) return std::nullopt;
    if (!known_dims(*given)) {
      if (e->size() != 2 * given->size()) return std::nullopt;
      auto half = e->begin() + static_cast<int64_t>(given->size());
      return Pads{by_axis(*given, {e->begin(), half}, std::vector<Dim>(rank)), by_axis(*given, {half, e->end()}, std::vector<Dim>(rank))};
    }
    for (auto& a : *given) {
      if (!a.known()) return std::nullopt;
      axes.push_back(static_cast<size_t>(wrap_axis(a.value(), static_cast<int>(rank))));
    }
  } else {
    for (size_t i = 0; i < rank; ++i) axes.push_back(i);
  }
  Pads p;
  p.begins.resize(rank), p.ends.resize(rank);
  for (size_t i = 0; i < axes.size() && axes.size() + i < e->size(); ++i) {
    if (axes[i] >= rank) return std::nullopt;
    p.begins[axes[i]] = (*e)[i], p.ends[axes[i]] = (*e)[axes.size() + i];
  }
  return p;
}

namespace {

int64_t mode_of(const Node& n) {
  std::string m = attr_string(n, "mode", "constant");
  return m == "constant" ? 0 : m == "reflect" ? 1 : m == "edge" ? 2 : m == "wrap" ? 3 : -1;
}

Status check(const InferContext& c) {
  if (c.dtype(1) != DType::i64) return c.fail(format("pads are {}, not i64", name(c.dtype(1))));
  if (mode_of(c.node) < 0) return c.fail(format("mode '{}' is not known; it is 'constant', 'reflect', 'edge' or 'wrap'", attr_string(c.node, "mode", "")));
  // What was an attribute before opset 11 is f32 whatever the data are.
  if (c.has(2) && c.dtype(2) != c.dtype(0) && !(c.constant(2) && is_float(c.dtype(0)))) return c.fail(format("the value to pad with is {}, but the data are {}; they need one type", name(c.dtype(2)), name(c.dtype(0))));
  if (c.has(2) && c.ranked(2) && product(c.dims(2)).known() && !product(c.dims(2)).is(1)) return c.fail("the value is not one element");
  size_t n = static_cast<size_t>(c.rank(0));
  if (auto named = c.elements(3)) n = named->size();
  if (auto axes = c.ints(3)) {
    for (int64_t a : *axes) {
      GE_TRY(int axis, normalize_axis(c, a, c.rank(0)));
      (void)axis;
    }
  }
  auto e = c.elements(1);
  if (e && e->size() != 2 * n) return c.fail(format("there are {} pads for {} axes; a number before and one after each axis are needed", e->size(), n));
  return ok();
}

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  GE_RETURN_IF_ERROR(require_index(c, 3));
  if (!c.ranked(0)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  GE_RETURN_IF_ERROR(check(c));
  auto p = pads_of(c.graph, c.node);
  if (!p) {
    c.set(0, c.dtype(0), fresh_dims(c, c.dims(0).size()));
    return ok();
  }
  std::vector<Dim> out;
  for (size_t i = 0; i < c.dims(0).size(); ++i) {
    out.push_back(c.dims(0)[i] + p->begins[i] + p->ends[i]);
    if (out.back().known() && out.back().value() < 0)
      return c.fail(format("axis {} of {} is cropped to {}", i, text(c.dims(0)), out.back().value()));
  }
  c.set(0, c.dtype(0), std::move(out));
  return ok();
}

Arg value(LowerContext& c) {
  DType t = c.type(0).dtype;
  auto* v = c.constant_of(2);
  if (!v || v->dtype() == t) return c.in(2);
  Tensor converted(t, {});
  kernels::move::store_f64(t, converted.mutable_data(), v->at(0));
  return c.weight(converted);
}

Status emit(LowerContext& c, const char* kernel) {
  auto p = pads_of(c.graph, c.node);
  if (!p) return c.fail("its pads are known only at run time");
  std::vector<Dim> ints{mode_of(c.node)};
  ints.insert(ints.end(), p->begins.begin(), p->begins.end());
  std::vector<Arg> in{c.in(0)};
  if (c.has(2)) in.push_back(value(c));
  c.call(kernel, std::move(in), {c.out()}, std::move(ints));
  return ok();
}
Status lower(LowerContext& c) { return emit(c, "move.pad"); }
Status reference(LowerContext& c) { return emit(c, "ref.Pad"); }

// Cropping only (or nothing) is a look at a part.
std::optional<Strided> view(const Graph& g, const Node& n, int, const Strided& in) {
  auto p = pads_of(g, n);
  auto& out = g.value(n.outputs[0]).type;
  if (!p || !out.ranked) return std::nullopt;
  Strided v = in;
  for (size_t i = 0; i < in.dims.size(); ++i) {
    auto &b = p->begins[i], &e = p->ends[i];
    if (!b.known() || !e.known() || b.value() > 0 || e.value() > 0) return std::nullopt;
    v.offset = v.offset - b * in.strides[i];
    v.dims[i] = out.dims[i];
  }
  return v;
}

// What only grows may be made where it will lie, so that no more than the border is left to do.
std::optional<Strided> place(const Graph& g, const Node& n, int input, const Strided& out) {
  if (input != 0) return std::nullopt;
  auto p = pads_of(g, n);
  if (!p) return std::nullopt;
  auto& type = g.value(n.inputs[0]).type;
  bool grows = false;
  Strided part = out;
  for (size_t i = 0; i < out.dims.size(); ++i) {
    auto &b = p->begins[i], &e = p->ends[i];
    if (!b.known() || !e.known() || b.value() < 0 || e.value() < 0) return std::nullopt;
    grows |= b.value() + e.value() > 0;
    part.offset = part.offset + b * out.strides[i];
    part.dims[i] = type.dims[i];
  }
  if (!grows) return std::nullopt;
  return part;
}

// Before opset 11 pads and value were attributes.
Status upgrade(UpgradeContext& c) {
  if (c.version >= 11) return ok();
  c.attr_to_input("pads", 1);
  c.attr_to_input("value", 2);
  return ok();
}

const Register pad(OpDef{.name = "Pad",
                         .min_inputs = 2,
                         .max_inputs = 4,
                         .since = 2,
                         .attrs = {{"mode", "constant, reflect, edge or wrap."}},
                         .doc = "Adds elements before and after each axis; negative pads take them away.",
                         .infer = infer,
                         .upgrade = upgrade,
                         .reference = reference,
                         .lower = lower,
                         .view = view,
                         .place = place,
                         .layout = layout_of_input,
                         .parameters = 1u << 1 | 1u << 3});

}  // namespace
}  // namespace ge::ops
