#include "passes/pattern.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace ge::passes {

using ir::NodeId;
using ir::ValueId;

bool is_commutative(std::string_view op) { return op == "Add" || op == "Mul" || op == "Max" || op == "Min"; }

bool is_glue(std::string_view op) {
  static constexpr std::string_view kGlue[] = {"Reshape", "Transpose", "Cast", "Squeeze", "Unsqueeze", "Flatten",
                                               "Expand", "Identity", "Slice", "Pad", "ge.Layout"};
  return std::find(std::begin(kGlue), std::end(kGlue), op) != std::end(kGlue);
}

Result<Pattern> parse_pattern(std::string_view text) {
  Pattern p;
  auto bad = [&](std::string_view line) { return error(code::kInternal, format("'{}' is not a line of a pattern", line)); };
  for (auto& raw : split(text, '\n')) {
    std::string_view line = trim(raw);
    if (line.empty()) continue;
    size_t equals = line.find('='), open = line.find('('), close = line.rfind(')');
    if (line[0] != '%' || equals == std::string_view::npos || open == std::string_view::npos || close == std::string_view::npos || open < equals) return bad(line);
    PatternNode n;
    n.output = std::string(trim(line.substr(1, equals - 1)));
    for (auto& op : split(trim(line.substr(equals + 1, open - equals - 1)), '|')) n.ops.emplace_back(trim(op));
    for (auto& piece : split(line.substr(open + 1, close - open - 1), ',')) {
      std::string_view o = trim(piece);
      if (o.empty()) continue;
      if (o == "...") {
        n.more = true;
        continue;
      }
      PatternOperand operand;
      if (o[0] != '%') return bad(line);
      o.remove_prefix(1);
      if (o.ends_with(":const")) operand.constant = true, o.remove_suffix(6);
      if (o.ends_with("?")) operand.optional = true, o.remove_suffix(1);
      operand.name = std::string(o);
      n.operands.push_back(std::move(operand));
    }
    p.nodes.push_back(std::move(n));
  }
  if (p.nodes.empty()) return bad(text);
  return p;
}

ValueId Match::value(std::string_view name) const {
  auto it = values.find(name);
  return it == values.end() ? ValueId{} : it->second;
}

std::string Match::reader_of(std::string_view name) const {
  ValueId v = value(name);
  for (auto& [output, id] : nodes) {
    auto& inputs = g->node(id).inputs;
    if (std::find(inputs.begin(), inputs.end(), v) != inputs.end()) return g->node(id).name;
  }
  return "";
}

std::vector<std::string> Match::origins() const {
  std::vector<std::pair<int64_t, NodeId>> sorted;
  for (auto& [n, id] : nodes) sorted.push_back({g->node(id).rank, id});
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string> out;
  for (auto& [rank, id] : sorted) {
    auto names = origins_of(g->node(id));
    out.insert(out.end(), names.begin(), names.end());
  }
  return out;
}

namespace {

constexpr size_t kFarthest = 200;    // nodes that are looked at for a word of explanation

// Is `from` needed to make `to`? Yes, too, where it would take too long to know.
bool leads_to(const ir::Graph& g, NodeId from, NodeId to) {
  std::vector<NodeId> left{to};
  std::set<int> seen;
  while (!left.empty()) {
    NodeId id = left.back();
    left.pop_back();
    if (id == from || seen.size() > kFarthest) return true;
    if (g.node(id).rank < g.node(from).rank || !seen.insert(id.v).second) continue;
    for (ValueId v : g.node(id).inputs)
      if (v && g.value(v).producer) left.push_back(g.value(v).producer);
  }
  return false;
}

// Is v made of what nothing but `reader` needs, and no node of the group is among those that make it?
bool apart(const ir::Graph& g, ValueId v, NodeId reader, const Match& m) {
  std::vector<ValueId> left{v}, made;
  std::set<int> nodes{reader.v};
  while (!left.empty()) {
    ValueId x = left.back();
    left.pop_back();
    if (g.is_constant(x)) continue;
    made.push_back(x);
    NodeId id = g.value(x).producer;
    if (!id || !nodes.insert(id.v).second) continue;
    if (nodes.size() > kFarthest || std::any_of(m.nodes.begin(), m.nodes.end(), [&](auto& n) { return n.second == id; })) return false;
    for (ValueId in : g.node(id).inputs)
      if (in) left.push_back(in);
  }
  return std::all_of(made.begin(), made.end(), [&](ValueId x) {
    auto& uses = g.value(x).uses;
    return !g.is_output(x) && std::all_of(uses.begin(), uses.end(), [&](auto& u) { return nodes.count(u.node.v) > 0; });
  });
}

}  // namespace

