// What follows an If whose branches give different numbers of axes moves into both branches, up to where the numbers
// agree again: kernels are chosen by them. A branch that cannot run, for what moved there or for the sizes that come to
// it, fails when it is taken; where sizes decide, the other one takes the place of the If, and sizes that would take
// this one are refused when they are bound.
#include <array>
#include <map>
#include <set>

#include "base/text.h"
#include "ops/infer.h"
#include "ops/size_condition.h"
#include "ops/subgraph.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::Type;
using ir::ValueId;

constexpr const char* kBranches[] = {"then_branch", "else_branch"};
constexpr int kMaxRounds = 64;       // of moves in one graph
constexpr int kMaxDepth = 12;        // branches in branches: each level may double what moves

bool of_unknown_rank(const Type& t) { return t.kind == ir::TypeKind::tensor && !t.ranked; }

using Inside = std::map<int32_t, ValueId>;   // of a value of the outer graph: the same in a branch
using Chosen = std::set<int32_t>;            // nodes

// Nodes that read a value of which `unknown` holds, from the outputs of `from` on, and all on paths between them.
template <class F>
Chosen followers(const Graph& g, NodeId from, F unknown) {
  Chosen chosen, below{from.v};
  std::set<int32_t> values;
  for (ValueId v : g.node(from).outputs)
    if (v && unknown(v)) values.insert(v.v);
  auto order = g.order();
  for (NodeId id : order) {
    bool reads = false;
    for (ValueId v : g.node(id).inputs) reads |= v && values.count(v.v);
    if (!reads) continue;
    chosen.insert(id.v);
    for (ValueId v : g.node(id).outputs)
      if (v && unknown(v)) values.insert(v.v);
  }
  auto near = [](const Graph& x, ValueId v, const Chosen& set) { return v && x.value(v).producer && set.count(x.value(v).producer.v); };
  below = chosen;
  for (NodeId id : order)
    for (ValueId v : g.node(id).inputs)
      if (near(g, v, below)) below.insert(id.v);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (!below.count(it->v) || chosen.count(it->v)) continue;
    bool between = false;
    for (ValueId v : g.node(*it).outputs) {
      if (!v) continue;
      for (auto& use : g.value(v).uses) between |= chosen.count(use.node.v) > 0;
    }
    if (between) chosen.insert(it->v);
  }
  return chosen;
}

class Move {
 public:
  Move(Graph& g, NodeId branching, const Chosen& chosen) : g_(g), if_(branching) {
    for (NodeId id : g.order())
      if (chosen.count(id.v)) nodes_.push_back(id);
    for (size_t b = 0; b < 2; ++b) branch_[b] = ops::nested(g.node(if_), kBranches[b]);
  }

  std::array<Inside, 2> run() {
    for (size_t b = 0; b < 2; ++b)
      for (size_t i = 0; i < g_.node(if_).outputs.size(); ++i)
        if (ValueId v = g_.node(if_).outputs[i]) inside_[b][v.v] = branch_[b]->outputs[i];
    std::set<int32_t> made;
    for (NodeId id : nodes_)
      for (ValueId v : g_.node(id).outputs)
        if (v) made.insert(v.v);
    for (NodeId id : nodes_)
      for (ValueId v : g_.node(id).inputs)
        if (v && !made.count(v.v) && !inside_[0].count(v.v)) capture(v);
    for (NodeId id : nodes_)
      for (size_t b = 0; b < 2; ++b) copy(id, b);
    std::set<int32_t> moved;
    for (NodeId id : nodes_) moved.insert(id.v);
    for (NodeId id : nodes_) hand_out(id, moved);
    for (auto it = nodes_.rbegin(); it != nodes_.rend(); ++it) g_.erase(*it);
    return inside_;
  }

 private:
  void capture(ValueId v) {
    auto& inputs = g_.node(if_).inputs;
    auto at = static_cast<size_t>(std::find(inputs.begin() + 1, inputs.end(), v) - inputs.begin());
    bool fresh = at == inputs.size() && !g_.is_constant(v);
    if (fresh) g_.add_node_input(if_, v);
    for (size_t b = 0; b < 2; ++b) {
      auto& x = g_.value(v);
      if (x.constant) inside_[b][v.v] = branch_[b]->add_constant(*x.constant, x.name);
      else inside_[b][v.v] = fresh ? branch_[b]->add_input(x.name, x.type) : branch_[b]->inputs[at - 1];
    }
    if (fresh) g_.node(if_).attrs["captures"] = ir::attr_int(g_.node(if_), "captures", static_cast<int64_t>(inputs.size()) - 2) + 1;
  }

