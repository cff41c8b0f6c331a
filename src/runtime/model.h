// Model: an opened .om file, ready to run. Holds one Package, a bounded cache of Bindings, and the
// Contexts that are not in flight. Any number of threads may call one Model at the same time: each call
// takes a Context of its own, and no lock is held while a run is going on.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "om/program.h"
#include "runtime/binding.h"
#include "runtime/context.h"
#include "runtime/output_memory.h"
#include "runtime/state.h"

namespace ge::runtime {

struct LoadOptions {
  int threads = 0;            // cap of one run; 0: what the pool has
  bool check_weights = false; // verify the checksums of the weights too
  bool huge_pages = false;    // a private copy of the weights in huge pages
};

struct Memory {
  int64_t weights = 0;        // mapped, shared between processes (private with huge pages)
  int64_t arena = 0;          // of all Contexts at hand
  int64_t state = 0;          // of all States at hand that this Model made, and of their forks
  int64_t pool = 0;           // values whose sizes data decide, and outputs that the caller has let go
  int contexts = 0;
  int64_t state_reserved = 0; // address space of the same
  int64_t state_token = 0;    // what one more entry of a State takes, with one sequence; 0 without states
};

class Model {
 public:
  static Result<std::shared_ptr<Model>> open(const std::string& path, const LoadOptions& options = {});
  static Result<std::shared_ptr<Model>> open(std::span<const std::byte> bytes, const LoadOptions& options = {});
  static Result<std::shared_ptr<Model>> from(om::Package package, const LoadOptions& options = {});

  const om::Package& package() const { return package_; }
  const om::ProgramT& program() const { return *package_.model.programs[static_cast<size_t>(entry_)]; }
  int threads() const { return threads_; }

  // The Binding for these shapes, from the cache or made now; of the first segment where there are several.
  // states: what the state of the run will hold; none given: nothing.
  Result<std::shared_ptr<const Binding>> bind(std::span<const std::vector<int64_t>> input_dims, const StateDims& states = {});
  // An empty State for runs of this Model, and of others that have the same states.
  Result<std::shared_ptr<State>> new_state();
  // The State of runs that are given none. Null where the Model has no states.
  Result<std::shared_ptr<State>> default_state();
  bool has_states() const { return !program().states.empty(); }
  // What the program's states hold in `state` (null: in the default one).
  Result<StateDims> state_dims(State* state);
  // inputs[i] and outputs[i] point to dense data of the Binding's sizes.
  Status run(const std::shared_ptr<const Binding>& binding, std::span<const void* const> inputs,
             std::span<void* const> outputs, Profile* profile = nullptr, State* state = nullptr);
  // Any model, sizes that depend on data and values that are no tensors included. Inputs: dense, of the ports'
  // types, alive until this returns; outputs have memory of their own.
  // texts: of the run, where there are strings; outputs of them are numbers of these.
  Result<std::vector<Value>> run(std::span<const Value> inputs, Profile* profile = nullptr, Texts* texts = nullptr, State* state = nullptr);
  Texts texts() const { return {package_.model.texts, text_numbers_}; }
  // False: outputs' sizes may depend on data, or values are no tensors.
  bool plain() const { return plain_; }
  // Whether it takes or gives strings, which buffers of the caller cannot hold.
  bool has_strings() const { return strings_; }
  Memory memory() const;
  void trim();                // frees idle Contexts and memory of former outputs
  ~Model() { output_memory_->trim(); }

 private:
  explicit Model(om::Package package) : package_(std::move(package)) {}
  Status run_plain(const std::shared_ptr<const Binding>& binding, std::span<const void* const> inputs,
                   std::span<void* const> outputs, Profile* profile, StateLease& states);
  Status run_values(std::span<const Value> inputs, Sink& outputs, Profile* profile, Texts* texts, StateLease& states);
  Status lease(State* state, StateLease& states);
  std::unique_ptr<Context> take(const std::shared_ptr<const Binding>& binding);
  om::Package package_;
  TextNumbers text_numbers_;
  int entry_ = 0;
  int threads_ = 1;
  mutable std::mutex mutex_;  // guards the two lists below, never held during a run
  std::list<std::shared_ptr<const Binding>> bindings_;  // most recent first, at most kBindings
  std::vector<std::unique_ptr<Context>> idle_;
  int contexts_ = 0;
  int64_t arena_ = 0, pool_ = 0;
  std::shared_ptr<OutputMemory> output_memory_ = std::make_shared<OutputMemory>();
  bool plain_ = true, strings_ = false;
  std::shared_ptr<State> default_state_;
  std::shared_ptr<StateList> states_ = std::make_shared<StateList>();   // that it made, and their forks
  std::unique_ptr<BindingCache> segments_;              // of programs that are not plain
  static constexpr size_t kBindings = 64;
};

}  // namespace ge::runtime
