//   (x W1 + b1) W2 + b2      becomes   x (W1 W2) + (b1 W2 + b2)
// Where that is less work for a row: K N < K M + M N. |W1 W2| <= |W1||W2| element by element, so the bound of the
// rounding error does not grow.
#include "base/text.h"
#include "passes/fusions/projection.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

struct Chain {
  Projection first, second;
};

// A node between the products that could as well stand elsewhere: it moves data, or adds what is no bias.
void name_between(const ir::Graph& g, ValueId v, Obstacle& obstacle) {
  NodeId first = g.value(v).producer;
  for (NodeId id = first; id;) {
    auto& n = g.node(id);
    if (id != first && is_product(n)) obstacle = {format("{} stands between two products", g.node(first).op), first, way_out(g.node(first))};
    if (is_product(n) || (!is_glue(n.op) && n.op != "Add")) return;
    NodeId up;
    for (ValueId in : n.inputs)
      if (in && g.value(in).producer && (!up || is_product(g.node(g.value(in).producer)))) up = g.value(in).producer;
    id = up;
  }
}

std::optional<Chain> find(const ir::Graph& g, NodeId id, Obstacle& obstacle) {
  ValueId out = g.node(id).outputs[0];
  Obstacle ignored;
  auto second = is_product(g.node(id)) ? projection(g, out, obstacle) : std::nullopt;
  // A product that is no projection is worth a word only behind another.
  auto& inputs = g.node(id).inputs;
  NodeId up = inputs.empty() || !inputs[0] ? NodeId{} : g.value(inputs[0]).producer;
  if (!second && !(up && is_product(g.node(up)))) obstacle = {};
  auto first = second ? projection(g, second->x, ignored) : std::nullopt;
  if (second && !first) name_between(g, second->x, obstacle);
  if (!first) return std::nullopt;
  if (!g.only_reader(second->x)) {
    obstacle = read_elsewhere(g, second->x, id);
    return std::nullopt;
  }
  if (first->k() * second->n() >= first->k() * first->n() + second->k() * second->n()) {
    obstacle = {format("one product with [{},{}] is more work than two with [{},{}] and [{},{}]", first->k(), second->n(), first->k(), first->n(), second->k(), second->n()), id};
    return std::nullopt;
  }
  return Chain{*first, *second};
}

Result<bool> search(ir::Graph& g, PassContext& c) {
  bool changed = false;
  for (NodeId id : g.order()) {
    if (g.node(id).dead || g.node(id).outputs.size() != 1) continue;
    std::string anchor = g.node(id).name;
    Obstacle obstacle;
    auto chain = find(g, id, obstacle);
    if (chain && c.options.disabled_at.count({"matmul_chain", anchor})) obstacle = {beyond_eps().why, id, beyond_eps().help}, chain.reset();
    for (NodeId n : chain ? std::vector{chain->first.node, id} : std::vector<NodeId>{})
      if (Verdict v = in_scope(c.options, g, n); chain && !v) obstacle = {v.why, n, v.help}, chain.reset();
    if (!chain) {
      if (obstacle.node) c.trace.near_miss({"matmul_chain", anchor, 2, 2, g.node(obstacle.node).name, obstacle.why, obstacle.help});
      continue;
    }
    std::vector<ValueId> inputs = {chain->first.x, g.add_constant(product_of_weights(chain->first, chain->second, false), "chain")};
    auto bias = bias_through(chain->first, chain->second, false, chain->second.bias);
    if (!bias.empty()) inputs.push_back(g.add_constant(vector_f32(bias), "bias"));
    Match m;
    m.g = &g;
    m.anchor = id;
    m.nodes = {{"first", chain->first.node}, {"second", id}};
    ValueId replaced = g.node(id).outputs[0];
    NodeId made = g.insert("ge.MatMul", inputs, {g.value(replaced).type}, {}, id);
    take_over(g, m, replaced, made);
    erase_matched(g, m);
    c.trace.fused("matmul_chain", g, made, anchor);
    c.trace.drop_near_misses_at(anchor, "matmul_chain");
    changed = true;
  }
  return changed;
}

const RegisterFusion r(Fusion{.name = "matmul_chain", .doc = "two projections with nothing between them become one", .order = 1, .search = search});

}  // namespace
}  // namespace ge::passes
