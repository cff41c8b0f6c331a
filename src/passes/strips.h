// What strips.cc (which nodes run in strips, of how many rows) and strips_cut.cc (the graph that does so) share.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ops/op.h"
#include "passes/trace.h"

namespace ge::passes::cutting {

using ir::NodeId;
using ir::ValueId;
using ops::RowRange;

constexpr int kAxis = 2;                  // that is cut: the first behind the channels

// What open sizes are taken for; those that data decide stay open.
using Sizes = std::map<std::string, int64_t, std::less<>>;

// What is known of a value that can be cut.
struct Map {
  int64_t height = 0;                     // 0: it cannot
  double bytes = 0;
};

struct Input {
  ValueId value;
  ops::RowWindow window;
};

struct Step {
  bool fits = false;                      // may be cut
  double cycles = 0, alone = 0;           // of its work; with its operands' traffic
  int64_t tile = 1;                       // rows that are computed together
  std::vector<Input> inputs;              // of which rows are taken
};

// Nodes that run in strips, and the values that are read beyond them.
struct Group {
  std::vector<NodeId> nodes;
  std::vector<ValueId> sinks;
  int64_t count = 0;
  int64_t even = 1;                       // strips of the lowest sink begin at multiples of it
  // Open: sizes are, so that the run chooses. Strips of at least so many rows, of maps of which the largest has at least
  // so many bytes; no bytes: always.
  bool open = false;
  int64_t least_rows = 0;
  double least_bytes = 0;
  bool holds(NodeId n) const { return n && std::find(nodes.begin(), nodes.end(), n) != nodes.end(); }
  bool is_sink(ValueId v) const { return std::find(sinks.begin(), sinks.end(), v) != sinks.end(); }
};

// One strip of a group.
struct Strip {
  bool possible = true;                   // none of its rows is made of padding alone
  std::map<int, int64_t> ends;            // how far each node has come then
  std::map<int, RowRange> made;           // by each node
  std::map<int, RowRange> read;           // of each value
};

// A graph whose open sizes are numbers: heights of maps, and the rows that strips of them take.
class Rows {
 public:
  Rows(const ir::Graph& g, Sizes sizes, bool any_size) : g_(g), sizes_(std::move(sizes)), any_size_(any_size) {}
  const Map& map(ValueId v) const;
  // any_size: small maps too.
  const Step& step(NodeId id) const;
  int64_t height(ValueId v) const { return map(v).height; }
  double bytes(NodeId id) const;                                   // of the maps that it reads and makes
  ValueId lowest(const Group& group) const;                        // sink
  int64_t boundary(const Group& group, int64_t k) const;           // where strip k of the lowest sink ends
  RowRange read(const Group& group, NodeId id, const Input& in, const RowRange& made) const;
  Strip strip(const Group& group, int64_t k, const std::map<int, int64_t>& before) const;
  std::map<int, int64_t> ends(const Group& group, int64_t k) const;   // how far each node has come when strips 0 to k have run
  std::vector<Strip> strips(const Group& group) const;
  // Every strip is possible, and all together make all of the sinks.
  bool possible(const Group& group, const std::vector<Strip>& all) const;

 private:
  std::optional<double> size(const Dim& d) const;
  Map map_of(ValueId v) const;
  Step step_of(NodeId id) const;
  int64_t part_end(const Group& group, ValueId sink, int64_t k) const;

  const ir::Graph& g_;
  const Sizes sizes_;
  const bool any_size_;
  mutable std::unordered_map<int32_t, Map> maps_;     // of what was asked for
  mutable std::unordered_map<int32_t, Step> steps_;
};

// Cycles that reading or writing `bytes` of a tensor of `whole` bytes takes beyond the work on them.
double from_memory(double bytes, double whole);

// Puts a group's strips in its place, or, where it is open, beside it. ways: the same nodes, each with another number of strips; the
// last one whose sizes a run has is taken, and the nodes as they are where it has those of none. samples: of each way, the
// graph at several sizes, by which places of rows are found as expressions; one where nothing is open. False: there are no such
// expressions, and the graph does what it did.
bool cut(ir::Graph& g, const std::vector<Group>& ways, const std::vector<std::vector<Rows>>& samples, Trace& trace);

}  // namespace ge::passes::cutting
