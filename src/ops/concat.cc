// Concat, and Split as its inverse. Inputs of a Concat are made inside its output where possible;
// outputs of a Split are views.
#include <algorithm>

#include "base/text.h"
#include "ops/axes_from_data.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

// ---- Concat

Status concat_elements(InferContext& c, int axis) {
  // Along axis 0 the flat orders simply follow each other.
  if (axis != 0) return ok();
  std::vector<Dim> out;
  for (int i = 0; i < c.inputs(); ++i) {
    auto e = c.elements(i);
    if (!e) return ok();
    out.insert(out.end(), e->begin(), e->end());
  }
  if (out.size() <= static_cast<size_t>(kMaxElements)) c.set_elements(0, std::move(out));
  return ok();
}

Status infer_concat(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, c.inputs()));
  if (!has_attr(c.node, "axis")) return c.fail("attribute axis is missing");
  int rank = -1;
  for (int i = 0; i < c.inputs(); ++i) {
    if (c.dtype(i) != c.dtype(0)) return c.fail(format("input {} is {}, input 0 is {}", i, name(c.dtype(i)), name(c.dtype(0))), "All its inputs need one type: convert one of them with a Cast.");
    if (!c.ranked(i)) continue;
    if (rank >= 0 && c.rank(i) != rank) return c.fail(format("input {} has {} axes, those before it {}; all need as many", i, c.rank(i), rank));
    rank = c.rank(i);
  }
  if (rank < 0) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  GE_TRY(int axis, normalize_axis(c, attr_int(c.node, "axis", 0), rank));
  std::vector<Dim> out;
  Dim sum(0);
  bool all = true;
  for (int i = 0; i < c.inputs(); ++i) {
    if (!c.ranked(i)) {
      all = false;
      continue;
    }
    auto& d = c.dims(i);
    sum = sum + d[static_cast<size_t>(axis)];
    if (out.empty()) {
      out = d;
      continue;
    }
    for (size_t a = 0; a < d.size(); ++a)
      if (static_cast<int>(a) != axis) {
        GE_TRY(out[a], unify(c, out[a], d[a], format("axis {} of input {}", a, i)));
      }
  }
  out[static_cast<size_t>(axis)] = all ? sum : c.fresh("sum");
  c.set(0, c.dtype(0), std::move(out));
  return concat_elements(c, axis);
}

int concat_axis(const Graph& g, const Node& n) {
  return wrap_axis(attr_int(n, "axis", 0), g.value(n.outputs[0]).type.rank());
}

// Where inputs [first, end) begin inside the output; none from the first on whose shape is not known.
std::vector<std::optional<Strided>> parts_of(const Graph& g, const Node& n, const Strided& out, size_t first, size_t end) {
  std::vector<std::optional<Strided>> parts(end - first);
  auto axis = static_cast<size_t>(concat_axis(g, n));
  // Sizes in front are most often alike: comparing costs far less than adding expressions.
  int64_t known = 0, times = 0;
  Dim open, last;
  for (size_t i = 0; i < end; ++i) {
    auto& type = g.value(n.inputs[i]).type;
    if (!type.ranked) break;
    auto& size = type.dims[axis];
    if (i >= first) {
      auto& part = parts[i - first].emplace(out);
      part.offset = out.offset + (open + last * Dim(times) + Dim(known)) * out.strides[axis];
      part.dims[axis] = size;
    }
    if (size.known()) known += size.value();
    else if (times > 0 && size == last) ++times;
    else open = open + last * Dim(times), last = size, times = 1;
  }
  return parts;
}

std::optional<Strided> place_concat(const Graph& g, const Node& n, int input, const Strided& out) {
  auto i = static_cast<size_t>(input);
  auto copied = ir::attr_ints(n, "copied");
  if (std::find(copied.begin(), copied.end(), input) != copied.end()) return std::nullopt;
  return std::move(parts_of(g, n, out, i, i + 1)[0]);
}

Status lower_concat(LowerContext& c) {
  auto parts = parts_of(c.graph, c.node, c.out_view(), 0, c.node.inputs.size());
  for (int i = 0; i < c.inputs(); ++i) {
    if (product(c.type(i).dims).is(0)) continue;
    c.call("move.copy", {c.in(i)}, {c.out_as(0, *std::move(parts[static_cast<size_t>(i)]))});
  }
  return ok();
}

Status reference_concat(LowerContext& c) {
  std::vector<Arg> in;
  for (int i = 0; i < c.inputs(); ++i) in.push_back(c.in(i));
  c.call("ref.Concat", std::move(in), {c.out()}, {concat_axis(c.graph, c.node)});
  return ok();
}

// The order of the axes that most of the data has.
std::vector<int> layout_concat(const Graph& g, const Node& n) {
  for (ValueId v : n.inputs)
    if (v && !g.value(v).layout.empty() && g.value(v).type.rank() == g.value(n.outputs[0]).type.rank()) return g.value(v).layout;
  return {};
}

std::optional<RowWindow> rows_concat(const Graph& g, const Node& n, int, int axis) {
  return concat_axis(g, n) == axis ? std::nullopt : std::optional(RowWindow{});
}

// ---- Split