Verdict read_by_others(const ir::Graph& g, ValueId v, const std::function<bool(NodeId)>& inside, NodeId end) {
  auto& value = g.value(v);
  constexpr size_t kMostReaders = 16;   // of more, nobody changes what each of them reads
  NodeId other = value.producer;
  bool needed = value.uses.size() > kMostReaders;
  for (size_t i = 0; i < std::min(value.uses.size(), kMostReaders); ++i) {
    NodeId reader = value.uses[i].node;
    if (inside(reader)) continue;
    other = reader;
    needed = needed || leads_to(g, other, end);
  }
  // As it is, or in other axes of size 1.
  ValueId seen = v;
  for (NodeId reader = other; !g.is_output(seen) && reader != value.producer && is_glue(g.node(reader).op) && g.node(reader).inputs[0] == seen;) {
    seen = g.node(reader).outputs[0];
    if (g.value(seen).uses.empty()) break;
    reader = g.value(seen).uses[0].node;
  }
  const bool output = g.is_output(seen);
  std::string help = needed ? "" : output ? "leave it out of the outputs (--out_nodes names those that stay)" : format("let {} read another value, such as the group's result", g.node(other).name);
  return no(output ? format("{} is an output of the graph", value.name) : format("{} has {} readers", value.name, g.reader_count(v)), std::move(help), other ? g.node(other).name : "");
}

namespace {

class Matcher {
 public:
  Matcher(const Pattern& p, const ir::Graph& g, Match& m, MatchFailure& f) : p_(p), g_(g), m_(m), failure_(f) {
    failure_.of = static_cast<int>(p.nodes.size());
  }

  bool node(size_t index, NodeId id) {
    auto& want = p_.nodes[index];
    auto& n = g_.node(id);
    if (std::find(want.ops.begin(), want.ops.end(), n.op) == want.ops.end()) {
      if (hides(id, want)) fail(id, format("{} is expected here, {} stands there", join(want.ops, " or "), n.op), format("move {} out of the way (before or after the group)", n.op));
      return false;
    }
    auto known = m_.nodes.find(want.output);
    if (known != m_.nodes.end()) return known->second == id;
    bool last = index + 1 == p_.nodes.size();
    Match saved = m_;
    NodeId saved_shared = shared_;
    if (!last && g_.reader_count(n.outputs[0]) > readers_inside(want.output)) {
      // Of a short pattern the other order of operands may still match; a long one has no such luck.
      if (p_.nodes.size() <= kShort && !lenient_) {
        met_shared_ = true;
        return false;
      }
      if (!shared_) shared_ = id;
    }
    if (n.inputs.size() > want.operands.size() && !want.more) return false;
    m_.nodes[want.output] = id;
    if (operands(index, id, false)) return true;
    if (is_commutative(n.op) && want.operands.size() == 2) {
      NodeId before = saved_shared ? saved_shared : shared_ == id ? id : NodeId{};
      m_ = saved, shared_ = before;
      m_.nodes[want.output] = id;
      if (operands(index, id, true)) return true;
    }
    m_ = std::move(saved), shared_ = saved_shared;
    return false;
  }

  // A value inside that is read from outside stands in the way: alone, where all nodes are there.
  bool met_shared() const { return met_shared_; }
  bool shared() const { return bool(shared_); }
  void be_lenient() { lenient_ = true; }
  void tell_shared(NodeId anchor) {
    auto inside = [&](NodeId id) { return std::any_of(m_.nodes.begin(), m_.nodes.end(), [&](auto& x) { return x.second == id; }); };
    Verdict v = read_by_others(g_, g_.node(shared_).outputs[0], inside, anchor);
    const int found = static_cast<int>(m_.nodes.size());
    failure_ = {p_.nodes.size() <= kShort ? found - 1 : found, failure_.of, v.node, v.why, v.help, true};
  }

