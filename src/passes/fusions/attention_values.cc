//   ge.Attention(q, k', z Wv + bv) Wo + bo   becomes   ge.Attention(q, k', z (Wv Wo) + bv Wo + bo)
// One product less. The rows of a softmax sum to 1, so biases pass through it; only where every query sees a key.
// |Wv Wo| <= |Wv||Wo| element by element, so the bound of the rounding error does not grow.
#include "base/text.h"
#include "passes/fusions/projection.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

struct Values {
  Projection v, o;
};

std::optional<Values> find(const ir::Graph& g, NodeId id, Obstacle& obstacle) {
  auto& n = g.node(id);
  NodeId reader = g.only_reader(n.outputs[0]);
  auto v = projection(g, n.inputs[2], obstacle);
  if (!v) return std::nullopt;
  auto o = reader ? projection(g, g.node(reader).outputs[0], obstacle) : std::nullopt;
  if (!o || o->x != n.outputs[0]) return std::nullopt;
  obstacle.node = v->node;
  if (!g.only_reader(n.inputs[2])) {
    obstacle = read_elsewhere(g, n.inputs[2], id);
    return std::nullopt;
  }
  if (o->n() > o->k()) {
    obstacle.why = format("the result is wider ({}) than the heads ({}): the products would grow", o->n(), o->k());
    return std::nullopt;
  }
  bool biased = !v->bias.empty() || !o->bias.empty();
  bool sees = n.inputs.size() < 4 && ir::attr_int(n, "causal", 0) != 2;
  if (biased && !sees) {
    obstacle = {"", id};
    obstacle.why = "a query that sees no key would get the biases too";
    return std::nullopt;
  }
  return Values{*v, *o};
}

Result<bool> search(ir::Graph& g, PassContext& c) {
  bool changed = false;
  for (NodeId id : g.order()) {
    if (g.node(id).dead || g.node(id).op != "ge.Attention") continue;
    std::string anchor = g.node(id).name;
    Obstacle obstacle;
    auto found = find(g, id, obstacle);
    if (found && c.options.disabled_at.count({"attention_values", anchor})) obstacle.why = beyond_eps().why, obstacle.help = beyond_eps().help, found.reset();
    if (!found) {
      if (!obstacle.why.empty()) c.trace.near_miss({"attention_values", anchor, 2, 3, obstacle.node ? g.node(obstacle.node).name : anchor, obstacle.why, obstacle.help});
      continue;
    }
    ValueId z = found->v.x, result = g.node(found->o.node).outputs[0];
    auto type = g.value(z).type;
    type.dims.back() = found->o.n();
    std::vector<ValueId> inputs = {z, g.add_constant(product_of_weights(found->v, found->o, false), "value_output")};
    auto bias = bias_through(found->v, found->o, false, found->o.bias);
    if (!bias.empty()) inputs.push_back(g.add_constant(vector_f32(bias), "bias"));
    NodeId made = g.insert("ge.MatMul", inputs, {type}, {}, found->v.node);
    for (auto& name : origins_of(g.node(found->o.node))) g.node(made).origin.push_back(name);
    g.set_input(id, 2, g.node(made).outputs[0]);
    ValueId out = g.node(id).outputs[0];
    g.value(out).type = g.value(result).type;
    g.replace_uses(result, out);
    for (NodeId old : {found->o.node, found->v.node}) g.erase(old);
    c.trace.fused("attention_values", g, made, anchor);
    c.trace.drop_near_misses_at(anchor, "attention_values");
    changed = true;
  }
  return changed;
}

const RegisterFusion r(Fusion{.name = "attention_values", .doc = "the projections of values and of the result become one", .order = 1, .search = search});

}  // namespace
}  // namespace ge::passes
