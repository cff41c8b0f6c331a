// State: tensors that live from run to run (a KV cache), of one sequence or of one batch of them. Address space is
// reserved for the whole capacity and committed as the length grows, so addresses never move and appending copies
// nothing. Any Model whose states are of the same names, types and sizes can run on it: a prefill and a decode program
// share one.
//
// One call at a time: a second one while a run (or a save, a fork ...) is in flight gets an error.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "om/program.h"
#include "runtime/binding.h"
#include "tensor/dtype.h"

namespace ge::runtime {

// Memory for one tensor of a State: rows of the axis that grows, for each index of the axes before it.
class StateMemory {
 public:
  StateMemory() = default;
  ~StateMemory();
  StateMemory(StateMemory&&) noexcept;
  StateMemory& operator=(StateMemory&&) = delete;

  // Address space for `blocks` pieces of `capacity` rows. Gives back what it had when that is of another size.
  Status reserve(int64_t blocks, int64_t capacity, int64_t row_bytes);
  // The first rows of every piece can be read and written from now on.
  Status commit(int64_t rows);
  // Zeros again, and the memory back to the system.
  void clear();
  std::byte* data() const { return base_; }
  int64_t reserved() const { return static_cast<int64_t>(size_); }
  int64_t resident() const;          // bytes of pages that hold something

 private:
  void release();
  bool cut();
  std::byte* base_ = nullptr;
  size_t size_ = 0;                  // whole pages
  int64_t blocks_ = 0, capacity_ = 0, row_ = 0;
  int64_t rows_ = 0;                 // committed
  bool cut_ = false;                 // by pieces
};

class State;

// The States of a model that are at hand, forks included.
class StateList {
 public:
  void add(const std::shared_ptr<State>& state);
  std::vector<std::shared_ptr<State>> all() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<State>> states_;
};

class State {
 public:
  // For the states of a model. It, and what is forked from it, is in the list as long as it lives.
  static Result<std::shared_ptr<State>> make(const om::ModelT& model, std::shared_ptr<StateList> list);

  // Empty again; its memory goes back to the system.
  Status reset();
  // Entries along the axis that grows of the first tensor that has one; tensors may differ, see lengths().
  int64_t length() const;
  // The name, and what it holds now, of each tensor.
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes() const;
  // Names with lengths along the axis that grows (of those that have one).
  std::vector<std::pair<std::string, int64_t>> lengths() const;
  // Another State with the same content, whose fate is its own from then on.
  Result<std::shared_ptr<State>> fork() const;
  Result<std::vector<std::byte>> to_bytes() const;
  Status from_bytes(std::span<const std::byte> bytes);
  Status save(const std::string& path) const;
  Status load(const std::string& path);
  int64_t committed() const;         // bytes of memory held
  int64_t reserved() const;          // bytes of address space
  int64_t row_bytes() const;         // of all tensors: what one more entry takes

  struct Entry {
    std::string name;
    DType dtype = DType::none;
    std::vector<int64_t> capacity;   // -1 in front: as many as the first run brings
    int axis = -1;
    std::vector<int64_t> dims;       // what it holds; empty: nothing yet, and of no batch
    StateMemory memory;
  };

 private:
  friend class StateLease;
  State() = default;
  std::vector<Entry> entries_;
  std::shared_ptr<StateList> list_;
  mutable std::mutex mutex_;         // guards the entries' sizes, not their content
  mutable std::atomic<bool> busy_{false};
};

// The use of a State by one run: finds the tensors of the program's ports, gives them memory for what the run writes,
// and says at the end what they hold.
class StateLease {
 public:
  StateLease() = default;
  ~StateLease() { release(); }
  StateLease(const StateLease&) = delete;
  StateLease& operator=(const StateLease&) = delete;

  Status take(State& state, const om::ModelT& model, const om::ProgramT& program);
  // What each port's tensor holds; empty where it holds nothing of any size yet.
  const StateDims& dims() const { return dims_; }
  // Memory for the binding's ports. Errors leave the lengths as they were.
  Status prepare(const Binding& binding);
  std::byte* address(size_t port) const { return entries_[port]->memory.data(); }
  // The run has succeeded: ports hold these sizes (empty: as before).
  void finish(const StateDims& out);
  // The run has failed on its way: what is written anew holds nothing. What grows is as before.
  void fail(const om::ProgramT& program);
  void release();

 private:
  State* state_ = nullptr;
  std::vector<State::Entry*> entries_;   // of the ports
  StateDims dims_;
  bool prepared_ = false;
};

}  // namespace ge::runtime