  void copy(NodeId id, size_t b) {
    const ir::Node n = g_.node(id);
    auto& inside = inside_[b];
    std::vector<ValueId> in, out;
    for (ValueId v : n.inputs) in.push_back(v ? inside.at(v.v) : ValueId{});
    for (ValueId v : n.outputs) {
      // Without a type until inference comes by.
      out.push_back(v ? branch_[b]->add_value(g_.value(v).name, Type{}) : ValueId{});
      if (v) inside[v.v] = out.back();
    }
    ir::Attrs attrs = n.attrs;
    for (auto& [key, attr] : attrs) {
      auto* graph = std::get_if<std::shared_ptr<Graph>>(&attr);
      if (!graph) continue;
      *graph = std::make_shared<Graph>(**graph);
      (*graph)->scope.clear();
    }
    NodeId made = branch_[b]->add_node(n.op, std::move(in), std::move(out), std::move(attrs), n.name);
    branch_[b]->node(made).rank = n.rank;
    branch_[b]->node(made).origin = n.origin;
  }

  // What others read of a node that moved is an output of the If.
  void hand_out(NodeId id, const std::set<int32_t>& moved) {
    for (ValueId v : std::vector(g_.node(id).outputs)) {
      if (!v) continue;
      bool read = g_.is_output(v);
      for (auto& use : g_.value(v).uses) read |= !moved.count(use.node.v);
      if (!read) continue;
      for (size_t b = 0; b < 2; ++b) branch_[b]->add_graph_output(inside_[b].at(v.v), g_.value(v).name);
      auto& outputs = g_.node(if_).outputs;
      outputs.push_back({});
      g_.set_output(if_, static_cast<int>(outputs.size()) - 1, v);
    }
  }

  Graph& g_;
  NodeId if_;
  std::vector<NodeId> nodes_;
  std::array<std::shared_ptr<Graph>, 2> branch_;
  std::array<Inside, 2> inside_;
};

Status infer_branch(Graph& g, NodeId id, size_t b) {
  ops::InferContext c(g, g.node(id));
  GE_TRY(auto branch, ops::require_nested(c, kBranches[b]));
  ops::Border border(g, *branch);
  ops::enter_branch(c, border, *branch, b == 0);
  return ops::infer(*branch);
}

// The nodes that have to move: a trial on a copy tells where ranks agree again.
Chosen to_move(const Graph& g, NodeId id) {
  Chosen most = followers(g, id, [&](ValueId v) { return of_unknown_rank(g.value(v).type); });
  if (most.empty()) return most;
  Graph trial = g;
  auto inside = Move(trial, id, most).run();
  for (size_t b = 0; b < 2; ++b) (void)infer_branch(trial, id, b);
  auto differs = [&](ValueId v) {
    if (!inside[0].count(v.v)) return of_unknown_rank(g.value(v).type);
    std::array<const Type*, 2> types;
    for (size_t b = 0; b < 2; ++b) types[b] = &ops::nested(trial.node(id), kBranches[b])->value(inside[b].at(v.v)).type;
    // A branch that fails before it gets there has no say.
    if (types[0]->dtype == DType::none || types[1]->dtype == DType::none) return false;
    return of_unknown_rank(*types[0]) || of_unknown_rank(*types[1]) || types[0]->rank() != types[1]->rank();
  };
  return followers(g, id, differs);
}

// A branch that says why it cannot run, with outputs like the other's.
std::shared_ptr<Graph> failing(const Graph& branch, const Graph& other, const Error& why) {
  auto out = std::make_shared<Graph>();
  out->name = branch.name;
  out->scope = branch.scope;
  for (ValueId v : branch.inputs) out->add_input(branch.value(v).name, branch.value(v).type);
  std::vector<int64_t> types;
  std::vector<ValueId> made;
  for (size_t i = 0; i < other.outputs.size(); ++i) {
    auto& x = other.value(other.outputs[i]);
    bool ranked = x.type.ranked && x.type.kind == ir::TypeKind::tensor;
    types.insert(types.end(), {static_cast<int64_t>(x.type.kind), static_cast<int64_t>(x.type.dtype), ranked ? x.type.rank() : -1});
    for (size_t k = 0; ranked && k < x.type.dims.size(); ++k) types.push_back(x.type.dims[k].known() ? x.type.dims[k].value() : -1);
    made.push_back(out->add_value(x.name, x.type));
    out->add_graph_output(made.back(), x.name);
  }
  out->add_node("ge.Fail", {}, made, {{"types", types}, {"message", why.message}}, why.node.empty() ? branch.name : why.node);
  return out;
}

Status settle(Graph& g, NodeId id, Status (&inferred)[2]) {
  if (!inferred[0].ok() && !inferred[1].ok()) return std::move(inferred[0]);
  for (size_t b = 0; b < 2; ++b) {
    if (inferred[b].ok()) continue;
    auto here = ops::nested(g.node(id), kBranches[b]), other = ops::nested(g.node(id), kBranches[1 - b]);
    g.node(id).attrs[kBranches[b]] = failing(*here, *other, std::move(inferred[b]).take());
  }
  return ok();
}

