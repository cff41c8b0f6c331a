#include "ops/infer.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "ir/attribute_fault.h"
#include "ops/describe.h"
#include "ops/evaluate.h"
#include "ops/op.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

constexpr int kMaxDepth = 64;
constexpr int kMaxRounds = 8;

// What the graph's outputs need: only that runs, whatever a later pass drops. A nested graph takes its sizes from outside,
// and again in each iteration: it knows of no facts of its own.
std::vector<bool> needed(const Graph& g) {
  std::vector<bool> out(g.node_capacity());
  if (!g.scope.empty()) return out;
  std::vector<ValueId> open = g.outputs;
  while (!open.empty()) {
    ValueId v = open.back();
    open.pop_back();
    if (!v) continue;
    NodeId id = g.value(v).producer;
    if (!id || out[static_cast<size_t>(id.v)]) continue;
    out[static_cast<size_t>(id.v)] = true;
    open.insert(open.end(), g.node(id).inputs.begin(), g.node(id).inputs.end());
  }
  return out;
}

void apply(const DimFacts& facts, InferContext& c) {
  for (auto& type : c.out)
    for (auto& d : type.dims) d = facts.normal(d);
  for (auto& elements : c.out_elements)
    if (elements)
      for (auto& d : *elements) d = facts.normal(d);
}

// Arithmetic of sizes is done in 64 bits, in which numbers of a narrower type may lie outside of it, where they would wrap.
bool holds(DType t, const std::vector<Dim>& elements) {
  const int64_t most = bits(t) < 64 ? (int64_t{1} << (bits(t) - is_signed(t))) - 1 : INT64_MAX, least = is_signed(t) ? -most - 1 : 0;
  return std::all_of(elements.begin(), elements.end(), [&](auto& d) {
    return d.known() ? t == DType::boolean || (least <= d.value() && d.value() <= most) : !d.overflows();
  });
}

Status infer_node(Graph& g, NodeId id, bool demands = false) {
  auto* def = find(g.node(id).op);
  if (!def) return node_error(code::kUnsupportedOp, g.node(id).name, format("Operator {} is not known.", g.node(id).op));
  if (!def->infer) return ok();
  InferContext c(g, g.node(id));
  c.demands = demands;
  // What upgrades and rewrites left out is not read below as if it were there.
  if (auto i = missing_input(*def, g.node(id)))
    return node_error(code::kBadOp, g.node(id).name, format("{}: input {} is missing", g.node(id).op, *i), "only optional inputs may be left out");
  Status s;
  if (DType t = c.has(def->data) ? c.dtype(def->data) : DType::none; t != DType::none && !def->types.has(t))
    s = c.fail(format("{} is not a type of input {}", name(t), def->data), format("It takes {}: convert the input with a Cast.", text(def->types)));
  else
    s = def->infer(c);
  // The default that was taken instead may have led to an error of its own.
  GE_RETURN_IF_ERROR(ir::take_attribute_fault());
  if (!s.ok()) {
    Error e = std::move(s).take();
    if (e.node.empty()) e.node = g.node(id).name;
    e.context.push_back(describe(g, g.node(id)));
    return e;
  }
  if (!g.facts.demands().empty()) apply(g.facts, c);
  auto outputs = g.node(id).outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i]) continue;
    for (auto& d : c.out[i].dims)
      if (d.overflows() || (d.known() && d.value() < 0)) {
        Error e = node_error(d.known() ? code::kBadOp : code::kTooLarge, g.node(id).name,
                             format("{}: output {} would have {}", g.node(id).op, i, d.known() ? format("the shape {}, with a size below 0", text(c.out[i].dims)) : "a size beyond 64 bits"), "",
                             "check the numbers and attributes that its sizes are computed from");
        e.context.push_back(describe(g, g.node(id)));
        return e;
      }
    auto& v = g.value(outputs[i]);
    if (c.out[i].dtype != DType::none) v.type = std::move(c.out[i]);
    v.content = std::move(c.out_elements[i]);
    if (v.content && !holds(v.type.dtype, *v.content)) v.content.reset();
  }
  return ok();
}

