// Greedy placement: one pass over the buffers in some order. Two engines: a sweep through time over
// free holes (near-linear; the order is that of time), and placement in any order over an index of
// the conflicts (work in proportion to the conflicts). Private to the folder.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "arena/problem.h"

namespace ge::arena {

enum class Fit : uint8_t { first, best };

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// Places by start (or, mirrored, by end), each into the smallest hole that takes it. `longest`
// breaks ties of start by lifetime, else by size. Wants no fixed buffer. Returns the arena; offsets
// by item.
int64_t sweep(std::span<const Item> items, int32_t sections, bool mirrored, bool longest,
              std::vector<int64_t>& offset, int64_t& steps);

class Placer {
 public:
  // The items must be sorted by lo and outlive the Placer.
  Placer(std::span<const Item> items, int32_t sections);

  // Places in the given order (fixed buffers first, whatever the order says). Stops at the first
  // buffer that would end above `limit`, tells which in `culprit()`, and returns its end; else the
  // arena.
  int64_t place(std::span<const int32_t> order, Fit fit, int64_t limit,
                std::vector<int64_t>& offset, int64_t& steps);
  int32_t culprit() const { return culprit_; }
  // The steps of a full place(), about.
  int64_t cost() const { return 6 * pairs_ + 16 * static_cast<int64_t>(items_.size()); }
  int32_t degree(int32_t i) const { return degree_[i]; }

 private:
  struct Span {
    int64_t from, to;
  };
  void collect(int32_t i, const std::vector<int64_t>& offset, int64_t& steps);
  int64_t find(const Item& item, Fit fit) const;
  bool placed(int32_t i) const { return placed_[i >> 6] >> (i & 63) & 1; }

  std::span<const Item> items_;
  std::vector<int32_t> first_at_;  // first item whose lo is at least the section
  std::vector<int32_t> alive_,
      alive_begin_;  // for every kStride-th item: earlier ones alive at its lo
  std::vector<int32_t> degree_;
  std::vector<uint64_t> placed_;
  std::vector<Span> spans_;
  int64_t pairs_ = 0;  // that overlap in time
  int32_t culprit_ = -1;
};

}  // namespace ge::arena
