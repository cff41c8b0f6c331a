// What the planner works on: buffers without the empty ones, in units, with time cut into sections.
// Two buffers overlap in time exactly when they share a section. Private to the folder.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "arena/arena.h"

namespace ge::arena {

struct Item {
  int32_t lo, hi;  // first and last section, both included
  int64_t size;    // in units, like all that follows
  int64_t align;
  int64_t fixed;  // or -1
  int32_t id;     // place in the caller's list
};

struct Units {
  std::vector<Item> items;  // by lo, then id
  int32_t sections = 0;
  int64_t unit = 1;
};

Units to_units(std::span<const Interval> intervals);

// Renumbers the sections of a subset so that none is without its own maximal set of buffers; sorts
// the items by lo. Returns the number of sections.
int32_t compress(std::vector<Item>& items);

// Peak load, at least the end of every fixed buffer.
int64_t bound_of(std::span<const Item> items, int32_t sections);

inline int64_t align_up(int64_t x, int64_t align) {
  return align == 1 ? x : (x + align - 1) / align * align;
}

}  // namespace ge::arena
