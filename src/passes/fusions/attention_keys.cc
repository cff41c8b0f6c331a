//   ge.Attention(x Wq + bq, (z Wk + bk)', v)   becomes   ge.Attention(x (Wq Wk') + bq Wk', z', v)
// One product less. (x Wq + bq)(z Wk + bk)' = (x Wq Wk' + bq Wk') z' + (x Wq + bq) bk': the last term is the same
// for all keys of a query and vanishes in the softmax. |Wq Wk'| <= |Wq||Wk'| element by element, so the bound of the
// rounding error does not grow.
#include "base/text.h"
#include "passes/fusions/projection.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

constexpr double kHidden = -1e9;   // a finite number for hidden scores stays far below all others

struct Keys {
  Projection q, k;
  NodeId transpose;
};

std::optional<Keys> find(const ir::Graph& g, NodeId id, Obstacle& obstacle) {
  auto& n = g.node(id);
  Keys found;
  NodeId t = g.value(n.inputs[1]).producer;
  if (!t || g.node(t).op != "Transpose") return std::nullopt;
  auto perm = ir::attr_ints(g.node(t), "perm");
  size_t rank = perm.size();
  if (rank < 2) return std::nullopt;
  for (size_t i = 0; i < rank; ++i)
    if (perm[i] != static_cast<int64_t>(i + 2 < rank ? i : i + 2 == rank ? rank - 1 : rank - 2)) return std::nullopt;
  auto q = projection(g, n.inputs[0], obstacle), k = projection(g, g.node(t).inputs[0], obstacle);
  if (!q || !k) return std::nullopt;
  for (auto [value, reader] : {std::pair(n.inputs[0], id), std::pair(n.inputs[1], id), std::pair(g.node(t).inputs[0], t)}) {
    if (g.only_reader(value)) continue;
    obstacle = read_elsewhere(g, value, reader);
    return std::nullopt;
  }
  if (k->k() > k->n()) {
    obstacle.node = id;
    obstacle.why = format("the keys' input is wider ({}) than the heads ({}): the products would grow", k->k(), k->n());
    return std::nullopt;
  }
  if (ir::attr_float(n, "softcap", 0) != 0) {
    obstacle.node = id;
    obstacle.why = "the scores are capped: what is the same for all keys would count";
    return std::nullopt;
  }
  if (ir::has_attr(n, "masked") && ir::attr_float(n, "masked", 0) > kHidden) {
    obstacle.node = id;
    obstacle.why = "hidden scores become a number that is not far below the others";
    return std::nullopt;
  }
  return Keys{*q, *k, t};
}

Result<bool> search(ir::Graph& g, PassContext& c) {
  bool changed = false;
  for (NodeId id : g.order()) {
    if (g.node(id).dead || g.node(id).op != "ge.Attention") continue;
    std::string anchor = g.node(id).name;
    Obstacle obstacle;
    auto keys = find(g, id, obstacle);
    if (keys && c.options.disabled_at.count({"attention_keys", anchor})) obstacle.why = beyond_eps().why, obstacle.help = beyond_eps().help, keys.reset();
    if (!keys) {
      if (!obstacle.why.empty()) c.trace.near_miss({"attention_keys", anchor, 2, 3, obstacle.node ? g.node(obstacle.node).name : anchor, obstacle.why, obstacle.help});
      continue;
    }
    ValueId z = keys->k.x;
    auto q_type = g.value(keys->q.x).type, z_type = g.value(z).type;
    q_type.dims.back() = keys->k.k();
    std::vector<ValueId> inputs = {keys->q.x, g.add_constant(product_of_weights(keys->q, keys->k, true), "query_key")};
    auto bias = bias_through(keys->q, keys->k, true, {});
    if (!bias.empty()) inputs.push_back(g.add_constant(vector_f32(bias), "bias"));
    std::swap(z_type.dims[z_type.dims.size() - 1], z_type.dims[z_type.dims.size() - 2]);
    ir::Attrs perm = g.node(keys->transpose).attrs;
    ValueId q = g.node(g.insert("ge.MatMul", inputs, {q_type}, {}, keys->q.node)).outputs[0];
    ValueId zt = g.node(g.insert("Transpose", {z}, {z_type}, perm, keys->transpose)).outputs[0];
    NodeId made = g.value(q).producer;
    for (auto& name : origins_of(g.node(keys->k.node))) g.node(made).origin.push_back(name);
    g.set_input(id, 0, q);
    g.set_input(id, 1, zt);
    for (NodeId old : {keys->q.node, keys->transpose, keys->k.node}) g.erase(old);
    c.trace.fused("attention_keys", g, made, anchor);
    c.trace.drop_near_misses_at(anchor, "attention_keys");
    changed = true;
  }
  return changed;
}

const RegisterFusion r(Fusion{.name = "attention_keys", .doc = "the projections of queries and keys become one", .order = 1, .search = search});

}  // namespace
}  // namespace ge::passes
