#include "runtime/state.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "runtime/state_grid.h"
#include "runtime/value.h"

namespace ge::runtime {
namespace {

// What a state holds at first, where the number of sequences is known: no entries, or zeros.
std::vector<int64_t> initial(const State::Entry& e) {
  if (!e.capacity.empty() && e.capacity[0] < 0) return {};
  auto dims = e.capacity;
  if (e.axis >= 0) dims[static_cast<size_t>(e.axis)] = 0;
  return dims;
}

}  // namespace

Error state_in_use() {
  return error(code::kRunFailed, "The state is in use by another call.", "two calls on one state would write over one another", "wait for the first one, or give each sequence a state of its own (new_state, fork)");
}

Grid grid_of(const State::Entry& e, std::span<const int64_t> capacity) {
  Grid g;
  g.row = size_of(e.dtype);
  for (size_t i = 0; i < capacity.size(); ++i) {
    auto axis = static_cast<size_t>(e.axis);
    int64_t& part = e.axis < 0 || i > axis ? g.row : i == axis ? g.capacity : g.blocks;
    if (__builtin_mul_overflow(part, capacity[i], &part)) part = INT64_MAX;
  }
  return g;
}

std::vector<int64_t> memory_dims(const State::Entry& e, std::span<const int64_t> dims) {
  auto out = e.capacity;
  if (!out.empty() && out[0] < 0) out[0] = dims[0];
  return out;
}

Status reserve(State::Entry& e, std::span<const int64_t> dims) {
  Grid g = grid_of(e, memory_dims(e, dims));
  return e.memory.reserve(g.blocks, g.capacity, g.row).context("state " + e.name);
}

int64_t rows_in(const State::Entry& e, std::span<const int64_t> dims) { return dims.empty() ? 0 : e.axis < 0 ? 1 : dims[static_cast<size_t>(e.axis)]; }

Status hold_zeros(State::Entry& e) {
  e.dims = initial(e);
  if (e.dims.empty()) return ok();
  GE_RETURN_IF_ERROR(reserve(e, e.dims));
  return e.memory.commit(rows_in(e, e.dims));
}

void StateList::add(const std::shared_ptr<State>& state) {
  std::lock_guard lock(mutex_);
  std::erase_if(states_, [](auto& held) { return held.expired(); });
  states_.push_back(state);
}

std::vector<std::shared_ptr<State>> StateList::all() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<State>> out;
  for (auto& held : states_)
    if (auto s = held.lock()) out.push_back(std::move(s));
  return out;
}

Result<std::shared_ptr<State>> State::make(const om::ModelT& model, std::shared_ptr<StateList> list) {
  auto s = std::shared_ptr<State>(new State());
  s->list_ = std::move(list);
  for (auto& t : model.states) {
    Entry e;
    e.name = t->name;
    e.dtype = static_cast<DType>(t->dtype);
    e.capacity = t->dims;
    e.axis = t->axis;
    GE_RETURN_IF_ERROR(hold_zeros(e));
    s->entries_.push_back(std::move(e));
  }
  s->list_->add(s);
  return s;
}

Status State::reset() {
  Busy busy(busy_);
  if (!busy) return state_in_use();
  std::lock_guard lock(mutex_);
  for (auto& e : entries_) {
    e.memory.clear();
    GE_RETURN_IF_ERROR(hold_zeros(e));
  }
  return ok();
}

int64_t State::length() const {
  std::lock_guard lock(mutex_);
  for (auto& e : entries_)
    if (e.axis >= 0) return rows_in(e, e.dims);
  return 0;
}

std::vector<std::pair<std::string, std::vector<int64_t>>> State::shapes() const {
  std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, std::vector<int64_t>>> out;
  for (auto& e : entries_) out.push_back({e.name, e.dims});
  return out;
}

std::vector<std::pair<std::string, int64_t>> State::lengths() const {
  std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, int64_t>> out;
  for (auto& e : entries_)
    if (e.axis >= 0) out.push_back({e.name, rows_in(e, e.dims)});
  return out;
}

int64_t State::committed() const {
  std::lock_guard lock(mutex_);
  int64_t sum = 0;
  for (auto& e : entries_) sum += e.memory.resident();
  return sum;
}

int64_t State::reserved() const {
  std::lock_guard lock(mutex_);
  int64_t sum = 0;
  for (auto& e : entries_) sum += e.memory.reserved();
  return sum;
}

