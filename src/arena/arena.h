// Arena planning: intervals of time with sizes in, offsets in one arena out. Pure and
// deterministic: the work is counted in steps, never in time, so that every machine gives the same
// answer. It knows no graph, no tensor and no file format but the planner's own CSV problems.
//
// Offsets count in units of the greatest common divisor of all alignments and fixed offsets; sizes
// are rounded up to that unit, in the arena and in the bound alike.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/verdict.h"

namespace ge::arena {

// A buffer, alive at the steps first..last, both included. An empty one (size 0) conflicts with
// nothing.
struct Interval {
  int32_t first = 0, last = 0;
  int64_t size = 0;
  int64_t align = 64;  // the offset is a multiple of it; any positive number
  int64_t fixed = -1;  // >= 0: the offset is given; the caller answers for its being possible
};

enum class Strategy : uint8_t {
  none = 0,    // every buffer has its own memory
  greedy = 1,  // a portfolio of orders
  search = 2,  // then improvement by reordering, then branch and bound
};

struct Options {
  Strategy strategy = Strategy::greedy;
  // A step is one neighbour of one buffer looked at: some 5 to 10 ns. A first plan comes in any
  // case.
  int64_t budget_steps = 50'000'000;
  // An arena of at most this many bytes is good enough: planning stops there.
  std::optional<int64_t> capacity;
};

struct Plan {
  std::vector<int64_t> offset;  // one for each interval
  int64_t arena = 0;            // the greatest offset + size
  int64_t lower_bound = 0;
  bool proved = false;  // no smaller arena exists
  int64_t steps = 0;
};

Plan plan(std::span<const Interval> intervals, const Options& options);

// The most bytes alive at one step; no arena can be smaller.
int64_t lower_bound(std::span<const Interval> intervals);

// Does the plan hold what it promises? Shares no code with the planner.
Verdict validate(std::span<const Interval> intervals, std::span<const int64_t> offset,
                 int64_t arena);

// `id,lower,upper,size[,alignment]` with half-open lifetimes, as the public planning problems have
// it. The columns may come in any order, more of them are passed over; alignment is 1 where none is
// given.
struct Problem {
  std::vector<std::string> ids;
  std::vector<Interval> intervals;
};
Result<Problem> read_csv(std::string_view text);

}  // namespace ge::arena