 private:
  static constexpr size_t kShort = 3;   // nodes of a pattern

  int readers_inside(const std::string& name) const {
    int count = 0;
    for (auto& n : p_.nodes)
      for (auto& o : n.operands) count += o.name == name;
    return count;
  }

  bool operands(size_t index, NodeId id, bool swapped) {
    auto& want = p_.nodes[index];
    auto& n = g_.node(id);
    for (size_t i = 0; i < want.operands.size(); ++i) {
      size_t at = swapped ? 1 - i : i;
      if (!operand(want.operands[i], at < n.inputs.size() ? n.inputs[at] : ValueId{}, id)) return false;
    }
    return true;
  }

  bool operand(const PatternOperand& o, ValueId v, NodeId reader) {
    if (!v) return o.optional;
    auto it = m_.values.find(o.name);
    if (it != m_.values.end()) return it->second == v;
    for (size_t k = 0; k < p_.nodes.size(); ++k) {
      if (p_.nodes[k].output != o.name) continue;
      NodeId producer = g_.value(v).producer;
      if (!producer) return false;
      if (!node(k, producer)) return false;
      m_.values[o.name] = v;
      return true;
    }
    if (o.constant && !g_.is_constant(v)) {
      if (apart(g_, v, reader, m_)) fail(g_.value(v).producer ? g_.value(v).producer : reader, format("%{} must be constant, but {} is computed at run time", o.name, g_.value(v).name), format("make {} a constant of the model", g_.value(v).name));
      return false;
    }
    m_.values[o.name] = v;
    return true;
  }

  // What comes furthest is kept: the rest of the pattern says more than its first node.
  void fail(NodeId blocker, std::string why, std::string help) {
    const int found = static_cast<int>(m_.nodes.size());
    if (found < failure_.matched || (found == failure_.matched && !failure_.why.empty())) return;
    failure_.matched = found;
    failure_.blocker = g_.node(blocker).name;
    failure_.why = std::move(why);
    failure_.help = std::move(help);
  }

  // Is the node glue in front of one that is wanted? Of a long pattern more than half must have been found: what its first
  // nodes are made of stands everywhere.
  bool hides(NodeId id, const PatternNode& want) const {
    if (p_.nodes.size() > kShort && m_.nodes.size() * 2 <= p_.nodes.size()) return false;
    for (int depth = 0; depth < 4 && id; ++depth) {
      auto& n = g_.node(id);
      if (std::find(want.ops.begin(), want.ops.end(), n.op) != want.ops.end()) return depth > 0;
      if (!is_glue(n.op) || n.inputs.empty() || !n.inputs[0]) return false;
      id = g_.value(n.inputs[0]).producer;
    }
    return false;
  }

  const Pattern& p_;
  const ir::Graph& g_;
  Match& m_;
  MatchFailure& failure_;
  NodeId shared_;   // a matched node that others read too
  bool lenient_ = false, met_shared_ = false;
};

}  // namespace

bool match(const Pattern& p, const ir::Graph& g, NodeId anchor, Match& m, MatchFailure& failure) {
  m = Match{};
  m.g = &g;
  m.anchor = anchor;
  failure = MatchFailure{};
  auto& last = p.nodes.back();
  if (std::find(last.ops.begin(), last.ops.end(), g.node(anchor).op) == last.ops.end()) return false;
  Matcher matcher(p, g, m, failure);
  bool found = matcher.node(p.nodes.size() - 1, anchor);
  if (!found && matcher.met_shared()) {
    matcher.be_lenient();
    m = Match{};
    m.g = &g;
    m.anchor = anchor;
    found = matcher.node(p.nodes.size() - 1, anchor);
  }
  if (!found) return false;
  m.values[last.output] = g.node(anchor).outputs[0];
  if (matcher.shared()) {
    matcher.tell_shared(anchor);
    return false;
  }
  failure.matched = static_cast<int>(p.nodes.size());
  return true;
}

}  // namespace ge::passes
