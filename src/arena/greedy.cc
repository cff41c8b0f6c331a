#include "arena/greedy.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <numeric>
#include <queue>
#include <set>

namespace ge::arena {
namespace {

// Every so many items the index lists who is alive: a query looks at most this far back.
constexpr int32_t kStride = 256;

// The free memory below the top, by place and by size.
class Holes {
 public:
  int64_t top() const { return top_; }

  int64_t take(int64_t size, int64_t align) {
    for (auto it = by_size_.lower_bound({size, 0}); it != by_size_.end(); ++it) {
      auto [length, from] = *it;
      int64_t at = align_up(from, align);
      if (at + size > from + length) continue;
      erase(from, length);
      if (at > from) insert(from, at - from);
      if (at + size < from + length) insert(at + size, from + length - at - size);
      return at;
    }
    int64_t from = top_;
    if (!by_place_.empty()) {
      auto last = std::prev(by_place_.end());
      if (last->first + last->second == top_) {
        from = last->first;
        erase(from, last->second);
      }
    }
    int64_t at = align_up(from, align);
    if (at > from) insert(from, at - from);
    top_ = at + size;
    return at;
  }

  void give(int64_t from, int64_t length) {
    auto next = by_place_.lower_bound(from);
    if (next != by_place_.end() && next->first == from + length) {
      int64_t more = next->second;
      erase(next->first, more);
      length += more;
    }
    next = by_place_.lower_bound(from);
    if (next != by_place_.begin()) {
      auto [before, size] = *std::prev(next);
      if (before + size == from) {
        erase(before, size);
        from = before;
        length += size;
      }
    }
    insert(from, length);
  }

 private:
  void insert(int64_t from, int64_t length) {
    by_place_.emplace(from, length);
    by_size_.emplace(length, from);
  }
  void erase(int64_t from, int64_t length) {
    by_place_.erase(from);
    by_size_.erase({length, from});
  }

  std::map<int64_t, int64_t> by_place_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t top_ = 0;
};

}  // namespace

int64_t sweep(std::span<const Item> items, int32_t sections, bool mirrored, bool longest,
              std::vector<int64_t>& offset, int64_t& steps) {
  auto start = [&](const Item& v) { return mirrored ? sections - 1 - v.hi : v.lo; };
  auto end = [&](const Item& v) { return mirrored ? sections - 1 - v.lo : v.hi; };
  std::vector<int32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const Item &x = items[a], &y = items[b];
    if (start(x) != start(y)) return start(x) < start(y);
    if (longest && end(x) != end(y)) return end(x) > end(y);
    if (x.size != y.size) return x.size > y.size;
    return end(x) != end(y) ? end(x) > end(y) : x.id < y.id;
  });
  offset.assign(items.size(), 0);
  Holes holes;
  using Ending = std::pair<int32_t, int32_t>;  // section, item
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> alive;
  for (int32_t i : order) {
    const Item& item = items[i];
    while (!alive.empty() && alive.top().first < start(item)) {
      int32_t gone = alive.top().second;
      alive.pop();
      holes.give(offset[gone], items[gone].size);
    }
    offset[i] = holes.take(item.size, item.align);
    alive.emplace(end(item), i);
  }
  steps += 50 * static_cast<int64_t>(items.size());
  return holes.top();
}

