// Caches that lie stacked in one state, as GPT-2's keys and values of [2, B, H, P, D], are appended to as a whole:
//   Concat0(Unsqueeze(Concat(past[0], a)), Unsqueeze(Concat(past[1], b)))
//                     becomes   Concat(past, Concat0(Unsqueeze(a), Unsqueeze(b)))
// with the inner Concats' axis one further. What else reads an inner Concat reads that part of the result.
#include <algorithm>

#include "ops/op.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;
using ops::Strided;

bool same(const Strided& a, const Strided& b) { return a.offset == b.offset && a.dims == b.dims && a.strides == b.strides; }

// `v` as a view of `base`, which is taken to be dense; nothing where it is none.
std::optional<Strided> seen_in(const ir::Graph& g, ValueId v, ValueId base, int depth = 4) {
  if (v == base) return Strided::dense(g.value(base).type.dims);
  NodeId id = g.value(v).producer;
  if (!id || depth == 0 || g.node(id).inputs.empty() || !g.node(id).inputs[0]) return std::nullopt;
  auto* op = ops::find(g.node(id).op);
  if (!op || !op->view) return std::nullopt;
  auto in = seen_in(g, g.node(id).inputs[0], base, depth - 1);
  return in ? ops::seen_through(*op, g, g.node(id), g.value(v).output_index, *in) : std::nullopt;
}

// Part i of `base` along its first axis.
Strided part(const ir::Graph& g, ValueId base, size_t i) {
  Strided v = Strided::dense(g.value(base).type.dims);
  v.offset = v.strides[0] * Dim(static_cast<int64_t>(i));
  v.dims.erase(v.dims.begin()), v.strides.erase(v.strides.begin());
  return v;
}

int64_t axis_of(const ir::Graph& g, NodeId id) {
  const int64_t axis = ir::attr_int(g.node(id), "axis", 0);
  return axis < 0 ? axis + g.value(g.node(id).outputs[0]).type.rank() : axis;
}

NodeId concat(const ir::Graph& g, ValueId v) {
  NodeId id = g.value(v).producer;
  return id && g.node(id).op == "Concat" ? id : NodeId{};
}

// The nodes that append to each part of `past`, where `all` is their results one upon the other; none otherwise.
std::vector<NodeId> appended_parts(const ir::Graph& g, ValueId past, ValueId all) {
  NodeId stack = concat(g, all);
  auto& dims = g.value(past).type.dims;
  if (!stack || axis_of(g, stack) != 0 || dims.size() < 2 || !dims[0].is(static_cast<int64_t>(g.node(stack).inputs.size()))) return {};
  std::vector<NodeId> found;
  for (size_t i = 0; i < g.node(stack).inputs.size(); ++i) {
    NodeId lift = g.value(g.node(stack).inputs[i]).producer;
    if (!lift || (g.node(lift).op != "Unsqueeze" && g.node(lift).op != "Reshape")) return {};
    ValueId whole = g.node(lift).inputs[0];
    NodeId append = concat(g, whole);
    if (!append || g.node(append).inputs.size() != 2 || (i > 0 && axis_of(g, append) != axis_of(g, found[0]))) return {};
    auto lifted = g.value(whole).type.dims;
    lifted.insert(lifted.begin(), Dim(1));
    if (g.value(g.node(lift).outputs[0]).type.dims != lifted) return {};
    auto first = seen_in(g, g.node(append).inputs[0], past);
    if (!first || !same(*first, part(g, past, i))) return {};
    found.push_back(append);
  }
  return found;
}

