#include "passes/trace.h"

#include <algorithm>

namespace ge::passes {

void Trace::fused(std::string rule, const ir::Graph& g, ir::NodeId node, std::string anchor) {
  auto& n = g.node(node);
  fused_.push_back({std::move(rule), n.name, std::move(anchor), n.origin});
}

void Trace::near_miss(NearMiss m) {
  auto [it, fresh] = near_.emplace(std::pair(m.rule, m.anchor), m);
  if (!fresh && m.matched >= it->second.matched) it->second = std::move(m);
}

void Trace::drop_near_misses_at(const std::string& anchor, const std::string& rule) { near_.erase({rule, anchor}); }

void Trace::off(std::string rule) {
  if (std::find(off_.begin(), off_.end(), rule) == off_.end()) off_.push_back(std::move(rule));
}

// A near miss inside a group that another rule fused is no loss and is left out.
std::vector<NearMiss> Trace::near_misses() const {
  std::vector<NearMiss> out;
  for (auto& [key, m] : near_) {
    bool taken = std::any_of(fused_.begin(), fused_.end(), [&](auto& f) {
      return f.node == m.anchor || std::find(f.origins.begin(), f.origins.end(), m.anchor) != f.origins.end();
    });
    if (!taken) out.push_back(m);
  }
  return out;
}

}  // namespace ge::passes
