// Common subexpressions: nodes with the same op, inputs and attributes become one; equal constants too.
#include <algorithm>
#include <map>

#include "base/hash.h"
#include "base/text.h"
#include "ops/op.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

bool same_node(const ir::Graph& g, const ir::Node& a, const ir::Node& b) {
  if (a.op != b.op || a.inputs != b.inputs || a.outputs.size() != b.outputs.size() || a.attrs.size() != b.attrs.size()) return false;
  for (size_t i = 0; i < a.outputs.size(); ++i)
    if (bool(a.outputs[i]) != bool(b.outputs[i])) return false;
  for (auto ia = a.attrs.begin(), ib = b.attrs.begin(); ia != a.attrs.end(); ++ia, ++ib)
    if (ia->first != ib->first || !ir::same(ia->second, ib->second)) return false;
  (void)g;
  return true;
}

void merge_constants(ir::Graph& g, bool& changed) {
  std::multimap<uint64_t, ir::ValueId> seen;
  for (size_t i = 0; i < g.value_capacity(); ++i) {
    ir::ValueId id{static_cast<int32_t>(i)};
    auto& v = g.value(id);
    // Large ones are compared when they are written; here the small ones that keep nodes apart.
    if (!v.constant || v.uses.empty() || v.constant->dtype() == DType::string || v.constant->bytes() > 4096) continue;
    uint64_t h = hash64(v.constant->raw(), static_cast<uint64_t>(v.constant->dtype()));
    auto [lo, hi] = seen.equal_range(h);
    bool merged = false;
    for (auto it = lo; it != hi && !merged; ++it)
      if (g.value(it->second).constant->same_bytes(*v.constant)) {
        g.replace_uses(id, it->second);
        changed = merged = true;
      }
    if (!merged) seen.emplace(h, id);
  }
}

// Decides a size of its output: other values may bear that size's name already.
bool decides_sizes(const ir::Graph& g, const ir::Node& n) {
  auto* def = ops::find(n.op);
  if (def && def->reads) return true;
  auto data = [&](const std::string& s) {
    auto it = g.symbols.find(s);
    return it != g.symbols.end() && it->second.data;
  };
  std::vector<std::string> made, given;
  for (auto v : n.outputs)
    if (v)
      for (auto& d : g.value(v).type.dims) d.symbols(made);
  if (std::none_of(made.begin(), made.end(), data)) return false;
  for (auto v : n.inputs)
    if (v) {
      for (auto& d : g.value(v).type.dims) d.symbols(given);
      if (g.value(v).content)
        for (auto& d : *g.value(v).content) d.symbols(given);
    }
  return std::any_of(made.begin(), made.end(), [&](auto& s) { return data(s) && std::find(given.begin(), given.end(), s) == given.end(); });
}

}  // namespace

Result<bool> cse(ir::Graph& g, PassContext&) {
  bool changed = false;
  merge_constants(g, changed);
  std::multimap<std::string, ir::NodeId> seen;
  for (ir::NodeId id : g.order()) {
    auto& n = g.node(id);
    auto* def = ops::find(n.op);
    if (!def || !def->deterministic || decides_sizes(g, n)) continue;
    std::string key = n.op;
    for (auto v : n.inputs) key += format(",{}", v.v);
    auto [lo, hi] = seen.equal_range(key);
    bool merged = false;
    for (auto it = lo; it != hi && !merged; ++it) {
      auto& first = g.node(it->second);
      if (!same_node(g, first, n)) continue;
      for (size_t i = 0; i < n.outputs.size(); ++i)
        if (n.outputs[i]) g.replace_uses(n.outputs[i], first.outputs[i]);
      g.erase(id);
      changed = merged = true;
    }
    if (!merged) seen.emplace(std::move(key), id);
  }
  return changed;
}

}  // namespace ge::passes
