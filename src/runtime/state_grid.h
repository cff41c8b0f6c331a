// How a State's tensor lies in its memory, and the right to work on it. Private to src/runtime/state*.cc.
#pragma once

#include "runtime/state.h"

namespace ge::runtime {

Error state_in_use();

// Held while something works on the content.
class Busy {
 public:
  explicit Busy(std::atomic<bool>& flag) : flag_(flag), held_(!flag.exchange(true, std::memory_order_acquire)) {}
  ~Busy() {
    if (held_) flag_.store(false, std::memory_order_release);
  }
  explicit operator bool() const { return held_; }

 private:
  std::atomic<bool>& flag_;
  bool held_;
};

// Pieces of rows: those of one piece follow one another.
struct Grid {
  int64_t blocks = 1, capacity = 1, row = 1;   // row in bytes
};
Grid grid_of(const State::Entry& e, std::span<const int64_t> capacity);
// The capacity, for as many sequences as dims have.
std::vector<int64_t> memory_dims(const State::Entry& e, std::span<const int64_t> dims);
Status reserve(State::Entry& e, std::span<const int64_t> dims);
int64_t rows_in(const State::Entry& e, std::span<const int64_t> dims);
// Nothing; of a state that always holds all of its dims: zeros.
Status hold_zeros(State::Entry& e);

// Calls f(offset in memory, bytes) for the rows that are held, piece by piece.
template <class F>
void for_pieces(const State::Entry& e, F f) {
  if (e.dims.empty()) return;
  Grid g = grid_of(e, memory_dims(e, e.dims));
  int64_t bytes = rows_in(e, e.dims) * g.row;
  for (int64_t b = 0; b < g.blocks && bytes > 0; ++b) f(b * g.capacity * g.row, bytes);
}

}  // namespace ge::runtime
