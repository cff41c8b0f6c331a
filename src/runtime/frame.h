// Frame: one activation of a Program that is more than a task list of known sizes. Binds and runs segment by
// segment, reads the sizes that data decide in between, and runs executor tasks (control flow, values that
// are no tensors) through host functions. Frames of sub-programs hang below the task that runs them and are
// used again by every iteration.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/binding_cache.h"
#include "runtime/pool.h"
#include "runtime/profile.h"
#include "runtime/state.h"
#include "runtime/texts.h"
#include "runtime/value.h"

namespace ge::runtime {

// Where a program's outputs go. tensor() gives memory that the caller of it fills; value() takes one whole.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual Result<std::byte*> tensor(size_t output, DType t, std::span<const int64_t> dims) = 0;
  virtual Status value(size_t output, Value v) = 0;
};

// What all frames of a run share.
struct Execution {
  const om::Package& package;
  BindingCache& bindings;
  Blocks& blocks;
  Team& team;
  Profile* profile = nullptr;        // of the outermost program's tasks
  Texts* texts = nullptr;            // of a run that has strings
  StateLease* states = nullptr;      // of the outermost program
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
};

class TaskRun;

class Frame {
 public:
  explicit Frame(int program) : program_(program) {}
  // inputs: tensors of the ports' types (sizes are checked here), dense; alive until this returns.
  Status run(Execution& x, std::span<const Value> inputs, Sink& sink);

 private:
  friend class TaskRun;
  struct Segment {
    std::shared_ptr<const Binding> binding;
    std::vector<View> views;
    std::vector<kernels::Call> calls;
    std::shared_ptr<std::byte> block;      // its arena
    int keep = 0;                          // the last segment that reads from it
  };
  Status run_segment(int index);
  Status hand_on();
  Status attach(Segment& s);
  Status address(Segment& s, size_t view);
  Status run_task(Segment& s, size_t task);
  Status read_symbols(int index);
  Status read_symbol(const om::SymbolT& symbol, int64_t& value);
  void release(int after);
  Status end_states();
  // A sub-program has no states.
  bool outermost() const { return program_ == x_->package.model.entries[0]->program; }
  const om::ProgramT& program() const { return *x_->package.model.programs[static_cast<size_t>(program_)]; }

  int program_;
  Execution* x_ = nullptr;
  std::span<const Value> inputs_;
  Sink* sink_ = nullptr;
  std::vector<int64_t> symbols_;
  std::vector<Segment> segments_;
  std::vector<std::byte*> address_;        // of each buffer, once it is known
  std::vector<int64_t> address_bytes_;
  std::vector<Value> slots_;               // of each buffer whose value came whole
  enum class Slot : uint8_t { empty, held, gone };
  std::vector<Slot> filled_;               // whether slots_ hold one, or held it; none is made twice
  std::map<std::pair<int32_t, int>, std::unique_ptr<Frame>> children_;   // by task and sub-program
};

// One executor task in flight, as its host function sees it.
class TaskRun {
 public:
  TaskRun(Frame& f, Frame::Segment& s, const BoundTask& t) : frame_(f), segment_(s), task_(t) {}
  size_t inputs() const { return static_cast<size_t>(task_.inputs); }
  size_t outputs() const { return static_cast<size_t>(task_.outputs); }
  bool has(size_t i) const { return i < inputs() && at(i).buffer >= 0; }
  bool wants(size_t i) const { return i < outputs() && at(inputs() + i).buffer >= 0; }
  // Input i; borrowed where it lies in an arena.
  Result<Value> in(size_t i) const;
  Result<int64_t> integer(size_t i) const;           // of an integer or bool tensor with one element
  // The sizes that output i must have, when they are known already.
  bool known(size_t i) const { return wants(i) && !at(inputs() + i).open; }
  std::span<const int64_t> known_dims(size_t i) const { return view(inputs() + i).shape(); }
  DType out_type(size_t i) const;
  Value::Kind out_kind(size_t i) const;              // of an output that is open
  Result<std::byte*> out(size_t i, DType t, std::span<const int64_t> dims);
  Status give(size_t i, Value v);
  std::span<const int64_t> ints() const { return segment_.calls[index()].ints; }
  std::string_view text() const;                     // the call's blob
  size_t programs() const;
  const om::ProgramT& program(size_t k) const;
  Status run_program(size_t k, std::span<const Value> inputs, Sink& sink);
  Blocks& blocks() const { return frame_.x_->blocks; }
  Texts* texts() const { return frame_.x_->texts; }
  Error fail(std::string message) const;

 private:
  const BoundView& at(size_t operand) const { return segment_.binding->placed[static_cast<size_t>(task_.view0) + operand]; }
  const View& view(size_t operand) const { return segment_.views[static_cast<size_t>(task_.view0) + operand]; }
  size_t index() const { return static_cast<size_t>(&task_ - segment_.binding->tasks.data()); }
  Frame& frame_;
  Frame::Segment& segment_;
  const BoundTask& task_;
};

// The optional of a tensor or of a sequence.
Value::Kind optional_of(Value::Kind k);

// Host functions: what executor kernels do, by the kernel's name.
using HostFunction = Status (*)(TaskRun&);
struct RegisterHost {
  RegisterHost(std::string_view kernel, HostFunction f);
};
HostFunction find_host(std::string_view kernel);

}  // namespace ge::runtime