int64_t State::row_bytes() const {
  std::lock_guard lock(mutex_);
  int64_t sum = 0;
  for (auto& e : entries_) {
    if (e.axis < 0) continue;
    std::vector<int64_t> dims = e.capacity;
    if (!dims.empty() && dims[0] < 0) dims[0] = e.dims.empty() ? 1 : e.dims[0];
    Grid g = grid_of(e, dims);
    sum += g.blocks * g.row;
  }
  return sum;
}

Result<std::shared_ptr<State>> State::fork() const {
  Busy busy(busy_);
  if (!busy) return state_in_use();
  auto s = std::shared_ptr<State>(new State());
  s->list_ = list_;
  for (auto& e : entries_) {
    Entry copy;
    copy.name = e.name, copy.dtype = e.dtype, copy.capacity = e.capacity, copy.axis = e.axis, copy.dims = e.dims;
    if (!e.dims.empty()) {
      GE_RETURN_IF_ERROR(reserve(copy, e.dims));
      GE_RETURN_IF_ERROR(copy.memory.commit(rows_in(e, e.dims)));
      for_pieces(e, [&](int64_t at, int64_t bytes) { std::memcpy(copy.memory.data() + at, e.memory.data() + at, static_cast<size_t>(bytes)); });
    }
    s->entries_.push_back(std::move(copy));
  }
  list_->add(s);
  return s;
}

// ---- StateLease

Status StateLease::take(State& state, const om::ModelT& model, const om::ProgramT& program) {
  if (state.busy_.exchange(true, std::memory_order_acquire)) return state_in_use();
  state_ = &state;
  for (auto& port : program.states) {
    auto& t = *model.states[static_cast<size_t>(port->state)];
    auto it = std::find_if(state.entries_.begin(), state.entries_.end(), [&](auto& e) { return e.name == t.name; });
    auto differs = [&](std::string what) {
      return error(code::kInputMismatch, format("The state does not fit the model: {}.", what), "it was made for another model", "compile both with the same --state, or take a state of this model");
    };
    if (it == state.entries_.end()) return differs(format("it has no tensor '{}'", t.name));
    if (it->dtype != static_cast<DType>(t.dtype)) return differs(format("'{}' is {}, the model takes {}", t.name, name(it->dtype), name(static_cast<DType>(t.dtype))));
    if (it->capacity != t.dims) return differs(format("'{}' has capacity {}, the model takes {}", t.name, shape_text(it->capacity), shape_text(t.dims)));
    if (it->axis != t.axis) return differs(format("'{}' grows along axis {}, the model's along {}", t.name, it->axis, t.axis));
    entries_.push_back(&*it);
    dims_.push_back(it->dims);
  }
  return ok();
}

Status StateLease::prepare(const Binding& binding) {
  std::lock_guard lock(state_->mutex_);
  prepared_ = true;
  for (size_t i = 0; i < entries_.size(); ++i) {
    auto& b = binding.states[i];
    auto& e = *entries_[i];
    // Sizes that follow from others.
    if (!b.in.empty() && e.axis >= 0 && (e.dims.empty() ? rows_in(e, b.in) != 0 : e.dims != b.in))
      return error(code::kInputMismatch, format("State '{}' holds {}, for inputs of these sizes it would be {}.", e.name, shape_text(e.dims), shape_text(b.in)), "states and inputs of one run go together", "feed sizes that fit, or reset() the state");
    // Another number of sequences, where what was held is not read.
    if (!e.dims.empty() && memory_dims(e, e.dims) != b.capacity) e.dims.clear();
    GE_RETURN_IF_ERROR(reserve(e, b.capacity));
    GE_RETURN_IF_ERROR(e.memory.commit(e.axis < 0 ? 1 : b.rows).context("state " + e.name));
  }
  return ok();
}

void StateLease::finish(const StateDims& out) {
  std::lock_guard lock(state_->mutex_);
  for (size_t i = 0; i < entries_.size(); ++i)
    if (!out[i].empty()) entries_[i]->dims = out[i];
}

void StateLease::fail(const om::ProgramT& program) {
  if (!prepared_) return;   // nothing was written
  std::lock_guard lock(state_->mutex_);
  for (size_t i = 0; i < entries_.size(); ++i)
    if (program.states[i]->in.empty() && !program.states[i]->out.empty()) entries_[i]->dims = initial(*entries_[i]);
}

void StateLease::release() {
  if (state_) state_->busy_.store(false, std::memory_order_release);
  state_ = nullptr;
}

}  // namespace ge::runtime
