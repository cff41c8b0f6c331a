// The judge of plans: written from the definition, with nothing of the planner in it.
#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "arena/arena.h"
#include "base/text.h"

namespace ge::arena {
namespace {

constexpr size_t kPairwise = 64;

std::string describe(std::span<const Interval> intervals, std::span<const int64_t> offset,
                     size_t i) {
  return format("buffer {} (steps {}..{}, {} bytes at {})", i, intervals[i].first, intervals[i].last,
                intervals[i].size, offset[i]);
}

Verdict clash(std::span<const Interval> intervals, std::span<const int64_t> offset, size_t a,
              size_t b) {
  if (a > b) std::swap(a, b);
  return no(format("{} and {} share memory while both are alive", describe(intervals, offset, a),
                   describe(intervals, offset, b)));
}

Verdict check_each(std::span<const Interval> intervals, std::span<const int64_t> offset,
                   int64_t arena) {
  for (size_t i = 0; i < intervals.size(); ++i) {
    const Interval& v = intervals[i];
    if (v.size < 0 || v.first > v.last || v.align <= 0)
      return no(format("buffer {} is malformed: steps {}..{}, size {}, alignment {}", i, v.first,
                       v.last, v.size, v.align));
    if (offset[i] < 0 || offset[i] > arena || v.size > arena - offset[i])
      return no(format("{} does not lie in the arena of {} bytes", describe(intervals, offset, i),
                       arena));
    if (offset[i] % v.align != 0)
      return no(format("{} is not aligned to {}", describe(intervals, offset, i), v.align));
    if (v.fixed >= 0 && offset[i] != v.fixed)
      return no(format("{} has to lie at {}", describe(intervals, offset, i), v.fixed));
  }
  return yes();
}

Verdict check_pairs(std::span<const Interval> v, std::span<const int64_t> offset) {
  for (size_t i = 0; i < v.size(); ++i) {
    for (size_t j = i + 1; j < v.size(); ++j) {
      if (v[i].size == 0 || v[j].size == 0) continue;
      if (v[i].last < v[j].first || v[j].last < v[i].first) continue;
      if (offset[i] + v[i].size <= offset[j] || offset[j] + v[j].size <= offset[i]) continue;
      return clash(v, offset, i, j);
    }
  }
  return yes();
}

// Runs through time with the buffers alive in a map by offset. As long as the plan is sound they
// are disjoint, so a newcomer has only its two neighbours in memory to fear.
Verdict check_sweep(std::span<const Interval> v, std::span<const int64_t> offset) {
  struct Event {
    int64_t time;
    bool start;
    size_t buffer;
  };
  std::vector<Event> events;
  for (size_t i = 0; i < v.size(); ++i) {
    if (v[i].size == 0) continue;
    events.push_back({v[i].first, true, i});
    events.push_back({int64_t{v[i].last} + 1, false, i});
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.time != b.time ? a.time < b.time : a.start < b.start;
  });
  std::map<int64_t, size_t> alive;
  for (const Event& e : events) {
    size_t i = e.buffer;
    if (!e.start) {
      alive.erase(offset[i]);
      continue;
    }
    auto above = alive.lower_bound(offset[i]);
    if (above != alive.end() && above->first < offset[i] + v[i].size)
      return clash(v, offset, i, above->second);
    if (above != alive.begin()) {
      size_t below = std::prev(above)->second;
      if (offset[below] + v[below].size > offset[i]) return clash(v, offset, i, below);
    }
    alive.emplace(offset[i], i);
  }
  return yes();
}

}  // namespace

Verdict validate(std::span<const Interval> intervals, std::span<const int64_t> offset,
                 int64_t arena) {
  if (offset.size() != intervals.size())
    return no(format("{} buffers but {} offsets", intervals.size(), offset.size()));
  if (Verdict each = check_each(intervals, offset, arena); !each) return each;
  return intervals.size() <= kPairwise ? check_pairs(intervals, offset)
                                       : check_sweep(intervals, offset);
}

}  // namespace ge::arena
