#include "arena/problem.h"

#include <algorithm>
#include <numeric>

namespace ge::arena {

int32_t compress(std::vector<Item>& items) {
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.lo != b.lo ? a.lo < b.lo : a.id < b.id; });
  std::vector<int32_t> ends;
  ends.reserve(items.size());
  for (const Item& item : items) ends.push_back(item.hi);
  std::sort(ends.begin(), ends.end());
  // A section is a run of starts with no end before the last of them: a maximal set of buffers.
  std::vector<int32_t> last_start;  // the greatest start of each section
  size_t ended = 0;
  bool fresh = true;
  for (Item& item : items) {
    while (ended < ends.size() && ends[ended] < item.lo) {
      ++ended;
      fresh = true;
    }
    if (fresh) last_start.push_back(item.lo);
    last_start.back() = item.lo;
    fresh = false;
    item.lo = static_cast<int32_t>(last_start.size()) - 1;
  }
  for (Item& item : items) {
    auto after = std::upper_bound(last_start.begin(), last_start.end(), item.hi);
    item.hi = static_cast<int32_t>(after - last_start.begin()) - 1;
  }
  return static_cast<int32_t>(last_start.size());
}

Units to_units(std::span<const Interval> intervals) {
  Units out;
  int64_t unit = 0;
  for (const Interval& v : intervals) {
    if (v.size <= 0) continue;
    unit = std::gcd(unit, std::max<int64_t>(v.align, 1));
    if (v.fixed > 0) unit = std::gcd(unit, v.fixed);
  }
  out.unit = std::max<int64_t>(unit, 1);
  for (size_t i = 0; i < intervals.size(); ++i) {
    const Interval& v = intervals[i];
    if (v.size <= 0) continue;
    out.items.push_back({v.first, std::max(v.first, v.last), (v.size + out.unit - 1) / out.unit,
                         std::max<int64_t>(v.align, 1) / out.unit,
                         v.fixed < 0 ? -1 : v.fixed / out.unit, static_cast<int32_t>(i)});
  }
  out.sections = compress(out.items);
  return out;
}

int64_t bound_of(std::span<const Item> items, int32_t sections) {
  std::vector<int64_t> load(static_cast<size_t>(sections) + 1, 0);
  int64_t bound = 0;
  for (const Item& item : items) {
    load[item.lo] += item.size;
    load[item.hi + 1] -= item.size;
    if (item.fixed >= 0) bound = std::max(bound, item.fixed + item.size);
  }
  int64_t now = 0;
  for (int32_t s = 0; s < sections; ++s) bound = std::max(bound, now += load[s]);
  return bound;
}

}  // namespace ge::arena
