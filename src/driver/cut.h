// Cutting a model into parts that are compiled apart: which node goes where, and a graph for each part.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace ge {

// --split: a number of parts of about equal cost, or parts that end at nodes; what is left makes a last part.
struct SplitOptions {
  int parts = 0;
  std::vector<std::pair<std::string, std::string>> ends;   // (part, node), a part's together
  bool any() const { return parts > 0 || !ends.empty(); }
  std::string text() const;
};
Result<SplitOptions> parse_split(const std::string& text);

struct Places {
  std::vector<std::string> names;   // of the parts, in the order in which they run
  std::vector<int> part_of;         // of each node; -1: of none, it is copied to where it is read, or dead
};

// typed: the graph after inference; nodes and values of `g` have the same ids there.
Result<Places> place_nodes(const ir::Graph& g, const ir::Graph& typed, const SplitOptions& o);
// Nodes that compute from constants alone: every part that needs one has its own.
std::vector<bool> constant_nodes(const ir::Graph& g);

struct Part {
  std::string name;
  ir::Graph graph;
  std::vector<int> inputs, outputs;   // numbers of values, as om/link.h has them
};

// A value that one part gives and others take.
struct CutValue {
  std::string name, from, type;
  std::vector<std::string> to;
  std::string maker, reader;          // operators beside the cut that might have been fused, or empty
  int64_t bytes = -1;                 // -1: sizes are open
};

struct CutModel {
  std::vector<Part> parts;
  std::vector<int> inputs, outputs;   // of the model, as numbers of values
  std::vector<CutValue> values;
};

CutModel cut_graph(const ir::Graph& g, const ir::Graph& typed, const Places& places);

}  // namespace ge
