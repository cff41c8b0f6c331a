// Expand (a view that repeats with stride 0) and Tile.
#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

// Elements of a tensor whose axes repeat those of the input (known sizes, small).
void repeat_elements(InferContext& c) {
  auto e = known_elements(c, 0);
  auto dims = known_dims(c.out[0].dims);
  if (!e || !dims) return;
  int64_t count = 1;
  for (int64_t d : *dims) count *= d;
  if (count > kMaxElements) return;
  size_t lead = dims->size() - e->dims.size();
  std::vector<Dim> out;
  for (int64_t flat = 0; flat < count; ++flat) {
    int64_t left = flat, at = 0, step = 1;
    for (size_t i = dims->size(); i-- > 0;) {
      int64_t index = left % (*dims)[i];
      left /= (*dims)[i];
      if (i < lead) continue;
      at += index % e->dims[i - lead] * step;
      step *= e->dims[i - lead];
    }
    out.push_back(e->values[static_cast<size_t>(at)]);
  }
  c.set_elements(0, std::move(out));
}

// ---- Expand

Status infer_expand(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  GE_RETURN_IF_ERROR(require_index(c, 1));
  auto e = c.elements(1);
  const auto n = listed_rank(c, 1);
  if (!c.ranked(0) || (!e && !n)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  if (!e) {
    c.set(0, c.dtype(0), fresh_dims(c, std::max(c.dims(0).size(), *n)));
    return ok();
  }
  if (e->size() > static_cast<size_t>(kMaxRank)) return c.fail(format("its output would have {} axes; at most {} are possible", e->size(), kMaxRank));
  for (auto& d : *e)
    if (d.known() && d.value() < 0) return c.fail(format("shape {} has a negative size", text(*e)));
  GE_TRY(auto dims, broadcast_dims(c, c.dims(0), *e));
  c.set(0, c.dtype(0), std::move(dims));
  repeat_elements(c);
  return ok();
}

std::optional<Strided> view_expand(const Graph& g, const Node& n, int, const Strided& in) {
  auto& out = g.value(n.outputs[0]).type;
  if (!out.ranked) return std::nullopt;
  Strided v;
  v.offset = in.offset;
  v.dims = out.dims;
  size_t lead = out.dims.size() - in.dims.size();
  for (size_t i = 0; i < out.dims.size(); ++i) {
    if (i < lead) {
      v.strides.push_back(0);
      continue;
    }
    const Dim &d = in.dims[i - lead], &s = in.strides[i - lead];
    // Whether a symbolic axis is repeated shows when its size is bound.
    v.strides.push_back(d == out.dims[i] ? s : select(equal(d, 1), 0, s));
  }
  return v;
}

Status reference_expand(LowerContext& c) {
  c.call("ref.Expand", {c.in(0)}, {c.out()});
  return ok();
}

// ---- Tile

Status infer_tile(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  if (c.dtype(1) != DType::i64) return c.fail(format("repeats are {}, not i64", name(c.dtype(1))));
  if (!c.ranked(0)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  auto e = c.elements(1);
  if (!e) {
    c.set(0, c.dtype(0), fresh_dims(c, c.dims(0).size()));
    return ok();
  }
  if (e->size() != c.dims(0).size()) return c.fail(format("there are {} repeats for the {} axes of its input; one for each axis is needed", e->size(), c.dims(0).size()));
  std::vector<Dim> out;
  for (size_t i = 0; i < e->size(); ++i) {
    if ((*e)[i].known() && (*e)[i].value() < 0) return c.fail(format("repeats are {}; none may be negative", text(*e)));
    out.push_back(c.dims(0)[i] * (*e)[i]);
  }
  c.set(0, c.dtype(0), std::move(out));
  repeat_elements(c);
  return ok();
}

// Axes of size 1 repeat with stride 0; others must not repeat.
std::optional<Strided> view_tile(const Graph& g, const Node& n, int, const Strided& in) {
  auto& out = g.value(n.outputs[0]).type;
  if (!out.ranked) return std::nullopt;
  Strided v = in;
  v.dims = out.dims;
  for (size_t i = 0; i < v.dims.size(); ++i) {
    if (in.dims[i] == out.dims[i]) continue;
    if (!in.dims[i].is(1)) return std::nullopt;
    v.strides[i] = 0;
  }
  return v;
}

// One copy: both sides seen with axes (repeat, size), the input's repeat having stride 0.
Status lower_tile(LowerContext& c) {
  auto repeats = c.elements(1);
  Strided in = c.view(0), out = c.out_view(), from, to;
  if (!repeats || 2 * in.dims.size() > static_cast<size_t>(kMaxRank)) return ok();
  from.offset = in.offset;
  to.offset = out.offset;
  for (size_t i = 0; i < in.dims.size(); ++i) {
    if (!(*repeats)[i].is(1)) {
      from.dims.push_back((*repeats)[i]), from.strides.push_back(0);
      to.dims.push_back((*repeats)[i]), to.strides.push_back(in.dims[i] * out.strides[i]);
    }
    from.dims.push_back(in.dims[i]), from.strides.push_back(in.strides[i]);
    to.dims.push_back(in.dims[i]), to.strides.push_back(out.strides[i]);
  }
  c.call("move.copy", {c.in_as(0, std::move(from))}, {c.out_as(0, std::move(to))});
  return ok();
}

Status reference_tile(LowerContext& c) {
  c.call("ref.Tile", {c.in(0)}, {c.out()});
  return ok();
}

const Register registered[] = {
    Register(OpDef{.name = "Expand", .min_inputs = 2, .max_inputs = 2, .since = 8,
                   .doc = "Repeats axes of size 1, as broadcasting does.", .infer = infer_expand,
                   .reference = reference_expand, .lower = lower_views, .view = view_expand, .sizes = 1u << 1}),
    Register(OpDef{.name = "Tile", .min_inputs = 2, .max_inputs = 2, .since = 6, .doc = "Repeats the input along each axis.",
                   .infer = infer_tile, .reference = reference_tile, .lower = lower_tile, .view = view_tile, .sizes = 1u << 1}),
};

}  // namespace
}  // namespace ge::ops
