// Nested graphs: what they capture and do not read is no longer handed in; then all passes run on them. Last, as a
// branch that is put in place of its If is better optimised there.
#include <algorithm>
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

// Does an input whose elements are expressions need the sizes of this one?
bool gives_sizes(const ir::Graph& inner, ValueId v) {
  auto names = [](const std::vector<Dim>& dims) {
    std::vector<std::string> out;
    for (auto& d : dims) d.symbols(out);
    return out;
  };
  auto own = names(inner.value(v).type.dims);
  for (ValueId other : inner.inputs)
    if (inner.value(other).content)
      for (auto& s : names(*inner.value(other).content))
        if (std::find(own.begin(), own.end(), s) != own.end()) return true;
  return false;
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
