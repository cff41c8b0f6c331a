// Patterns: small subgraphs written in the dump's syntax, matched from their last line upwards.
//
//   %t = MatMul(%a, %w:const)          ops may be alternatives: Relu|Clip
//   %y = Add(%t, %b:const)             %b?  an input that may be absent; ... further inputs of any kind
//
// Values made inside the pattern, other than the last, must have no reader outside of it. Operands of
// commutative ops are tried in both orders. A failed match keeps how far it got, which node stood in
// the way, why and what would help, in words; nothing where nothing would help.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/verdict.h"
#include "ir/graph.h"
#include "passes/trace.h"

namespace ge::passes {

struct PatternOperand {
  std::string name;
  bool constant = false, optional = false;
};

struct PatternNode {
  std::string output;
  std::vector<std::string> ops;
  std::vector<PatternOperand> operands;
  bool more = false;                       // "..." : further inputs are allowed
};

struct Pattern {
  std::vector<PatternNode> nodes;          // in the order written; the last is the anchor
};

Result<Pattern> parse_pattern(std::string_view text);

struct Match {
  const ir::Graph* g = nullptr;
  std::map<std::string, ir::ValueId, std::less<>> values;
  std::map<std::string, ir::NodeId, std::less<>> nodes;   // by the name of their output
  ir::NodeId anchor;

  ir::ValueId value(std::string_view name) const;         // none when absent
  const ir::Node& node(std::string_view name) const { return g->node(nodes.find(name)->second); }
  bool has(std::string_view name) const { return bool(value(name)); }
  const ir::Type& type(std::string_view name) const { return g->value(value(name)).type; }
  const Tensor* constant(std::string_view name) const { return g->value(value(name)).constant.get(); }
  std::string reader_of(std::string_view name) const;     // the matched node that reads the value, by name
  std::vector<std::string> origins() const;               // of all matched nodes, in the model's order
};

struct MatchFailure {
  int matched = 0, of = 0;
  std::string blocker, why, help;
  bool shared = false;   // all of the pattern is there and in the match, but a value inside has other readers
};

// Tries the pattern with its last node at `anchor`. On failure `failure` says how far it came.
bool match(const Pattern& p, const ir::Graph& g, ir::NodeId anchor, Match& m, MatchFailure& failure);

// The refusal of a value that a group, which ends at `end`, has not for itself: who else reads it, and what would help.
// Nothing would where that reader is needed to get to the end.
Verdict read_by_others(const ir::Graph& g, ir::ValueId v, const std::function<bool(ir::NodeId)>& inside, ir::NodeId end);

bool is_commutative(std::string_view op);
// Ops that only move or rename data: a pattern blocked by one of them is worth telling.
bool is_glue(std::string_view op);

}  // namespace ge::passes
