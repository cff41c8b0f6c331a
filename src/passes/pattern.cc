#include "passes/pattern.h"

#include <algorithm>

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
    auto& n = g->node(id);
    if (n.origin.empty()) out.push_back(n.name);
    else out.insert(out.end(), n.origin.begin(), n.origin.end());
  }
  return out;
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
    if (std::find(want.ops.begin(), want.ops.end(), n.op) == want.ops.end())
      return fail(id, [&] { return format("{} is expected here, {} stands there", join(want.ops, " or "), n.op); });
    auto known = m_.nodes.find(want.output);
    if (known != m_.nodes.end()) return known->second == id || fail(id, [&] { return std::string("another node is expected here"); });
    bool last = index + 1 == p_.nodes.size();
    Match saved = m_;
    NodeId saved_shared = shared_;
    if (!last && g_.reader_count(n.outputs[0]) > readers_inside(want.output)) {
      // Of a long pattern the rest is looked at first: only where all of it is there does the reader stand in the way.
      if (p_.nodes.size() <= kShort) return shared_value(id);
      if (!shared_) shared_ = id;
    }
    if (n.inputs.size() > want.operands.size() && !want.more)
      return fail(id, [&] { return format("{} has {} inputs, at most {} are expected", n.op, n.inputs.size(), want.operands.size()); });
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

  // All nodes are there: is no value inside read from outside?
  bool no_reader_outside() { return !shared_ || shared_value(shared_); }

 private:
  static constexpr size_t kShort = 3;   // nodes of a pattern

  int readers_inside(const std::string& name) const {
    int count = 0;
    for (auto& n : p_.nodes)
      for (auto& o : n.operands) count += o.name == name;
    return count;
  }

  bool shared_value(NodeId id) {
    ValueId v = g_.node(id).outputs[0];
    NodeId other = id;
    for (auto& u : g_.value(v).uses)
      if (std::none_of(m_.nodes.begin(), m_.nodes.end(), [&](auto& x) { return x.second == u.node; })) other = u.node;
    // As it is, or in other axes of size 1.
    ValueId seen = v;
    for (NodeId reader = other; !g_.is_output(seen) && reader != id && is_glue(g_.node(reader).op) && g_.node(reader).inputs[0] == seen;) {
      seen = g_.node(reader).outputs[0];
      if (g_.value(seen).uses.empty()) break;
      reader = g_.value(seen).uses[0].node;
    }
    bool output = g_.is_output(seen);
    return fail(other, [&] {
      return output ? format("{} is an output of the graph", g_.value(v).name)
                    : format("{} has {} readers", g_.value(v).name, g_.reader_count(v));
    }, Worth::always);
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
    if (!v) return o.optional || fail(reader, [&] { return format("input %{} is missing", o.name); });
    auto it = m_.values.find(o.name);
    if (it != m_.values.end()) return it->second == v || fail(reader, [&] { return format("%{} is expected to be one value, but it is {} and {}", o.name, g_.value(it->second).name, g_.value(v).name); }, Worth::when_close, true);
    for (size_t k = 0; k < p_.nodes.size(); ++k) {
      if (p_.nodes[k].output != o.name) continue;
      NodeId producer = g_.value(v).producer;
      if (!producer) return fail(reader, [&] { return format("{} is expected to feed {}, but {} is {}", join(p_.nodes[k].ops, " or "), g_.node(reader).op, g_.value(v).name, g_.is_constant(v) ? "a constant" : "an input"); }, Worth::never);
      if (!node(k, producer)) return false;
      m_.values[o.name] = v;
      return true;
    }
    if (o.constant && !g_.is_constant(v))
      return fail(g_.value(v).producer ? g_.value(v).producer : reader, [&] { return format("%{} must be constant, but {} is computed at run time", o.name, g_.value(v).name); });
    m_.values[o.name] = v;
    return true;
  }

  // The right node that others read too is always worth a word; a wrong one only when more than half
  // of the pattern was matched before it, or when nothing but glue stands between it and what was expected.
  enum class Worth { never, when_close, always };

  // miswired: the node matched last is of the right kind but does not belong here.
  template <class Text>
  bool fail(NodeId blocker, Text why, Worth worth = Worth::when_close, bool miswired = false) {
    int found = static_cast<int>(m_.nodes.size()), matched = found - miswired;
    if (matched < failure_.matched || (matched == failure_.matched && !failure_.why.empty())) return false;
    bool early = found * 2 <= static_cast<int>(p_.nodes.size());
    if (worth == Worth::never || (worth == Worth::when_close && early && !glue_hides(blocker))) return false;
    failure_.matched = matched;
    failure_.blocker = g_.node(blocker).name;
    failure_.why = why();
    if (is_glue(g_.node(blocker).op)) failure_.help = format("move {} out of the way (before or after the group)", g_.node(blocker).op);
    return false;
  }

  // Is the node glue with an op behind it that the pattern wants?
  bool glue_hides(NodeId id) const {
    for (int depth = 0; depth < 4 && id; ++depth) {
      auto& n = g_.node(id);
      bool wanted = std::any_of(p_.nodes.begin(), p_.nodes.end() - 1, [&](auto& x) { return std::find(x.ops.begin(), x.ops.end(), n.op) != x.ops.end(); });
      if (wanted) return depth > 0;
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
  if (!matcher.node(p.nodes.size() - 1, anchor) || !matcher.no_reader_outside()) return false;
  m.values[last.output] = g.node(anchor).outputs[0];
  failure.matched = static_cast<int>(p.nodes.size());
  return true;
}

}  // namespace ge::passes
