// Nested graphs: what they capture and do not read is no longer handed in; then all passes run on them. Last, as a
// branch that is put in place of its If is better optimised there.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

using ir::ValueId;

struct Body {
  std::string attr;
  std::shared_ptr<ir::Graph> graph;
};

std::vector<Body> graphs_of(const ir::Node& n) {
  std::vector<Body> out;
  for (auto& [key, attr] : n.attrs)
    if (auto* g = std::get_if<std::shared_ptr<ir::Graph>>(&attr)) out.push_back({key, *g});
  return out;
}

void add_symbols(const std::vector<Dim>& dims, std::vector<std::string>& out) {
  for (auto& d : dims) d.symbols(out);
}

// The symbols of all sizes and numbers that something inside is made of.
std::set<std::string, std::less<>> symbols_of(const ir::Graph& g) {
  std::vector<std::string> out;
  auto add = [&](ValueId v) {
    if (!v) return;
    add_symbols(g.value(v).type.dims, out);
    if (auto elements = g.elements(v)) add_symbols(*elements, out);
  };
  for (ir::NodeId id : g.order())
    for (auto* list : {&g.node(id).inputs, &g.node(id).outputs})
      for (ValueId v : *list) add(v);
  for (ValueId v : g.outputs) add(v);
  for (ValueId v : g.inputs)
    if (g.value(v).content) add_symbols(*g.value(v).content, out);
  for (auto& d : g.facts.demands()) add_symbols({d.a, d.b}, out);
  return {out.begin(), out.end()};
}

// Is this input the only one that has a size as an axis which something inside needs?
bool gives_sizes(const ir::Graph& inner, ValueId v) {
  std::vector<std::string> own;
  add_symbols(inner.value(v).type.dims, own);
  if (own.empty()) return false;
  auto needed = symbols_of(inner);
  auto given = [&](const std::string& s) {
    return std::any_of(inner.inputs.begin(), inner.inputs.end(), [&](ValueId other) {
      auto& dims = inner.value(other).type.dims;
      return other != v && std::any_of(dims.begin(), dims.end(), [&](const Dim& d) { return d.symbol_name() == s; });
    });
  };
  return std::any_of(own.begin(), own.end(), [&](auto& s) { return needed.count(s) && !given(s); });
}

bool drop_captures(ir::Graph& g, ir::NodeId id, const std::vector<Body>& graphs) {
  int64_t captures = ir::attr_int(g.node(id), "captures", 0);
  bool changed = false;
  for (int64_t k = captures; k-- > 0;) {
    bool read = false;
    for (auto& [attr, inner] : graphs) {
      ValueId v = inner->inputs[inner->inputs.size() - static_cast<size_t>(captures - k)];
      read |= inner->reader_count(v) > 0 || gives_sizes(*inner, v);
    }
    if (read) continue;
    g.remove_input(id, g.node(id).inputs.size() - static_cast<size_t>(captures - k));
    for (auto& [attr, inner] : graphs) inner->inputs.erase(inner->inputs.end() - (captures - k));
    --captures;
    changed = true;
  }
  if (changed) g.node(id).attrs["captures"] = captures;
  return changed;
}

}  // namespace

Result<bool> bodies(ir::Graph& g, PassContext& c) {
  bool changed = false;
  for (ir::NodeId id : g.order()) {
    auto graphs = graphs_of(g.node(id));
    if (g.node(id).op == "If") c.trace.branch(g, id, "");
    for (auto& [attr, body] : graphs) {
      PassContext inner{c.options, c.trace, {}};
      std::string outer = std::exchange(c.trace.graph, format("{} of {}", attr, g.node(id).name));
      auto s = run_pipeline(*body, inner);
      c.trace.graph = std::move(outer);
      if (!s.ok()) return std::move(s).context(format("{} of {}", body->name, g.node(id).name)).take();
    }
    if (!graphs.empty() && has_attr(g.node(id), "captures")) changed |= drop_captures(g, id, graphs);
  }
  if (changed) {
    auto swept = dce(g, c);
    if (!swept.ok()) return swept;
  }
  return changed;
}

}  // namespace ge::passes
