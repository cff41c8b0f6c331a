#include "ir/verify.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace ge::ir {
namespace {

Error broken(const Graph& g, std::string what) {
  return error(code::kInternal, format("The graph '{}' is not consistent: {}.", g.name, what));
}

Status verify_node(const Graph& g, NodeId id) {
  auto& n = g.node(id);
  auto in_range = [&](ValueId v) { return v.v < static_cast<int32_t>(g.value_capacity()); };
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    ValueId v = n.inputs[i];
    if (!v) continue;
    if (!in_range(v)) return broken(g, format("{} reads no value", n.name));
    auto& x = g.value(v);
    if (std::find(x.uses.begin(), x.uses.end(), Use{id, static_cast<int>(i)}) == x.uses.end())
      return broken(g, format("{} reads {} without being its user", n.name, x.name));
    if (!x.producer && !x.constant && !g.is_input(v)) return broken(g, format("{} reads {}, which nothing makes", n.name, x.name));
  }
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    ValueId v = n.outputs[i];
    if (!v) continue;
    if (!in_range(v)) return broken(g, format("{} makes no value", n.name));
    auto& x = g.value(v);
    if (x.producer != id || x.output_index != static_cast<int>(i)) return broken(g, format("{} is not the producer of {}", n.name, x.name));
    if (x.constant) return broken(g, format("{} is made by {} and constant", x.name, n.name));
    if (!x.layout.empty() && x.layout.size() != x.type.dims.size()) return broken(g, format("the layout of {} has another rank", x.name));
  }
  return ok();
}

}  // namespace

Status verify(const Graph& g) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < g.node_capacity(); ++i) {
    NodeId id{static_cast<int32_t>(i)};
    auto& n = g.node(id);
    if (n.dead) continue;
    if (!names.insert(n.name).second) return broken(g, format("two nodes are called {}", n.name));
    GE_RETURN_IF_ERROR(verify_node(g, id));
  }
  for (size_t i = 0; i < g.value_capacity(); ++i) {
    auto& v = g.value(ValueId{static_cast<int32_t>(i)});
    for (auto& u : v.uses) {
      auto& n = g.node(u.node);
      if (n.dead || static_cast<size_t>(u.index) >= n.inputs.size() || n.inputs[static_cast<size_t>(u.index)].v != static_cast<int32_t>(i))
        return broken(g, format("a use of {} is stale", v.name));
    }
  }
  for (auto& s : g.states)
    if (s.input >= static_cast<int>(g.inputs.size()) || s.output >= static_cast<int>(g.outputs.size())) return broken(g, format("state {} names no input or output", s.name));
  if (g.outputs.size() != g.output_names.size()) return broken(g, "outputs and their names differ in number");
  for (ValueId v : g.outputs) {
    if (!v) return broken(g, "an output is missing");
    auto& x = g.value(v);
    if (!x.producer && !x.constant && !g.is_input(v)) return broken(g, format("output {} is made by nothing", x.name));
  }
  if (g.has_cycle()) return broken(g, "it has a cycle");
  return ok();
}

}  // namespace ge::ir
