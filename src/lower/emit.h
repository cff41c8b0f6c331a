// What lowering hands to emission: tasks with resolved operands, where values lie, weights made on the way.
// Private to src/lower.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "kernels/kernel.h"
#include "om/program.h"
#include "ops/op.h"
#include "lower/weight_store.h"
#include "plan/placement.h"

namespace ge::lower {

struct Operand {
  int storage = -1;         // -1: absent
  DType dtype = DType::none;
  ops::Strided view;
  bool ranked = true;       // false: no plain tensor, or one of any shape; view says nothing
};

struct Task {
  ir::NodeId node;          // none: a copy into the caller's buffer
  const kernels::Kernel* kernel = nullptr;
  std::vector<Operand> in, out;
  ops::CallSpec spec;
  std::vector<int> programs;   // of spec.graphs, once they are lowered
  bool needed = false;
  int condition = -1;          // of Lowered::conditions; none: it has a part in every run
};

// Where a symbol that data decide comes from: dimension `axis` of what lies in the storage, or an element of it.
struct Source {
  int storage = -1;
  int element = 0, axis = -1;
};

// Where a weight lies in the store; its dtype tells apart what is the same bytes.
struct StoredWeight {
  uint64_t offset, bytes;
  DType dtype;
  auto operator<=>(const StoredWeight&) const = default;
};

struct Lowered {
  std::vector<Task> tasks;
  std::vector<int> first, last;              // of each storage: the tasks that touch it
  std::map<int, StoredWeight> packed;        // storage -> the weight that lowering made
  std::map<std::string, Source, std::less<>> sources;
  std::vector<int> segments;                 // the task after each one's last
  std::vector<Dim> conditions;               // for the sizes of runs
  std::map<int, int> passed;                 // output -> storage of the input that it is: handed on, not copied
  std::map<int, int> updates;                // output -> number of the input in whose memory it may be made
};

inline bool same_view(const ops::Strided& a, const ops::Strided& b) { return a.offset == b.offset && a.dims == b.dims && a.strides == b.strides; }

// The kernel allows output 0 in the memory of operand k, and every operand that lies there too, seen as the output is.
bool takes_over(const Task& t, size_t k);

// Of a nested graph: outputs that may be made where an input lies (Lowered::updates), as the task that first writes
// one is the last to read the other and works in place. Whether the input's memory is free, and of the sizes that
// the output has, is for whoever runs the graph to know: a value carried by a Loop is free once an iteration has made it.
void find_updates(const ir::Graph& g, const plan::Placement& placement, Lowered& lowered);

// Puts the tasks into an order in which every one's sizes are known when its segment begins, with as few segments
// as that allows. Without sources the order stays, in one segment.
Status cut_segments(const ir::Graph& g, const plan::Placement& placement, Lowered& lowered);
// The symbols in a task's sizes and parameters. Of an executor task's results only those that it is given.
std::set<std::string> symbols_of(const Task& t, const plan::Placement& placement);

// The weights and kernels that all programs of a package share.
struct Shared {
  om::Package package;
  WeightStore weights;
  std::multimap<uint64_t, StoredWeight> by_hash;   // by content
  std::map<std::string, int> kernels;
  std::map<std::string, uint32_t> texts;           // their numbers

  explicit Shared(std::shared_ptr<NamelessFile> file) : weights(std::move(file)) {}
  // Lays it out, unless an equal one lies there; strings as the numbers of the package's texts.
  StoredWeight store(const Tensor& t);
};

struct EmitOptions {
  bool reuse = true;
  std::function<void(ir::ValueId)> read_last;   // called for a constant of the graph that is not read again
};

// One program: symbols, ports, buffers, tasks, segments; its weights go to the shared ones. tensors: a name for
// each buffer.
Status emit(const ir::Graph& g, const plan::Placement& placement, Lowered& lowered, const EmitOptions& options, Shared& shared,
            size_t program, std::vector<std::string>& tensors);

}  // namespace ge::lower
