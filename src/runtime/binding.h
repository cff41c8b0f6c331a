// Binding: a Program for one set of input sizes: every size, view, chunk count and offset as numbers.
// Immutable; made once for a shape and kept by the Model in a bounded cache. Making one validates what
// the file says against these sizes: afterwards running cannot leave a buffer.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "arena/arena.h"
#include "kernels/kernel.h"
#include "om/program.h"

namespace ge::runtime {

struct BindOptions {
  int threads = 1;                          // scratch is planned for so many workers
  arena::Options plan;                      // used when the file brings no plan for these sizes
};

struct BoundView {
  int32_t buffer = -1;
  int64_t byte_offset = 0;                  // of the view inside its buffer
};

struct BoundTask {
  int32_t task = 0;                         // index in the Program
  const kernels::Kernel* kernel = nullptr;
  const om::CallT* call = nullptr;
  kernels::Work work;
  int32_t view0 = 0;                        // first of its views (inputs, then outputs)
  int32_t inputs = 0, outputs = 0;
  int32_t int0 = 0;                         // its ints in Binding::ints
  int64_t shared_offset = 0, scratch_offset = 0;  // in the arena; scratch: one piece a worker
};

class Binding {
 public:
  static Result<std::shared_ptr<const Binding>> make(const om::Package& package, const om::ProgramT& program,
                                                     std::span<const int64_t> symbols, const BindOptions& options);

  const om::ProgramT* program = nullptr;
  std::vector<int64_t> symbols, exprs;
  std::vector<int64_t> buffer_bytes;
  std::vector<int64_t> buffer_offset;       // in the arena, else -1
  std::vector<BoundTask> tasks;
  std::vector<BoundView> placed;            // parallel to views
  std::vector<View> views;                  // data null
  std::vector<int64_t> ints;
  std::vector<std::vector<int64_t>> input_dims, output_dims;
  std::vector<arena::Interval> intervals;   // what is planned: buffers of the arena, then scratch of tasks
  int64_t arena = 0;                        // bytes, scratch for all threads included
  int64_t lower_bound = 0;
  int64_t scratch_peak = 0;                 // the largest task's scratch for all threads
  bool proved = false;
  int threads = 1;
  double plan_ms = 0;
  kernels::Call call(const BoundTask& task) const;   // without addresses
  // Floating-point operations of a task, and of all: what kernels count (Kernel::operations), else 0.
  double operations(const BoundTask& task) const;
  double operations() const;
  // The offsets of this binding as the file would keep them.
  std::unique_ptr<om::PlanT> plan() const;

 private:
  Status bind_buffers(const om::Package& package);
  Status bind_task(const om::Package& package, int32_t index);
  Status bind_view(const om::ViewT& v, bool written, const std::string& where);
  Status place(const BindOptions& options);
  std::vector<int64_t> pool_;               // dims and strides of all views
  std::vector<size_t> pool_at_;             // where each view's dims start, until pool_ is complete
};

// Symbol values from input shapes; errors name the input, what it got and what is allowed.
Result<std::vector<int64_t>> bind_symbols(const om::ProgramT& program,
                                          std::span<const std::vector<int64_t>> input_dims);

}  // namespace ge::runtime
