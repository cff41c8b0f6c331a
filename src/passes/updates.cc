// Rows put between those around them, as exporters write x[i] = row inside a Loop:
//   Concat(Slice(x, 0, i), row, Slice(x, i + 1, end))   becomes   ge.Splice(x, row, rows of the first Slice, of the last)
// in nested graphs, where x is an input that the result replaces: the Concat would copy all of x, the splice writes the
// row where x lies. Whether it lands where it was cut out may depend on data; what it makes is the same in any case.
#include <algorithm>

#include "ops/shape_util.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

// What a Slice of step 1 along this axis alone cuts from where to where; nothing if v is no such.
struct Cut {
  ValueId of;
  Dim start, end;
};
std::optional<Cut> cut(const ir::Graph& g, ValueId v, int axis) {
  NodeId id = v ? g.value(v).producer : NodeId{};
  if (!id || g.node(id).op != "Slice") return std::nullopt;
  auto& n = g.node(id);
  auto one = [&](size_t i, const Dim& otherwise) -> std::optional<Dim> {
    if (i >= n.inputs.size() || !n.inputs[i]) return otherwise;
    auto e = g.elements(n.inputs[i]);
    return e && e->size() == 1 ? std::optional((*e)[0]) : std::nullopt;
  };
  auto start = one(1, 0), end = one(2, 0), along = one(3, 0), step = one(4, 1);
  auto& type = g.value(n.inputs[0]).type;
  if (!start || !end || !along || !along->known() || !step || !step->is(1) || !type.ranked || ops::wrap_axis(along->value(), type.rank()) != axis) return std::nullopt;
  return Cut{n.inputs[0], *start, *end};
}

// The output of a Split along this axis, first or last of them; none if v is no such.
ValueId split(const ir::Graph& g, ValueId v, int axis, bool last) {
  NodeId id = v ? g.value(v).producer : NodeId{};
  if (!id || g.node(id).op != "Split") return {};
  auto& n = g.node(id);
  const bool there = g.value(v).output_index == (last ? static_cast<int>(n.outputs.size()) - 1 : 0);
  return there && ops::wrap_axis(ir::attr_int(n, "axis", 0), g.value(v).type.rank()) == axis ? n.inputs[0] : ValueId{};
}

// The value whose first rows v is; none.
ValueId whole_of_first(const ir::Graph& g, ValueId v, int axis) {
  auto c = cut(g, v, axis);
  return c && c->start.is(0) ? c->of : split(g, v, axis, false);
}

ValueId whole_of_last(const ir::Graph& g, ValueId v, int axis) {
  auto c = cut(g, v, axis);
  if (!c) return split(g, v, axis, true);
  constexpr int64_t kToEnd = int64_t{1} << 40;   // no axis is longer
  auto& size = g.value(c->of).type.dims[static_cast<size_t>(axis)];
  const bool to_end = (c->end.known() && c->end.value() >= kToEnd) || ops::min_of(g, c->end, size) == size;
  return to_end ? c->of : ValueId{};
}

// Inputs of a Concat: first rows of `whole`, others, last rows of it; one of the two may lack.
struct Splice {
  ValueId whole, lead, rest;
  std::vector<ValueId> parts;
};

std::optional<Splice> splice(const ir::Graph& g, const ir::Node& n, int axis) {
  Splice s;
  s.parts = n.inputs;
  if (n.inputs.size() < 2) return std::nullopt;
  const ValueId first = whole_of_first(g, n.inputs.front(), axis), last = whole_of_last(g, n.inputs.back(), axis);
  if (last) s.whole = last, s.rest = s.parts.back(), s.parts.pop_back();
  if (first && (!last || first == last)) s.whole = first, s.lead = s.parts.front(), s.parts.erase(s.parts.begin());
  if (!s.whole || s.parts.empty()) return std::nullopt;
  return s;
}

// The value that is replaced by v, where v is an update of one; none. Finds chains of updates.
ValueId updated(const ir::Graph& g, ValueId v) {
  NodeId id = g.value(v).producer;
  if (!id || g.value(v).output_index != 0) return {};
  auto& n = g.node(id);
  auto* op = ops::find(n.op);
  if (op && op->updates) return n.inputs[0];
  if (n.op != "Concat" || !g.value(v).type.ranked) return {};
  auto s = splice(g, n, ops::wrap_axis(ir::attr_int(n, "axis", 0), g.value(v).type.rank()));
  return s ? s->whole : ValueId{};
}

// How many rows v has, as a value; none: no rows.
ValueId rows_of(ir::Graph& g, ValueId v, int axis, NodeId like) {
  if (!v) return g.add_constant(Tensor::vector_i64(std::vector<int64_t>{0}), "rows");
  return g.node(g.insert("Shape", {v}, {ir::Type::tensor(DType::i64, {Dim(1)})}, {{"start", int64_t{axis}}, {"end", int64_t{axis} + 1}}, like)).outputs[0];
}

void rewrite(ir::Graph& g, NodeId id) {
  const ValueId out = g.node(id).outputs[0];
  const ir::Type type = g.value(out).type;
  const int axis = ops::wrap_axis(ir::attr_int(g.node(id), "axis", 0), type.rank());
  const Splice s = *splice(g, g.node(id), axis);
  ValueId part = s.parts[0];
  if (s.parts.size() > 1) {
    ir::Type all = type;
    all.dims[static_cast<size_t>(axis)] = 0;
    for (ValueId v : s.parts) all.dims[static_cast<size_t>(axis)] = all.dims[static_cast<size_t>(axis)] + g.value(v).type.dims[static_cast<size_t>(axis)];
    part = g.node(g.insert("Concat", s.parts, {std::move(all)}, {{"axis", int64_t{axis}}}, id)).outputs[0];
  }
  const ValueId lead = rows_of(g, s.lead, axis, id), rest = rows_of(g, s.rest, axis, id);
  const ValueId now = g.node(g.insert("ge.Splice", {s.whole, part, lead, rest}, {type}, {{"axis", int64_t{axis}}}, id)).outputs[0];
  g.replace_uses(out, now);
  g.erase(id);
}

}  // namespace

Result<bool> updates(ir::Graph& g, PassContext&) {
  if (g.scope.empty()) return false;
  std::vector<NodeId> found;
  for (ValueId v : g.outputs) {
    std::vector<NodeId> chain;
    ValueId from = v;
    while (ValueId before = updated(g, from)) {
      if (NodeId id = g.value(from).producer; g.node(id).op == "Concat") chain.push_back(id);
      from = before;
    }
    if (g.is_input(from)) found.insert(found.end(), chain.begin(), chain.end());
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  for (NodeId id : found) rewrite(g, id);
  return !found.empty();
}

}  // namespace ge::passes