// Computes what stands behind v if all of it is constant; true: v is a constant now.
bool fold_behind(Graph& g, ValueId v, int depth) {
  if (g.is_constant(v)) return true;
  NodeId id = g.value(v).producer;
  if (!id || depth > kMaxDepth) return false;
  auto* def = find(g.node(id).op);
  if (!def || !def->deterministic || !def->foldable || g.node(id).inputs.empty()) return false;
  auto inputs = g.node(id).inputs;
  for (ValueId in : inputs)
    if (in && !fold_behind(g, in, depth + 1)) return false;
  for (ValueId out : g.node(id).outputs)
    if (out && (!g.value(out).type.is_static() || g.value(out).type.kind != ir::TypeKind::tensor || !(product(g.value(out).type.dims).value() <= kMaxElements))) return false;
  auto made = evaluate(g, g.node(id));
  if (!made.ok()) return false;
  auto outputs = g.node(id).outputs;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) g.make_constant(outputs[i], std::move((*made)[i]));
  g.erase(id);
  return g.is_constant(v);
}

bool readable(const Type& t) {
  if (t.kind != ir::TypeKind::tensor || !t.is_static() || !(is_integer(t.dtype) || is_float(t.dtype) || t.dtype == DType::boolean) || bits(t.dtype) < 8) return false;
  Dim n = product(t.dims);
  return n.known() && n.value() <= 64;
}

// The ge.Read of v that is there already, or a new one.
ValueId read_of(Graph& g, ValueId v, bool sizes, NodeId reader) {
  for (auto& use : g.value(v).uses)
    if (g.node(use.node).op == "ge.Read" && attr_int(g.node(use.node), "sizes", 0) == sizes) return g.node(use.node).outputs[0];
  Type type = g.value(v).type;
  std::string name = g.value(v).name;
  int64_t rank = g.value(v).producer ? g.node(g.value(v).producer).rank : g.node(reader).rank;
  NodeId id = g.add_node("ge.Read", {v}, {g.add_value(name + ".read", type)}, {{"sizes", int64_t{sizes}}}, name + ".read");
  g.node(id).rank = rank;
  g.node(id).origin = g.node(reader).origin;
  return g.node(id).outputs[0];
}

Status read_inputs(Graph& g, NodeId id) {
  auto* def = find(g.node(id).op);
  if (!def || !(def->sizes | def->parameters)) return ok();
  for (size_t i = 0; i < g.node(id).inputs.size() && i < 32; ++i) {
    ValueId v = g.node(id).inputs[i];
    if (!v || !((def->sizes | def->parameters) >> i & 1) || g.elements(v) || g.is_constant(v)) continue;
    if (fold_behind(g, v, 0) || !readable(g.value(v).type)) continue;
    ValueId read = read_of(g, v, def->sizes >> i & 1, id);
    g.set_input(id, static_cast<int>(i), read);
    GE_RETURN_IF_ERROR(infer_node(g, g.value(read).producer));
  }
  return ok();
}

}  // namespace

Status infer(Graph& g) {
  // Facts that a node adds hold for the nodes before it too.
  for (int round = 0; round < kMaxRounds; ++round) {
    const size_t known = g.facts.demands().size();
    auto runs = needed(g);
    for (NodeId id : g.order()) {
      if (g.node(id).dead) continue;   // computed meanwhile
      GE_RETURN_IF_ERROR(read_inputs(g, id));
      GE_RETURN_IF_ERROR(infer_node(g, id, static_cast<size_t>(id.v) < runs.size() && runs[static_cast<size_t>(id.v)]));
    }
    if (g.facts.demands().size() == known) break;
  }
  return ok();
}

}  // namespace ge::ops
