// The branch of an If whose condition is a constant, or is decided by sizes for all of their range, takes the
// place of the If.
#include "ops/shape_util.h"
#include "ops/subgraph.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

// The least value for all sizes in range; INT64_MIN when not known.
int64_t least(const ir::Graph& g, const Dim& d) {
  int64_t low = ops::lower_bound(g, d);
  // s = max - s' with s' >= 0.
  Dim from_above = d.substitute([&](std::string_view s) -> std::optional<Dim> {
    auto it = g.symbols.find(s);
    if (it == g.symbols.end() || it->second.max == INT64_MAX) return std::nullopt;
    return Dim(it->second.max) - Dim::symbol(s);
  });
  return std::max(low, from_above.lower_bound());
}

std::optional<bool> decided(const ir::Graph& g, const Dim& d) {
  if (d.known()) return d.value() != 0;
  auto terms = d.terms();
  if (terms.size() != 1 || terms[0].coefficient != 1 || terms[0].atoms.size() != 1) return std::nullopt;
  auto& atom = *terms[0].atoms[0];
  if (!atom.symbol.empty() || atom.args.size() != 2) return std::nullopt;
  auto &a = atom.args[0], &b = atom.args[1];
  if (atom.call == DimCall::less) {
    if (least(g, b - a - Dim(1)) >= 0) return true;
    if (least(g, a - b) >= 0) return false;
  }
  if (atom.call == DimCall::equal && (least(g, b - a - Dim(1)) >= 0 || least(g, a - b - Dim(1)) >= 0)) return false;
  return std::nullopt;
}

std::optional<bool> condition(const ir::Graph& g, ValueId v) {
  auto e = g.elements(v);
  if (!e || e->size() != 1) return std::nullopt;
  return decided(g, (*e)[0]);
}

}  // namespace

Result<bool> inline_branches(ir::Graph& g, PassContext&) {
  bool changed = false;
  for (NodeId id : g.order()) {
    if (g.node(id).op != "If") continue;
    auto taken = condition(g, g.node(id).inputs[0]);
    if (!taken) continue;
    auto branch = ops::nested(g.node(id), *taken ? "then_branch" : "else_branch");
    std::vector<ValueId> inputs(g.node(id).inputs.begin() + 1, g.node(id).inputs.end());
    auto outputs = ops::put_in(g, *branch, inputs, id);
    auto old = g.node(id).outputs;
    for (size_t i = 0; i < old.size(); ++i)
      if (old[i]) g.replace_uses(old[i], outputs[i]);
    g.erase(id);
    changed = true;
  }
  return changed;
}

}  // namespace ge::passes
