// Gather; with one known index it is a view. (GatherElements and GatherND are in gather_nd.cc.)
#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

void gather_elements(InferContext& c, int axis) {
  auto data = known_elements(c, 0), index = known_elements(c, 1);
  if (!data || !index) return;
  int64_t before = 1, after = 1, n = data->dims[static_cast<size_t>(axis)];
  for (size_t i = 0; i < data->dims.size(); ++i) {
    if (static_cast<int>(i) < axis) before *= data->dims[i];
    if (static_cast<int>(i) > axis) after *= data->dims[i];
  }
  if (before * after * static_cast<int64_t>(index->values.size()) > kMaxElements) return;
  std::vector<Dim> out;
  for (int64_t b = 0; b < before; ++b)
    for (auto& i : index->values) {
      if (!i.known() || i.value() < -n || i.value() >= n) return;
      int64_t at = i.value() < 0 ? i.value() + n : i.value();
      for (int64_t a = 0; a < after; ++a) out.push_back(data->values[static_cast<size_t>((b * n + at) * after + a)]);
    }
  c.set_elements(0, std::move(out));
}

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  GE_RETURN_IF_ERROR(require_index(c, 1));
  if (!c.ranked(0) || !c.ranked(1)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  GE_TRY(int axis, normalize_axis(c, attr_int(c.node, "axis", 0), c.rank(0)));
  auto& x = c.dims(0);
  auto& n = x[static_cast<size_t>(axis)];
  if (auto index = c.elements(1); index && n.known())
    for (auto& i : *index)
      if (i.known() && (i.value() < -n.value() || i.value() >= n.value()))
        return c.fail(format("index {} is outside -{}..{}", i.value(), n.value(), n.value() - 1));
  std::vector<Dim> out(x.begin(), x.begin() + axis);
  out.insert(out.end(), c.dims(1).begin(), c.dims(1).end());
  out.insert(out.end(), x.begin() + axis + 1, x.end());
  if (out.size() > static_cast<size_t>(kMaxRank)) return c.fail(format("its output would have {} axes; at most {} are possible", out.size(), kMaxRank));
  c.set(0, c.dtype(0), std::move(out));
  gather_elements(c, axis);
  return ok();
}

int axis_of(const Graph& g, const Node& n) {
  return wrap_axis(attr_int(n, "axis", 0), g.value(n.inputs[0]).type.rank());
}

std::optional<Strided> view(const Graph& g, const Node& n, int, const Strided& in) {
  auto index = g.elements(n.inputs[1]);
  auto& type = g.value(n.inputs[1]).type;
  if (!index || index->size() != 1 || !type.ranked) return std::nullopt;
  auto axis = static_cast<size_t>(axis_of(g, n));
  Dim at = (*index)[0];
  if (!at.known() || (at.value() >= 0 && !in.dims[axis].known())) return std::nullopt;  // its range is checked at run time
  if (at.value() < 0) {
    if (lower_bound(g, in.dims[axis] + at) < 0) return std::nullopt;
    at = at + in.dims[axis];
  }
  Strided v;
  v.offset = in.offset + at * in.strides[axis];
  for (size_t i = 0; i < in.dims.size(); ++i) {
    if (i == axis) {
      for (int k = 0; k < type.rank(); ++k) v.dims.push_back(1), v.strides.push_back(1);
    } else {
      v.dims.push_back(in.dims[i]), v.strides.push_back(in.strides[i]);
    }
  }
  return v;
}

Status emit(LowerContext& c, const char* kernel) {
  c.call(kernel, {c.in(0), c.in(1)}, {c.out()}, {axis_of(c.graph, c.node)});
  return ok();
}
Status lower(LowerContext& c) { return emit(c, "move.gather"); }
Status reference(LowerContext& c) { return emit(c, "ref.Gather"); }

const Register gather(OpDef{.name = "Gather",
                            .min_inputs = 2,
                            .max_inputs = 2,
                            .attrs = {{"axis", "Along which indices count."}},
                            .doc = "Takes the entries at the indices along an axis.",
                            .infer = infer,
                            .reference = reference,
                            .lower = lower,
                            .view = view});

}  // namespace
}  // namespace ge::ops
