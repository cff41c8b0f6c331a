// Trace: what the compiler did and why it did not do more. Every fusion rule reports here: what it
// fused, and, for each place where it came close, how far it got, which node stood in the way, why and what would help.
// Only the best near miss for each rule and place is kept.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace ge::passes {

struct Fused {
  std::string rule;
  std::string node;                    // the node that stands there now
  std::string anchor;                  // where matching began, or empty: what disabled_at takes
  std::vector<std::string> origins;    // the model's nodes that it replaces
  std::string graph;                   // the nested graph that holds it ("then_branch of If_3"), or empty
  std::string how;                     // in words, where the rule has a choice, or empty
};

// An If of the model: who decides it, and for which sizes which branch runs.
struct Branch {
  std::string node;
  std::string taken;                   // the branch that all sizes take, or empty: both are there
  std::string by;                      // "constant", "sizes" or "data"
  std::string then_sizes, else_sizes;  // in words, when sizes decide
  std::string fails;                   // "BRANCH: WHY" of one that cannot run, or empty
};

// The names of the model's nodes that n stands for: its own where it is one of them.
std::vector<std::string> origins_of(const ir::Node& n);

struct NearMiss {
  std::string rule;
  std::string anchor;                  // the node where matching began
  int matched = 0, of = 0;             // nodes of the pattern that were found
  std::string blocker;                 // the node that stood in the way
  std::string why;                     // a sentence
  std::string help;                    // what would help; where nothing would, nothing was missed
  bool large = false;                  // no vector region makes up for it
};

// A product, convolution or attention, and what precision means to it.
struct NodePrecision {
  std::string node;
  bool bf16 = false;                   // what it computes in; else f32
  std::string why;                     // it keeps f32
  double f32 = 0, best = 0;            // estimated cycles: in f32, and in bf16 where that would be faster
};

class Trace {
 public:
  void fused(std::string rule, const ir::Graph& g, ir::NodeId node, std::string anchor = "", std::string how = "");
  void near_miss(NearMiss m);          // is kept if it says what would help
  void off(std::string rule);          // a rule that options switched off
  void branch(const ir::Graph& g, ir::NodeId node, std::string taken);
  void drop_near_misses_at(const std::string& anchor, const std::string& rule);
  const std::vector<Fused>& all_fused() const { return fused_; }
  std::vector<NearMiss> near_misses() const;
  const std::vector<std::string>& switched_off() const { return off_; }
  const std::vector<Branch>& branches() const { return branches_; }
  std::string graph;                   // the nested graph that passes work on
  std::vector<NodePrecision> precision;
  double other_cycles = 0;             // of all other nodes, by the bytes that they read and write

 private:
  std::vector<Fused> fused_;
  std::map<std::pair<std::string, std::string>, NearMiss> near_;
  std::vector<std::string> off_;
  std::vector<Branch> branches_;
};

}  // namespace ge::passes
