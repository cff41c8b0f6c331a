#include "passes/fusion.h"

#include <algorithm>

#include "base/text.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

struct Rule {
  Fusion fusion;
  std::vector<Pattern> patterns;
  size_t size = 0;
  bool cube = false;   // takes a product or convolution: no vector region makes up for it
};

std::vector<Rule>& rules() {
  static std::vector<Rule> r;
  return r;
}

}  // namespace

RegisterFusion::RegisterFusion(Fusion f) {
  Rule r;
  for (auto& text : f.patterns) {
    auto p = parse_pattern(text);
    GE_CHECK(p.ok(), p.ok() ? "" : p.error().message);
    r.size = std::max(r.size, p->nodes.size());
    for (auto& n : p->nodes)
      r.cube |= std::any_of(n.ops.begin(), n.ops.end(), [](auto& op) { return op == "MatMul" || op == "Conv"; });
    r.patterns.push_back(*std::move(p));
  }
  r.fusion = std::move(f);
  auto& all = rules();
  all.push_back(std::move(r));
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) {
    return std::tuple(a.fusion.order, -static_cast<int64_t>(a.size), a.fusion.name) <
           std::tuple(b.fusion.order, -static_cast<int64_t>(b.size), b.fusion.name);
  });
}

std::vector<const Fusion*> fusions() {
  std::vector<const Fusion*> out;
  for (auto& r : rules()) out.push_back(&r.fusion);
  return out;
}

void erase_matched(ir::Graph& g, const Match& m) {
  std::vector<ir::NodeId> left;
  for (auto& [name, id] : m.nodes) left.push_back(id);
  bool progress = true;
  while (progress) {
    progress = false;
    for (auto& id : left) {
      if (!id || g.node(id).dead) continue;
      auto& outs = g.node(id).outputs;
      if (std::any_of(outs.begin(), outs.end(), [&](auto v) { return v && g.reader_count(v) > 0; })) continue;
      g.erase(id);
      progress = true;
    }
  }
}

void take_over(ir::Graph& g, const Match& m, ir::ValueId old_value, ir::NodeId node) {
  g.node(node).origin = m.origins();
  g.value(g.node(node).outputs[0]).type = g.value(old_value).type;
  g.replace_uses(old_value, g.node(node).outputs[0]);
}

ir::NodeId replace_match(ir::Graph& g, const Match& m, std::string op, std::vector<ir::ValueId> inputs, ir::Attrs attrs) {
  ir::ValueId replaced = m.value("y");
  auto id = g.insert(std::move(op), std::move(inputs), {g.value(replaced).type}, std::move(attrs), m.anchor);
  take_over(g, m, replaced, id);
  erase_matched(g, m);
  return id;
}

namespace {

// The first matched node that options keep out of fusions.
Verdict allowed(const ir::Graph& g, const Match& m, const std::string& rule, const PassOptions& o) {
  if (o.disabled_at.count({rule, g.node(m.anchor).name})) return beyond_eps();
  for (auto& [name, id] : m.nodes) {
    Verdict v = in_scope(o, g, id);
    if (!v) return v;
  }
  return yes();
}

Result<bool> apply_at(ir::Graph& g, const Rule& r, ir::NodeId id, PassContext& context) {
  Trace& trace = context.trace;
  std::string anchor = g.node(id).name;
  MatchFailure best;
  bool large = r.cube;   // or a whole pattern of several nodes that a check refused
  for (auto& p : r.patterns) {
    Match m;
    MatchFailure failure;
    const bool matched = match(p, g, id, m, failure);
    Verdict verdict;
    if (matched || failure.shared) {
      for (auto check : r.fusion.require) {
        verdict = check(m);
        if (!verdict) break;
      }
      if (verdict) verdict = allowed(g, m, r.fusion.name, context.options);
    }
    if (!matched && verdict) {
      if (!failure.help.empty() && failure.matched >= best.matched) best = failure;
      continue;
    }
    if (!verdict) {
      if (verdict.help.empty()) continue;
      best = {static_cast<int>(p.nodes.size()), static_cast<int>(p.nodes.size()), verdict.node.empty() ? anchor : verdict.node, verdict.why, verdict.help};
      large |= p.nodes.size() >= 5;
      continue;
    }
    GE_TRY(ir::NodeId made, r.fusion.build(g, m));
    if (made) trace.fused(r.fusion.name, g, made, anchor);
    trace.drop_near_misses_at(anchor, r.fusion.name);
    return true;
  }
  if (!best.help.empty()) trace.near_miss({r.fusion.name, anchor, best.matched, best.of, best.blocker, best.why, best.help, large});
  return false;
}

Result<bool> apply(ir::Graph& g, const Rule& r, PassContext& context) {
  if (r.fusion.search) return r.fusion.search(g, context);
  bool changed = false;
  for (ir::NodeId id : g.order()) {
    // A node can take up several followers: try again where it now stands.
    if (g.node(id).dead) continue;
    GE_TRY(bool done, apply_at(g, r, id, context));
    changed |= done;
  }
  return changed;
}

}  // namespace

Verdict in_scope(const PassOptions& o, const ir::Graph& g, ir::NodeId id) {
  auto& n = g.node(id);
  if (o.scope.empty() || is_glue(n.op)) return yes();
  std::string type = n.op == "ge.MatMul" ? "MatMul" : n.op == "ge.Conv" ? "Conv" : n.op == "ge.ConvTranspose" ? "ConvTranspose" : n.op;
  if (o.scope.count(type)) return yes();
  bool by_constant = (n.op == "Mul" || n.op == "Div") && n.inputs.size() == 2 && (g.is_constant(n.inputs[0]) || g.is_constant(n.inputs[1]));
  if (by_constant || n.op.starts_with("ge.")) return yes();
  return no(format("{} is not in --enable_op_scope_list", type), format("add {} to the list", type));
}

Verdict not_switched_off(const ir::Graph& g, ir::NodeId anchor, const PassOptions& o) {
  for (auto& r : rules()) {
    auto& name = r.fusion.name;
    if (!r.cube || r.fusion.search || (!o.disabled.count(name) && !o.disabled_at.count({name, g.node(anchor).name}))) continue;
    for (auto& p : r.patterns) {
      Match m;
      MatchFailure ignored;
      if (match(p, g, anchor, m, ignored) && std::all_of(r.fusion.require.begin(), r.fusion.require.end(), [&](Check check) { return check(m).holds; }))
        return no(format("{} is switched off", name));
    }
  }
  return yes();
}

Result<bool> fuse(ir::Graph& g, PassContext& c) {
  bool changed = false;
  for (size_t i = 0; i < rules().size();) {
    int stage = rules()[i].fusion.order;
    size_t end = i;
    while (end < rules().size() && rules()[end].fusion.order == stage) ++end;
    for (int round = 0; round < 8; ++round) {
      bool any = false;
      for (size_t k = i; k < end; ++k) {
        auto& rule = rules()[k];
        if (!c.options.fusion || c.options.disabled.count(rule.fusion.name)) {
          c.trace.off(rule.fusion.name);
          continue;
        }
        auto done = apply(g, rule, c);
        if (!done.ok()) return Status(std::move(done).take_error()).context("fusion " + rule.fusion.name);
        if (*done) {
          any = true;
          GE_RETURN_IF_ERROR(infer(g).context("inference after fusion " + rule.fusion.name));
        }
      }
      changed |= any;
      if (!any) break;
    }
    i = end;
  }
  return changed;
}

}  // namespace ge::passes
