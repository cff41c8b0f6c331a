#include "passes/trace.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "ops/size_condition.h"
#include "passes/pass.h"

namespace ge::passes {

std::vector<std::string> origins_of(const ir::Node& n) { return n.origin.empty() ? std::vector{n.name} : n.origin; }

void Trace::fused(std::string rule, const ir::Graph& g, ir::NodeId node, std::string anchor, std::string how) {
  auto& n = g.node(node);
  fused_.push_back({std::move(rule), n.name, std::move(anchor), n.origin, graph, std::move(how)});
}

void Trace::near_miss(NearMiss m) {
  if (m.help.empty()) return;
  // A region has many neighbours: each that stayed outside has its own reason.
  std::string place = m.rule == "vector_region" ? m.anchor + "\n" + m.blocker : m.anchor;
  auto [it, fresh] = near_.emplace(std::pair(m.rule, place), m);
  if (!fresh && m.matched >= it->second.matched) it->second = std::move(m);
}

void Trace::drop_near_misses_at(const std::string& anchor, const std::string& rule) { near_.erase({rule, anchor}); }

void Trace::off(std::string rule) {
  if (std::find(off_.begin(), off_.end(), rule) == off_.end()) off_.push_back(std::move(rule));
}

void Trace::branch(const ir::Graph& g, ir::NodeId node, std::string taken) {
  auto& n = g.node(node);
  Branch b{n.name, std::move(taken), "data", "", "", ""};
  for (auto* key : {"then_branch", "else_branch"})
    if (auto* inner = ir::attr_graph(n, key); inner)
      if (auto* node = failing_node(*inner)) b.fails = std::string(key) + ": " + ir::attr_string(*node, "message", "");
  auto condition = g.elements(n.inputs[0]);
  if (condition && condition->size() == 1) {
    b.by = (*condition)[0].known() ? "constant" : "sizes";
    auto sides = ops::sides_of(g, (*condition)[0]);
    if (b.by == "sizes") b.then_sizes = sides.holds, b.else_sizes = sides.fails;
  }
  branches_.push_back(std::move(b));
}

namespace {

// Does the group, which took the anchor, make up for the near miss? A rule's group does when it began at the same anchor, or holds both
// anchor and blocker. Regions and epilogues take whatever is left over: only what holds both makes up. A region
// makes up for no rule that found all its nodes: it cannot be the tail of a product or convolution.
bool makes_up(const Fused& f, const NearMiss& m) {
  auto took = [&](const std::string& name) { return std::find(f.origins.begin(), f.origins.end(), name) != f.origins.end(); };
  bool leftovers = f.rule == "vector_region" || f.rule == "cube_epilogue";
  if (f.rule == "vector_region" && (m.large || (m.rule != f.rule && m.matched == m.of))) return false;
  if (!leftovers && f.anchor == m.anchor) return true;
  return m.blocker.empty() || m.blocker == m.anchor || took(m.blocker);
}

}  // namespace

std::vector<NearMiss> Trace::near_misses() const {
  std::unordered_multimap<std::string_view, const Fused*> groups;  // by the model's node that they took
  for (auto& f : fused_)
    for (auto& name : f.origins) groups.emplace(name, &f);
  std::vector<NearMiss> out;
  for (auto& [key, m] : near_) {
    auto [lo, hi] = groups.equal_range(m.anchor);
    if (std::none_of(lo, hi, [&m = m](auto& group) { return makes_up(*group.second, m); })) out.push_back(m);
  }
  return out;
}

}  // namespace ge::passes
