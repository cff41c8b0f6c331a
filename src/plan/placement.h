// Placement: which memory each value lies in, before offsets are known. A storage is one buffer; a value
// is a strided view of one. Views (Reshape, Slice, Transpose ...) share their input's storage, parts of a
// Concat and what a Pad surrounds are made inside its storage, and an output may take over an input that ends there (in place).
// Knows nothing of kernels or offsets; src/lower asks it, arena gives the offsets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/op.h"

namespace ge::plan {

struct PlacementOptions {
  bool views = true;     // false: every value has storage of its own (memory reuse switched off)
};

// pool: made by an executor task, whose size it alone tells.
// state: lives from run to run.
enum class StorageKind : uint8_t { arena, input, output, weight, pool, state };

struct Storage {
  StorageKind kind = StorageKind::arena;
  int index = -1;               // input, output or state number
  ir::ValueId value;            // that made it; for weights the constant
  DType dtype = DType::none;
  Dim elements;                 // of dtype; 0 where nothing is known of the shape
};

struct ValuePlace {
  int storage = -1;
  ops::Strided view;            // in elements of the value's dtype, from the start of the storage
};

// How a state comes to hold its output.
enum class StateUpdate : uint8_t {
  kept,      // it stays as it is: not written, or its input is its output
  appended,  // what is new is made, or copied, behind what it holds
  replaced,  // some of what it holds is replaced
  written,   // the output is made in it
  copied,    // the output is made elsewhere, and copied into it when all that reads the state has run
};
struct StatePlace {
  int storage = -1;
  std::vector<Dim> capacity;    // its dims in memory
  StateUpdate update = StateUpdate::kept;
  std::string why;              // of what is copied
};
// The dims of a state's memory.
std::vector<Dim> capacity_of(const ir::Graph& g, const ir::State& s);

// How often each kind of alias was found; tests want to see all of them.
struct AliasCounts {
  int views = 0, parts = 0, in_place = 0, outputs = 0;
};

class Placement {
 public:
  Placement(const ir::Graph& g, const PlacementOptions& options);

  const ValuePlace& at(ir::ValueId v) const { return places_[static_cast<size_t>(v.v)]; }
  const std::vector<Storage>& storages() const { return storages_; }
  // True when the node's outputs all share their input's memory, so that nothing has to run.
  bool is_view(ir::NodeId n) const { return view_nodes_[static_cast<size_t>(n.v)]; }
  int add_storage(Storage s);
  // Everything in storage `from` lies in `to` from now on (same size, in place), once rename() has said so to the
  // values: merged[s] is what storage s became part of, or s itself.
  void merge(int from, int to);
  void rename(const std::vector<int>& merged);
  // Graph outputs that need a copy at the end: (output number, value).
  const std::vector<std::pair<int, ir::ValueId>>& copies() const { return copies_; }
  // Parallel to the Graph's states.
  const std::vector<StatePlace>& states() const { return states_; }
  AliasCounts counts;

 private:
  void place_states(const std::vector<ir::NodeId>& order);
  void place_inputs();
  void place_outputs();
  bool takes_parts(const ops::OpDef& op, const ir::Node& n) const;
  void place_parts(const std::vector<ir::NodeId>& order);
  void place_rest(const std::vector<ir::NodeId>& order);
  bool place_view(ir::NodeId id);
  void own(ir::ValueId v);
  const ir::Graph& g_;
  PlacementOptions options_;
  std::vector<ValuePlace> places_;
  std::vector<Storage> storages_;
  std::vector<bool> view_nodes_;
  std::vector<std::pair<int, ir::ValueId>> copies_;
  std::vector<StatePlace> states_;
  std::vector<int> output_of_;  // value -> output number whose buffer it is made in, or -1
};

}  // namespace ge::plan
