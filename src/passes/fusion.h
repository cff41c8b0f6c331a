// Fusion rules: one file each in fusions/, registered here. Three kinds under one tracing interface:
// a pattern rule (text, checks, a builder), a region or sibling rule (a function that searches by itself
// and reports to the same Trace).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "passes/pass.h"
#include "passes/pattern.h"

namespace ge::passes {

using Check = Verdict (*)(const Match&);
// Replaces the matched nodes; returns the node that stands there now (none: it is now another value).
using Build = Result<ir::NodeId> (*)(ir::Graph&, const Match&);
// Searches the graph itself; true when it changed something.
using Search = Result<bool> (*)(ir::Graph&, PassContext&);

struct Fusion {
  std::string name;                    // what --disable_fusion takes
  std::string doc;
  int order = 0;                       // stage: rules of a lower stage run to the end first
  std::vector<std::string> patterns;   // alternatives, tried in turn
  std::vector<Check> require;
  Build build = nullptr;
  Search search = nullptr;
};

struct RegisterFusion {
  explicit RegisterFusion(Fusion f);
};
// The refusal of a place where running showed that a rule changes results too much.
inline Verdict beyond_eps() { return no("the fused result would differ by more than the rule's eps", "give the rule a larger eps in the fusion_switch_file"); }

// No where a rule with a pattern would take the products or convolutions that end at `anchor`, but is switched off, there or
// everywhere: no other rule does the same in its place.
Verdict not_switched_off(const ir::Graph& g, ir::NodeId anchor, const PassOptions& o);

// By stage, then by size of the pattern (larger first), then by name.
std::vector<const Fusion*> fusions();

// The matched nodes, which nobody reads any more, in an order in which they can be erased.
void erase_matched(ir::Graph& g, const Match& m);
// Readers of `old_value` read output 0 of `node`, which gets the origins of the match.
void take_over(ir::Graph& g, const Match& m, ir::ValueId old_value, ir::NodeId node);
// One node `op` in place of the whole match, for the pattern's last value %y; returns it.
ir::NodeId replace_match(ir::Graph& g, const Match& m, std::string op, std::vector<ir::ValueId> inputs, ir::Attrs attrs);

}  // namespace ge::passes
