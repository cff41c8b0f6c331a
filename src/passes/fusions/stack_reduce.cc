//   ReduceMax|Min|Sum|Prod|Mean(Concat(a, b, ...) along axis, [axis])   becomes   Max|Min|Add|Mul(a, b) ...
// where each part is one slice along the axis (torch.stack and a reduction): no copy, no reduction over short rows.
// In the order of the parts, as the reduction; for f32 and f64, whose rounding does not depend on the accumulator's type.
#include <map>

#include "base/text.h"
#include "passes/fusion.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

constexpr size_t kMostParts = 16;

const char* pairwise(const std::string& op) {
  static const std::map<std::string, const char*> kOps = {
      {"ReduceMax", "Max"}, {"ReduceMin", "Min"}, {"ReduceSum", "Add"}, {"ReduceProd", "Mul"}, {"ReduceMean", "Add"}};
  auto it = kOps.find(op);
  return it == kOps.end() ? nullptr : it->second;
}

int64_t from_the_end(int64_t axis, int rank) { return axis < 0 ? axis : axis - rank; }

// The Concat that `reduce` reduces away, by the axis of its parts alone; none: another kind of reduction.
NodeId stacked(const ir::Graph& g, const ir::Node& reduce) {
  if (reduce.inputs.size() < 2 || !reduce.inputs[0] || !reduce.inputs[1]) return {};
  NodeId id = g.value(reduce.inputs[0]).producer;
  const Tensor* axes = g.value(reduce.inputs[1]).constant.get();
  auto& type = g.value(reduce.inputs[0]).type;
  if (!id || g.node(id).op != "Concat" || !axes || axes->count() != 1 || !type.ranked || g.node(id).inputs.size() < 2) return {};
  const int64_t axis = ir::attr_int(g.node(id), "axis", 0);
  return from_the_end(axis, type.rank()) == from_the_end(static_cast<int64_t>(axes->at(0)), type.rank()) ? id : NodeId{};
}

Verdict possible(const ir::Graph& g, const ir::Node& concat, const ir::Type& type) {
  if (type.dtype != DType::f32 && type.dtype != DType::f64) return no(format("its type is {}", name(type.dtype)));
  if (concat.inputs.size() > kMostParts) return no(format("it has {} parts; at most {} are taken one by one", concat.inputs.size(), kMostParts));
  const int64_t axis = ir::attr_int(concat, "axis", 0);
  for (ValueId part : concat.inputs) {
    const auto& dims = g.value(part).type.dims;
    const Dim& size = dims[static_cast<size_t>(axis < 0 ? axis + type.rank() : axis)];
    if (!size.known() || size.value() != 1) return no(format("part {} is not one slice of the axis", quote(g.value(part).name)), "join slices of size 1");
  }
  return yes();
}

NodeId build(ir::Graph& g, NodeId id, const ir::Node& concat) {
  const std::string op = g.node(id).op;
  const auto parts = concat.inputs;
  const auto type = g.value(parts[0]).type;
  auto make = [&](const char* what, std::vector<ValueId> in, const ir::Type& t) {
    return g.node(g.insert(what, std::move(in), {t}, {}, id)).outputs[0];
  };
  ValueId sum = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) sum = make(pairwise(op), {sum, parts[i]}, type);
  if (op == "ReduceMean") {
    Tensor count(type.dtype, {});
    if (type.dtype == DType::f32) *count.as<float>() = static_cast<float>(parts.size());
    else *count.as<double>() = static_cast<double>(parts.size());
    sum = make("Div", {sum, g.add_constant(std::move(count), "parts")}, type);
  }
  if (ir::attr_int(g.node(id), "keepdims", 1) == 0) sum = make("Squeeze", {sum, g.node(id).inputs[1]}, g.value(g.node(id).outputs[0]).type);
  NodeId last = g.value(sum).producer;
  g.node(last).origin = origins_of(g.node(id));
  g.replace_uses(g.node(id).outputs[0], sum);
  g.erase(id);
  return last;
}

Result<bool> search(ir::Graph& g, PassContext& c) {
  bool changed = false;
  for (NodeId id : g.order()) {
    if (!pairwise(g.node(id).op)) continue;
    NodeId concat = stacked(g, g.node(id));
    if (!concat) continue;
    Verdict v = possible(g, g.node(concat), g.value(g.node(concat).outputs[0]).type);
    if (v) v = in_scope(c.options, g, id);
    if (!v) {
      c.trace.near_miss({"stack_reduce", g.node(id).name, 1, 2, g.node(concat).name, v.why, v.help});
      continue;
    }
    std::string anchor = g.node(id).name;
    c.trace.fused("stack_reduce", g, build(g, id, g.node(concat)), anchor);
    changed = true;
  }
  return changed;
}

const RegisterFusion r(Fusion{.name = "stack_reduce", .doc = "a reduction over stacked values becomes operators on pairs of them", .order = 0, .search = search});

}  // namespace
}  // namespace ge::passes