Placer::Placer(std::span<const Item> items, int32_t sections) : items_(items) {
  int32_t n = static_cast<int32_t>(items.size());
  first_at_.assign(static_cast<size_t>(sections) + 1, n);
  for (int32_t i = n - 1; i >= 0; --i) first_at_[items[i].lo] = i;
  for (int32_t s = sections - 1; s >= 0; --s)
    first_at_[s] = std::min(first_at_[s], first_at_[s + 1]);
  std::vector<int32_t> living;
  for (int32_t i = 0; i < n; ++i) {
    if (i % kStride == 0) {
      std::erase_if(living, [&](int32_t j) { return items[j].hi < items[i].lo; });
      alive_begin_.push_back(static_cast<int32_t>(alive_.size()));
      alive_.insert(alive_.end(), living.begin(), living.end());
    }
    living.push_back(i);
  }
  alive_begin_.push_back(static_cast<int32_t>(alive_.size()));
  // Overlaps of i: all that start no later than it ends, less those that end before it starts.
  std::vector<int32_t> ended(static_cast<size_t>(sections) + 1, 0);
  for (const Item& item : items) ++ended[item.hi + 1];
  for (int32_t s = 0; s < sections; ++s) ended[s + 1] += ended[s];
  degree_.resize(items.size());
  for (int32_t i = 0; i < n; ++i) {
    degree_[i] = first_at_[items[i].hi + 1] - ended[items[i].lo] - 1;
    pairs_ += degree_[i];
  }
  pairs_ /= 2;
  placed_.assign((items.size() + 63) / 64 + 1, 0);
}

void Placer::collect(int32_t i, const std::vector<int64_t>& offset, int64_t& steps) {
  const Item& item = items_[i];
  spans_.clear();
  auto add = [&](int32_t j) { spans_.push_back({offset[j], offset[j] + items_[j].size}); };
  int32_t from = first_at_[item.lo], to = first_at_[item.hi + 1];
  int32_t block = std::min(from, static_cast<int32_t>(items_.size()) - 1) / kStride;
  for (int32_t k = alive_begin_[block]; k < alive_begin_[block + 1]; ++k) {
    int32_t j = alive_[k];
    if (items_[j].hi >= item.lo && placed(j)) add(j);
  }
  for (int32_t j = block * kStride; j < from; ++j)
    if (items_[j].hi >= item.lo && placed(j)) add(j);
  for (int32_t word = from >> 6; word <= (to - 1) >> 6; ++word) {
    uint64_t bits = placed_[word];
    if (word == from >> 6) bits &= ~uint64_t{0} << (from & 63);
    if (word == to >> 6) bits &= (uint64_t{1} << (to & 63)) - 1;
    for (; bits != 0; bits &= bits - 1) add((word << 6) + std::countr_zero(bits));
  }
  int64_t looked_at = alive_begin_[block + 1] - alive_begin_[block] + from - block * kStride;
  int64_t found = static_cast<int64_t>(spans_.size());
  steps += 8 + looked_at / 8 + found * (2 + std::bit_width(spans_.size()) / 2);
  std::sort(spans_.begin(), spans_.end(),
            [](const Span& a, const Span& b) { return a.from < b.from; });
}

int64_t Placer::find(const Item& item, Fit fit) const {
  int64_t top = 0, best = -1, best_waste = kNoLimit;
  for (const Span& span : spans_) {
    int64_t at = align_up(top, item.align);
    if (span.from - at >= item.size) {
      if (fit == Fit::first) return at;
      if (span.from - top - item.size < best_waste) {
        best_waste = span.from - top - item.size;
        best = at;
      }
    }
    top = std::max(top, span.to);
  }
  return best >= 0 ? best : align_up(top, item.align);
}

int64_t Placer::place(std::span<const int32_t> order, Fit fit, int64_t limit,
                      std::vector<int64_t>& offset, int64_t& steps) {
  offset.assign(items_.size(), 0);
  std::fill(placed_.begin(), placed_.end(), 0);
  culprit_ = -1;
  int64_t arena = 0;
  auto settle = [&](int32_t i, int64_t at) {
    offset[i] = at;
    placed_[i >> 6] |= uint64_t{1} << (i & 63);
    if (at + items_[i].size > arena) {
      arena = at + items_[i].size;
      culprit_ = i;
    }
  };
  for (int32_t i : order)
    if (items_[i].fixed >= 0) settle(i, items_[i].fixed);
  for (int32_t i : order) {
    if (items_[i].fixed >= 0) continue;
    collect(i, offset, steps);
    settle(i, find(items_[i], fit));
    if (arena > limit) return arena;
  }
  return arena;
}

}  // namespace ge::arena
