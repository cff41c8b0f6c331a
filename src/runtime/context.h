// Context: one run in flight. Owns the arena (address space that grows to the largest Binding it served)
// and the operands of the Binding's tasks with their addresses filled in. Running a Binding that the
// Context served before calls no allocator.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/binding.h"
#include "runtime/frame.h"
#include "runtime/pool.h"
#include "runtime/profile.h"

namespace ge::runtime {

class Context {
 public:
  Context() = default;
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Runs all tasks. inputs and outputs: dense buffers of the Binding's sizes, aligned to their element.
  Status run(const std::shared_ptr<const Binding>& binding, std::span<const std::byte> weights,
             std::span<const void* const> inputs, std::span<void* const> outputs, Profile* profile, const StateLease* states = nullptr);
  // Runs a program of any kind; inputs as Frame::run takes them.
  Status run(const om::Package& package, int program, BindingCache& bindings, int threads,
             std::span<const Value> inputs, Sink& outputs, Profile* profile, Texts* texts, StateLease* states = nullptr);
  bool serves(const std::shared_ptr<const Binding>& b) const { return binding_ == b; }
  int64_t arena_bytes() const { return static_cast<int64_t>(arena_size_); }
  int64_t pool_bytes() const { return blocks_.bytes(); }
  void trim();  // gives the memory back to the system

 private:
  Status attach(const std::shared_ptr<const Binding>& binding, std::span<const std::byte> weights);
  std::shared_ptr<const Binding> binding_;
  std::vector<bool> kept_;        // of the Program's tasks: what they write once is there
  std::byte* arena_ = nullptr;
  size_t arena_size_ = 0;
  std::vector<View> views_;
  std::vector<kernels::Call> calls_;
  struct Patch {
    int32_t view;
    int32_t index;      // input, output or state number
    om::BufferKind kind;
    int64_t byte_offset;
  };
  std::vector<Patch> patches_;
  Blocks blocks_;                 // before the frame, whose values lie in it
  std::unique_ptr<Frame> frame_;
};

}  // namespace ge::runtime