// Puts the branch that can run in the place of the If when the other one cannot and sizes decide; the sizes then are
// asked to take it. Only a whole model's graph can ask.
bool take_other(Graph& g, NodeId id, PassContext& c) {
  auto elements = g.elements(g.node(id).inputs[0]);
  if (!elements || elements->size() != 1 || g.decided_by_data(elements->front())) return false;
  const ir::Node* failed[2];
  for (size_t b = 0; b < 2; ++b) failed[b] = failing_node(*ops::nested(g.node(id), kBranches[b]));
  if (!failed[0] == !failed[1]) return false;
  const size_t taken = failed[0] ? 1 : 0;
  const Dim& condition = elements->front();
  auto* call = condition.as_call();
  const bool equality = taken == 0 && call && call->call == DimCall::equal;
  const Dim a = equality ? call->args[0] : condition, b = equality ? call->args[1] : Dim(taken == 0);
  if (!g.facts.add(a, b, format("{} (If), whose {} cannot run: {}", g.node(id).name, kBranches[1 - taken], ir::attr_string(*failed[1 - taken], "message", "")))) return false;
  auto left = ops::narrowed(g, condition, taken == 0);
  take_branch(g, id, taken == 0, c);
  if (left) {
    auto& info = g.symbols[left->symbol];
    info.min = std::max(info.min, left->range.min), info.max = std::min(info.max, left->range.max);
  }
  return true;
}

Result<bool> resolve(Graph& g, PassContext& c, int depth);

Result<bool> resolve_nested(Graph& g, NodeId id, PassContext& c, int depth) {
  bool changed = false;
  if (g.node(id).op == "If") {
    Status inferred[2] = {infer_branch(g, id, 0), infer_branch(g, id, 1)};
    changed = !inferred[0].ok() || !inferred[1].ok();
    GE_RETURN_IF_ERROR(settle(g, id, inferred));
  }
  for (auto& [key, attr] : ir::Attrs(g.node(id).attrs)) {
    auto* body = std::get_if<std::shared_ptr<Graph>>(&attr);
    if (!body) continue;
    GE_TRY(bool inlined, inline_branches(**body, c));
    if (inlined) GE_RETURN_IF_ERROR(ops::infer(**body));
    GE_TRY(bool resolved, resolve(**body, c, depth + 1));
    changed |= inlined || resolved;
  }
  return changed;
}

Result<bool> resolve(Graph& g, PassContext& c, int depth) {
  if (depth > kMaxDepth) return false;
  bool changed = false;
  for (NodeId id : g.order()) {
    GE_TRY(bool nested, resolve_nested(g, id, c, depth));
    changed |= nested;
  }
  if (changed) GE_RETURN_IF_ERROR(ops::infer(g));
  auto take = [&]() -> Result<bool> {
    bool taken = false;
    for (NodeId id : depth == 0 ? g.order() : std::vector<NodeId>()) taken |= g.node(id).op == "If" && take_other(g, id, c);
    if (!taken) return false;
    GE_RETURN_IF_ERROR(ops::infer(g));
    GE_TRY(bool inlined, inline_branches(g, c));
    if (inlined) GE_RETURN_IF_ERROR(ops::infer(g));
    return true;
  };
  GE_TRY(bool taken, take());
  changed |= taken;
  for (int round = 0; round < kMaxRounds; ++round) {
    bool moved = false;
    for (NodeId id : g.order()) {
      if (g.node(id).op != "If") continue;
      Chosen chosen = to_move(g, id);
      if (chosen.empty()) continue;
      Move(g, id, chosen).run();
      Status inferred[2] = {infer_branch(g, id, 0), infer_branch(g, id, 1)};
      GE_RETURN_IF_ERROR(settle(g, id, inferred));
      GE_TRY(bool nested, resolve_nested(g, id, c, depth));
      (void)nested;
      GE_RETURN_IF_ERROR(ops::infer(g));
      GE_TRY(bool other, take());
      (void)other;
      moved = changed = true;
      break;
    }
    if (!moved) break;
  }
  return changed;
}

}  // namespace

const ir::Node* failing_node(const Graph& g) {
  for (NodeId id : g.order()) {
    auto& n = g.node(id);
    if (n.op == "ge.Fail") return &n;
    if (n.op != "If") continue;
    const ir::Node* both[2] = {failing_node(*ops::nested(n, kBranches[0])), failing_node(*ops::nested(n, kBranches[1]))};
    if (both[0] && both[1]) return both[0];
  }
  return nullptr;
}

Result<bool> branch_ranks(ir::Graph& g, PassContext& c) { return resolve(g, c, 0); }

}  // namespace ge::passes
