// Binding: one segment of a Program for one set of sizes: every size, view, chunk count and offset as numbers.
// Immutable; made once for a shape and kept by the Model in a bounded cache. Making one validates what
// the file says against these sizes: afterwards running cannot leave a buffer.
//
// Most programs have one segment, all of whose sizes follow from the inputs. Where sizes depend on data, a
// later segment is bound when the tasks before it have given its symbols their values; it has an arena of its
// own, for the buffers that it touches first.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "arena/arena.h"
#include "kernels/kernel.h"
#include "om/program.h"

namespace ge::runtime {

// What states hold, by a program's ports; empty: nothing of any size yet.
using StateDims = std::vector<std::vector<int64_t>>;

class Binding;

struct BindOptions {
  int threads = 1;                          // scratch is planned for so many workers
  StateDims states;                         // recorded: what the symbols were taken from
  arena::Options plan;                      // used when the file brings no plan for these sizes
  // Another one of the program and segment: what was prepared and planned there for the same sizes is taken over.
  std::shared_ptr<const Binding> like;
};

struct BoundState {
  std::vector<int64_t> capacity;            // its dims in memory
  std::vector<int64_t> in, out;             // out: empty where it stays, or is not known yet
  int64_t bytes = 0;
  int64_t rows = 0;                         // along the axis that grows: so many may be read and written
  int64_t row = 0, block = 0;               // bytes of one, and of all that the capacity has; 0 where none grows
};

struct BoundView {
  int32_t buffer = -1;
  int64_t byte_offset = 0;                  // of the view inside its buffer
  bool open = false;                        // an executor task's operand whose sizes only the run tells
};

struct BoundTask {
  int32_t task = 0;                         // index in the Program
  const kernels::Kernel* kernel = nullptr;
  const om::CallT* call = nullptr;
  kernels::Work work;                       // once: its outputs are among what is kept
  int32_t view0 = 0;                        // first of its views (inputs, then outputs)
  int32_t inputs = 0, outputs = 0;
  int32_t int0 = 0;                         // its ints in Binding::ints
  int64_t shared_offset = 0, scratch_offset = 0;  // in the arena; scratch: one piece a worker
};

class Binding {
 public:
  static Result<std::shared_ptr<const Binding>> make(const om::Package& package, const om::ProgramT& program,
                                                     std::span<const int64_t> symbols, const BindOptions& options, int segment = 0);

  const om::ProgramT* program = nullptr;
  int segment = 0;
  std::vector<int64_t> symbols, exprs;
  std::vector<int64_t> buffer_bytes;        // om::kUnknown while it depends on data
  std::vector<int64_t> buffer_offset;       // in the arena, else -1
  std::vector<BoundTask> tasks;
  std::vector<BoundView> placed;            // parallel to views
  std::vector<View> views;                  // data null
  std::vector<int64_t> ints;
  std::vector<BoundState> states;           // of the program's ports
  StateDims state_dims;                     // that it was made for
  std::vector<std::vector<int64_t>> input_dims, output_dims;  // output sizes may be om::kUnknown, see open_outputs
  bool open_outputs = false;                // an output's sizes are not known yet
  std::vector<arena::Interval> intervals;   // what is planned: buffers of the arena, then scratch of tasks
  std::vector<int64_t> offsets;             // where each of them lies behind `kept`
  int64_t kept = 0;                         // bytes at the arena's start: what tasks write once for all runs
  int64_t arena = 0;                        // bytes, `kept` and scratch for all threads included
  int64_t lower_bound = 0;
  int64_t scratch_peak = 0;                 // the largest task's scratch for all threads
  bool proved = false;
  int threads = 1;
  double plan_ms = 0;
  kernels::Call call(const BoundTask& task) const;   // without addresses
  const BoundTask* bound(int32_t task) const;        // of the program; null where it has no part
  struct Life {
    int32_t first = -1, last = -1;          // program's tasks that touch a buffer; -1: none does in these runs
  };
  Life life(size_t buffer) const;
  // Floating-point operations of a task, and of all: what kernels count (Kernel::operations), else 0.
  double operations(const BoundTask& task) const;
  double operations() const;
  // The offsets of this binding as the file would keep them.
  std::unique_ptr<om::PlanT> plan() const;

 private:
  Status choose_calls();
  Status bind_states(const om::Package& package);
  Status bind_state(const om::StatePortT& port, const om::StateT& state);
  Status bind_buffers(const om::Package& package);
  bool within_rows(const BoundState& s, int64_t offset, std::span<const int64_t> dims, std::span<const int64_t> strides, int64_t element) const;
  Status bind_task(const om::Package& package, int32_t index);
  Status bind_view(const om::ViewT& v, bool written, bool executor, const std::string& where);
  bool starts_here(const om::BufferT& b) const;
  void place_kept(const om::Package& package);
  Status prepare_task(size_t t, const Binding* like);
  Status place(const om::Package& package, const BindOptions& options);
  std::vector<const om::CallT*> chosen_;    // of each task of the program; null: it has no part
  std::vector<Life> touched_;               // of each buffer; empty: as the file says, as every task has a part
  std::vector<int64_t> pool_;               // dims and strides of all views
  std::vector<size_t> pool_at_;             // where each view's dims start, until pool_ is complete
};

// Symbol values from input shapes; errors name the input, what it got and what is allowed.
// states: what the program's states hold; none given: nothing.
Result<std::vector<int64_t>> bind_symbols(const om::ProgramT& program,
                                          std::span<const std::vector<int64_t>> input_dims, const StateDims& states = {});

// Runs by the task list alone: one segment, plain kernels, tensors of known rank. Others need a Frame.
bool is_plain(const om::Package& package, const om::ProgramT& program);

}  // namespace ge::runtime
