#include "arena/arena.h"

#include <algorithm>

#include "arena/portfolio.h"
#include "arena/problem.h"
#include "arena/search.h"

namespace ge::arena {
namespace {

// How often buffers that outlive everything around them are laid at the bottom to split what
// remains.
constexpr int kMaxDepth = 16;

class Planner {
 public:
  Planner(std::span<const Interval> intervals, const Options& options)
      : intervals_(intervals), options_(options), units_(to_units(intervals)) {
    bound_ = bound_of(units_.items, units_.sections);
    target_ = bound_;
    if (options.capacity) target_ = std::max(target_, *options.capacity / units_.unit);
    offset_.assign(intervals.size(), 0);
  }

  Plan run() {
    for (size_t i = 0; i < intervals_.size(); ++i)
      offset_[i] = std::max<int64_t>(intervals_[i].fixed, 0);
    if (options_.strategy == Strategy::none) {
      stack();
    } else {
      split(std::move(units_.items), 0, 0);
      improve();
    }
    return finish();
  }

 private:
  void stack() {
    int64_t top = 0;
    for (const Item& v : units_.items)
      if (v.fixed >= 0) top = std::max(top, v.fixed + v.size);
    std::sort(units_.items.begin(), units_.items.end(),
              [](const Item& a, const Item& b) { return a.id < b.id; });
    for (const Item& v : units_.items) {
      if (v.fixed >= 0) continue;
      put(v, align_up(top, v.align));
      top = align_up(top, v.align) + v.size;
    }
  }

  void put(const Item& v, int64_t offset) { offset_[v.id] = offset * units_.unit; }

  // Cuts into parts that share no section, and those again after the buffers that live throughout
  // one are laid at its bottom, which costs nothing as long as nothing is fixed or aligned to more
  // than the unit.
  void split(std::vector<Item> items, int64_t base, int depth) {
    if (items.empty()) return;
    int32_t sections = compress(items);
    size_t begin = 0;
    int32_t reach = items[0].hi;
    std::vector<std::vector<Item>> groups;
    for (size_t i = 1; i <= items.size(); ++i) {
      if (i < items.size() && items[i].lo <= reach) {
        reach = std::max(reach, items[i].hi);
        continue;
      }
      if (begin == 0 && i == items.size()) break;
      groups.emplace_back(items.begin() + begin, items.begin() + i);
      begin = i;
      if (i < items.size()) reach = items[i].hi;
    }
    for (auto& group : groups) split(std::move(group), base, depth);
    if (!groups.empty()) return;
    bool movable = std::all_of(items.begin(), items.end(),
                               [](const Item& v) { return v.fixed < 0 && v.align == 1; });
    if (movable && depth < kMaxDepth) {
      auto throughout = [&](const Item& v) { return v.lo == 0 && v.hi == sections - 1; };
      auto rest = std::stable_partition(items.begin(), items.end(), throughout);
      if (rest != items.begin()) {
        for (auto it = items.begin(); it != rest; ++it) {
          put(*it, base);
          base += it->size;
        }
        return split(std::vector<Item>(rest, items.end()), base, depth + 1);
      }
    }
    Part part;
    part.bound = bound_of(items, sections);
    part.items = std::move(items);
    part.sections = sections;
    part.base = base;
    parts_.push_back(std::move(part));
  }

  void improve() {
    std::stable_sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) {
      return a.base + a.bound > b.base + b.bound;
    });
    int64_t budget = options_.budget_steps;
    bool search = options_.strategy == Strategy::search;
    for (Part& part : parts_) first_plan(part, steps_);
    int64_t reached = target_;
    for (Part& part : parts_) {
      bool share =
          search && part.items.size() <= kLarge;  // a larger part has nothing else to hope for
      try_orders(part, reached - part.base, share ? budget / 4 : budget, steps_);
      reached = std::max(reached, part.top());
    }
    if (search) deepen(budget);
  }

  // The tallest part decides the arena: works on it until it no longer is, or cannot shrink.
  void deepen(int64_t budget) {
    while (!parts_.empty()) {
      Part& part =
          *std::max_element(parts_.begin(), parts_.end(),
                            [](const Part& a, const Part& b) { return a.top() < b.top(); });
      int64_t top = part.top();
      if (top <= target_ || steps_ >= budget) return;
      Outcome outcome = search_part(part, target_ - part.base, options_.capacity.has_value(),
                                    budget - (budget - steps_) / 4, steps_);
      if (outcome == Outcome::optimal) exact_ = std::max(exact_, part.top());
      if (outcome == Outcome::gave_up) reorder(part, target_ - part.base, budget, steps_);
      if (part.top() >= top) return;
    }
  }

  Plan finish() {
    Plan out;
    for (const Part& part : parts_)
      for (size_t i = 0; i < part.items.size(); ++i) put(part.items[i], part.base + part.offset[i]);
    int64_t unit = units_.unit;
    for (size_t i = 0; i < intervals_.size(); ++i) {
      int64_t size = std::max<int64_t>(intervals_[i].size, 0);
      out.arena = std::max(out.arena, offset_[i] + (size + unit - 1) / unit * unit);
    }
    out.offset = std::move(offset_);
    out.lower_bound = bound_ * unit;
    out.proved = out.arena <= std::max(bound_, exact_) * unit;
    out.steps = steps_;
    return out;
  }

  std::span<const Interval> intervals_;
  const Options& options_;
  Units units_;
  int64_t bound_ = 0, target_ = 0, steps_ = 0;
  int64_t exact_ = 0;  // no plan is below it, as a finished search says
  std::vector<Part> parts_;
  std::vector<int64_t> offset_;
};

}  // namespace

Plan plan(std::span<const Interval> intervals, const Options& options) {
  return Planner(intervals, options).run();
}

int64_t lower_bound(std::span<const Interval> intervals) {
  Units units = to_units(intervals);
  return bound_of(units.items, units.sections) * units.unit;
}

}  // namespace ge::arena