// Sizes of the parts along the axis.
Result<std::vector<Dim>> part_sizes(const InferContext& c, const Dim& size) {
  size_t n = c.node.outputs.size();
  if (c.has(1)) {
    auto e = c.elements(1);
    if (!e) return c.fail("its sizes are known only at run time");
    if (e->size() != n) return c.fail(format("split has {} sizes for {} outputs; one for each output is needed", e->size(), n));
    Dim sum;
    for (auto& d : *e) {
      if (d.known() && d.value() < 0) return c.fail(format("a size of split is {}; none may be negative", d.value()));
      sum = sum + d;
    }
    if (sum.known() && size.known() && !(sum == size))
      return c.fail(format("the sizes of split add up to {}, but the axis has {}", sum.value(), size.value()));
    auto sizes = *e;
    if (!(sum == size)) sizes[0] = only_if(equal(sum, size), sizes[0]);
    return sizes;
  }
  auto count = static_cast<int64_t>(n);
  int64_t given = attr_int(c.node, "num_outputs", count);
  if (given != count) return c.fail(format("attribute num_outputs is {}, but it has {} outputs", given, count));
  Dim part = ceildiv(size, count);
  std::vector<Dim> out(n, part);
  // The last is smaller when it does not come out even.
  out.back() = size - part * Dim(count - 1);
  if (out.back().known() && out.back().value() < 0) return c.fail(format("an axis of {} does not split into {} parts", size.value(), count));
  return out;
}

Status split_elements(InferContext& c) {
  auto e = known_elements(c, 0);
  if (!e || e->dims.size() != 1) return ok();
  int64_t at = 0;
  for (size_t i = 0; i < c.out.size(); ++i) {
    auto& d = c.out[i].dims[0];
    if (!d.known() || at + d.value() > static_cast<int64_t>(e->values.size())) return ok();
    c.out_elements[i] = std::vector<Dim>(e->values.begin() + at, e->values.begin() + at + d.value());
    at += d.value();
  }
  return ok();
}

Status infer_split(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  GE_RETURN_IF_ERROR(require_index(c, 1));
  if (c.node.outputs.empty()) return ok();
  if (!c.ranked(0)) {
    for (size_t i = 0; i < c.out.size(); ++i) c.set_unranked(static_cast<int>(i), c.dtype(0));
    return ok();
  }
  GE_TRY(int axis, normalize_axis(c, attr_int(c.node, "axis", 0), c.rank(0)));
  GE_TRY(auto sizes, part_sizes(c, c.dims(0)[static_cast<size_t>(axis)]));
  for (size_t i = 0; i < c.out.size(); ++i) {
    auto dims = c.dims(0);
    dims[static_cast<size_t>(axis)] = sizes[i];
    c.set(static_cast<int>(i), c.dtype(0), std::move(dims));
  }
  return split_elements(c);
}

Status upgrade_split(UpgradeContext& c) {
  if (c.version < 13) c.attr_to_input("split", 1);
  return ok();
}

// Where output i begins along the axis; absent outputs have no type, so sizes come from the inputs.
Dim split_start(const Graph& g, const Node& n, size_t axis, int output) {
  auto i = static_cast<size_t>(output);
  if (n.inputs.size() > 1 && n.inputs[1]) {
    Dim at;
    auto& sizes = g.value(n.inputs[1]);
    for (size_t k = 0; k < i; ++k) at = at + (sizes.content ? (*sizes.content)[k] : Dim(sizes.constant->at_int(static_cast<int64_t>(k))));
    return at;
  }
  auto count = static_cast<int64_t>(n.outputs.size());
  return ceildiv(g.value(n.inputs[0]).type.dims[axis], count) * Dim(output);
}

std::optional<Strided> view_split(const Graph& g, const Node& n, int output, const Strided& in) {
  auto axis = static_cast<size_t>(wrap_axis(attr_int(n, "axis", 0), static_cast<int>(in.dims.size())));
  Strided v = in;
  v.offset = in.offset + split_start(g, n, axis, output) * in.strides[axis];
  v.dims[axis] = g.value(n.outputs[static_cast<size_t>(output)]).type.dims[axis];
  return v;
}

Status reference_split(LowerContext& c) {
  auto rank = static_cast<size_t>(c.type(0).rank());
  auto axis = static_cast<size_t>(wrap_axis(attr_int(c.node, "axis", 0), static_cast<int>(rank)));
  for (size_t i = 0; i < c.node.outputs.size(); ++i) {
    if (!c.wants(static_cast<int>(i))) continue;
    std::vector<Dim> ints(2 * rank);
    for (size_t a = 0; a < rank; ++a) ints[rank + a] = 1;
    ints[axis] = split_start(c.graph, c.node, axis, static_cast<int>(i));
    c.call("ref.Slice", {c.in(0)}, {c.out(static_cast<int>(i))}, std::move(ints));
  }
  return ok();
}

const Register concat(OpDef{.name = "Concat",
                            .min_inputs = 1,
                            .max_inputs = -1,
                            .attrs = {{"axis", "Along which inputs follow each other."}, {"copied", "inputs that are not made inside the output, which then need not be there as early as they"}},
                            .doc = "Inputs one after the other.",
                            .infer = infer_concat,
                            .reference = reference_concat,
                            .lower = lower_concat,
                            .place = place_concat,
                            .layout = layout_concat,
                            .window = rows_concat});

const Register split(OpDef{.name = "Split",
                           .min_inputs = 1,
                           .max_inputs = 2,
                           .max_outputs = -1,
                           .attrs = {{"axis", "Along which it is cut."}, {"num_outputs", "Parts of equal size, the last smaller."}},
                           .doc = "Cuts the input into parts.",
                           .infer = infer_split,
                           .upgrade = upgrade_split,
                           .reference = reference_split,
                           .lower = lower_views,
                           .view = view_split,
                           .layout = layout_of_input,
                           .sizes = 1u << 1});

}  // namespace
}  // namespace ge::ops