// Whether what one of these nodes appends is computed from what another of them makes.
bool depend(const ir::Graph& g, const std::vector<NodeId>& parts) {
  std::vector<bool> seen(g.node_capacity());
  std::vector<NodeId> open;
  auto visit = [&](ValueId v) {
    NodeId id = v ? g.value(v).producer : NodeId{};
    if (!id || seen[static_cast<size_t>(id.v)]) return;
    seen[static_cast<size_t>(id.v)] = true;
    open.push_back(id);
  };
  for (NodeId id : parts) visit(g.node(id).inputs[1]);
  while (!open.empty()) {
    NodeId id = open.back();
    open.pop_back();
    for (ValueId v : g.node(id).inputs) visit(v);
    for (auto& [name, attr] : g.node(id).attrs)
      if (std::holds_alternative<std::shared_ptr<ir::Graph>>(attr)) return true;   // what it captures is not followed
  }
  return std::any_of(parts.begin(), parts.end(), [&](NodeId id) { return seen[static_cast<size_t>(id.v)]; });
}

ValueId made(ir::Graph& g, const char* op, std::vector<ValueId> in, ir::Type type, int64_t axis, NodeId like) {
  return g.node(g.insert(op, std::move(in), {std::move(type)}, {{"axis", axis}}, like)).outputs[0];
}

ValueId lifted(ir::Graph& g, ValueId v, NodeId like) {
  auto type = g.value(v).type;
  type.dims.insert(type.dims.begin(), Dim(1));
  ValueId axes = g.add_constant(Tensor::vector_i64(std::vector<int64_t>{0}), "axes");
  return g.node(g.insert("Unsqueeze", {v, axes}, {std::move(type)}, {}, like)).outputs[0];
}

void rewrite(ir::Graph& g, ValueId past, ValueId all, const std::vector<NodeId>& parts) {
  const int64_t axis = axis_of(g, parts[0]) + 1;
  NodeId like = g.value(all).producer;
  std::vector<ValueId> fresh;
  for (NodeId id : parts) fresh.push_back(lifted(g, g.node(id).inputs[1], id));
  auto type = g.value(fresh[0]).type;
  type.dims[0] = Dim(static_cast<int64_t>(fresh.size()));
  ValueId stacked = made(g, "Concat", std::move(fresh), std::move(type), 0, like);
  ValueId now = made(g, "Concat", {past, stacked}, g.value(all).type, axis, like);
  g.replace_uses(all, now);
  for (size_t i = 0; i < parts.size(); ++i) {
    ValueId old = g.node(parts[i]).outputs[0];
    ValueId index = g.add_constant(Tensor::scalar_i64(static_cast<int64_t>(i)), "part");
    g.replace_uses(old, made(g, "Gather", {now, index}, g.value(old).type, 0, parts[i]));
  }
}

// The only reader that is of this kind, or `v` itself.
ValueId through(const ir::Graph& g, ValueId v, std::initializer_list<std::string_view> ops) {
  for (auto& u : g.value(v).uses)
    for (auto op : ops)
      if (u.index == 0 && g.node(u.node).op == op && g.value(g.node(u.node).outputs[0]).type.dtype == DType::f32) return g.node(u.node).outputs[0];
  return v;
}

}  // namespace

Result<bool> stacked_caches(ir::Graph& g, PassContext& c) {
  bool changed = false;
  for (auto& s : g.states) {
    if (s.input < 0 || s.output < 0) continue;
    ValueId past = g.inputs[static_cast<size_t>(s.input)], all = g.outputs[static_cast<size_t>(s.output)];
    // Between what widens and narrows them where they are stored in another type.
    if (g.value(past).type.dtype != DType::f32) past = through(g, past, {"Cast", "ge.DequantizeRows"});
    if (NodeId id = g.value(all).producer; id && g.value(all).output_index == 0 && (g.node(id).op == "Cast" || g.node(id).op == "ge.QuantizeRows")) all = g.node(id).inputs[0];
    auto parts = appended_parts(g, past, all);
    if (parts.empty() || depend(g, parts)) continue;
    rewrite(g, past, all, parts);
    changed = true;
  }
  if (changed) {
    GE_TRY(bool swept, dce(g, c));
    (void)swept;
  }
  return changed;
}

}  // namespace ge::passes
