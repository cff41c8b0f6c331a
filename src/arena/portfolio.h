// The portfolio: many greedy passes over one part of a problem, the best kept. Private to the
// folder.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "arena/greedy.h"
#include "arena/problem.h"

namespace ge::arena {

// Beyond this many buffers a tail of small ones is split off, and placing again and again is too
// slow.
constexpr size_t kLarge = 4096;

// A part that can be planned on its own, on top of what lies below `base`.
struct Part {
  std::vector<Item> items;  // by lo
  int32_t sections = 0;
  int64_t base = 0;
  int64_t bound = 0;
  std::vector<int64_t> offset;  // the best so far, without base
  int64_t arena = kNoLimit;

  int64_t top() const { return base + arena; }
  bool keep(int64_t new_arena, std::vector<int64_t>& new_offset) {
    if (new_arena >= arena) return false;
    arena = new_arena;
    offset.swap(new_offset);
    return true;
  }
};

// A first plan, near-linear, whatever the budget.
void first_plan(Part& part, int64_t& steps);
// Improves the plan until its arena is at most `target` or `steps` reaches `budget`.
void try_orders(Part& part, int64_t target, int64_t budget, int64_t& steps);
// Moves what sticks out to the front of the order, again and again.
void reorder(Part& part, int64_t target, int64_t budget, int64_t& steps);

}  // namespace ge::arena
