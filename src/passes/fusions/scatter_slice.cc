//   ScatterND(data, indices, updates), where constant indices count through a box of data that leaves at most one axis
//   in part (x[:, a:b] = y, as exporters write it)
//   becomes   Concat(data[:, :a], updates, data[:, b:])   or updates alone
// Data's parts and the updates can then be made where they end up.
#include <cstdint>

#include "base/text.h"
#include "passes/fusion.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

struct Box {
  int axis = -1;                       // the axis that is covered in part; -1: none is
  int64_t begin = 0, end = 0;          // there
};

// Tuples [n0, ..., nk-1, k], of which each is (start + its own place).
Verdict read_box(const ir::Graph& g, const ir::Node& n, Box& box) {
  if (ir::attr_string(n, "reduction", "none") != "none") return no("the updates are reduced into the data");
  const Tensor* tuples = g.value(n.inputs[1]).constant.get();
  auto& data = g.value(n.inputs[0]).type;
  auto& updates = g.value(n.inputs[2]).type;
  if (!tuples || !data.ranked || !updates.ranked) return no("the indices are not constant", "make them constants");
  const auto& dims = tuples->dims();
  const int k = static_cast<int>(dims.back());
  if (tuples->rank() != k + 1 || k < 1 || k > data.rank() || tuples->count() == 0) return no("the indices are no box", "scatter what lies side by side, in order");
  std::vector<int64_t> start(static_cast<size_t>(k)), place(static_cast<size_t>(k));
  for (int a = 0; a < k; ++a) start[static_cast<size_t>(a)] = static_cast<int64_t>(tuples->at(a));
  for (int64_t i = 0; i < tuples->count(); i += k) {
    for (int a = 0; a < k; ++a)
      if (static_cast<int64_t>(tuples->at(i + a)) != start[static_cast<size_t>(a)] + place[static_cast<size_t>(a)]) return no("the indices are no box", "scatter what lies side by side, in order");
    for (int a = k; a-- > 0;) {
      if (++place[static_cast<size_t>(a)] < dims[static_cast<size_t>(a)]) break;
      place[static_cast<size_t>(a)] = 0;
    }
  }
  for (int a = 0; a < k; ++a) {
    const Dim& size = data.dims[static_cast<size_t>(a)];
    if (!size.known()) return no(format("axis {} of the data is not known", a), "give the inputs' shapes with --input_shape");
    const int64_t first = start[static_cast<size_t>(a)], count = dims[static_cast<size_t>(a)];
    if (first < 0 || first + count > size.value()) return no("indices are negative or outside the data", "count them from the front");
    if (count == size.value()) continue;
    if (box.axis >= 0) return no(format("axes {} and {} are both covered in part", box.axis, a), "cover all of the one or the other");
    box = {a, first, first + count};
  }
  return yes();
}

NodeId build(ir::Graph& g, NodeId id, const Box& box) {
  const ir::Node n = g.node(id);
  const auto type = g.value(n.outputs[0]).type;
  NodeId last;
  if (box.axis < 0) {
    last = g.insert("Identity", {n.inputs[2]}, {type}, {}, id);
  } else {
    const int64_t size = type.dims[static_cast<size_t>(box.axis)].value();
    std::vector<ValueId> parts;
    auto slice = [&](int64_t begin, int64_t end) {
      if (begin == end) return;
      auto ints = [&](int64_t v) { return g.add_constant(Tensor::vector_i64(std::vector<int64_t>{v}), "bound"); };
      auto part = type;
      part.dims[static_cast<size_t>(box.axis)] = end - begin;
      parts.push_back(g.node(g.insert("Slice", {n.inputs[0], ints(begin), ints(end), ints(box.axis)}, {part}, {}, id)).outputs[0]);
    };
    slice(0, box.begin);
    parts.push_back(n.inputs[2]);
    slice(box.end, size);
    last = g.insert("Concat", std::move(parts), {type}, {{"axis", int64_t{box.axis}}}, id);
  }
  g.replace_uses(n.outputs[0], g.node(last).outputs[0]);
  g.erase(id);
  return last;
}

Result<bool> search(ir::Graph& g, PassContext& c) {
  bool changed = false;
  for (NodeId id : g.order()) {
    const ir::Node& n = g.node(id);
    if (n.op != "ScatterND" || !g.is_constant(n.inputs[1])) continue;
    Box box;
    Verdict v = read_box(g, n, box);
    if (v) v = in_scope(c.options, g, id);
    if (!v) {
      c.trace.near_miss({"scatter_slice", n.name, 1, 1, n.name, v.why, v.help});
      continue;
    }
    const std::string anchor = n.name;
    c.trace.fused("scatter_slice", g, build(g, id, box), anchor);
    changed = true;
  }
  return changed;
}

const RegisterFusion r(Fusion{.name = "scatter_slice", .doc = "a ScatterND over a box becomes a Concat", .order = 0, .search = search});

}  // namespace
}  // namespace ge::passes
