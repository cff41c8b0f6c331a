#include "arena/search.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <optional>
#include <random>
#include <span>

namespace ge::arena {
namespace {

constexpr int64_t kMaxPairs = 4'000'000;
constexpr int64_t kNoGap = -1;

enum class Answer : uint8_t { found, none, budget };

// How a tree chooses: which of the buffers at the bottom of a section is placed first, and by what
// the section itself is picked. No way wins everywhere; trees take turns.
enum class First : uint8_t { widest, contested, greatest_area };
struct Taste {
  First first;
  bool tightest_section;  // else the one with the fewest choices
};
constexpr Taste kTastes[] = {{First::widest, false},
                             {First::contested, false},
                             {First::greatest_area, false},
                             {First::widest, true}};

// Trees start over soon, as one that begins badly may never end: the first ones by the taste alone,
// those after them with keys that chance raises by up to kNoise thousandths. Each way of time has
// trees of its own, for the ends of a problem are not alike.
constexpr int64_t kFirstSlice = 100'000;
constexpr double kSliceGrowth = 1.02;
constexpr int kPlainTrees = 2 * static_cast<int>(std::size(kTastes));
constexpr uint64_t kNoise = 300;

// Looks for a plan within a capacity. If there is a plan, there is one whose offsets have the least
// sum; in it no buffer can sink, and only such plans are looked for. They are built from below: a
// free buffer lies at `low` or higher. A step takes a free buffer that no free neighbour can be
// under (then none will be) and branches: it lies at `low`, or it is raised. A raised one leaves a
// gap, so a free neighbour has to come into its way there, and it lies on or above the lowest that
// can; which lifts its `low`, and so on. A section whose lowest `low` and free load pass the
// capacity ends a branch.
class Search {
 public:
  // The items must be sorted by lo and outlive the Search.
  Search(std::span<const Item> items, int32_t sections);
  // One tree, abandoned after `slice` steps. Sections that ended branches in earlier trees are
  // looked at first, so a restart is not in vain.
  Answer run(int64_t capacity, Taste taste, bool noisy, int64_t slice);
  int64_t steps() const { return steps_; }
  const std::vector<int64_t>& offset() const { return low_; }
  // What one way down the tree costs, about.
  int64_t descent() const {
    return static_cast<int64_t>(2 * near_.size()) + int64_t{n_} * sections_ / 2;
  }

 private:
  struct Change {
    int64_t* where;
    int64_t old;
  };
  struct Decision {
    int32_t item;
    size_t trail;
  };
  void set(int64_t& where, int64_t value) {
    trail_.push_back({&where, where});
    where = value;
  }
  void undo(size_t mark);
  bool reset();
  void queue_section(int32_t s);
  bool blame(int32_t i);
  bool lift(int32_t i, int64_t low);
  bool support(int32_t i);
  bool settle(int32_t s);
  bool propagate(bool good);
  bool place(int32_t i);
  bool raise(int32_t i);
  int32_t choose_section(bool tightest);
  int32_t choose(bool tightest);
  void rank(First first, bool noisy);

  std::span<const Item> items_;
  int32_t n_, sections_;
  std::vector<int32_t> near_begin_, near_;      // neighbours in time of each item
  std::vector<int32_t> member_begin_, member_;  // items of each section
  std::vector<int32_t> rank_;
  std::vector<int64_t> weight_;  // of a section: how many branches it ended, and one

  // Changes go through set(), so that undo() takes them back.
  std::vector<int64_t> low_;    // the final offset once placed
  std::vector<int64_t> gap_;    // where a raised buffer could still lie, else kNoGap
  std::vector<int64_t> under_;  // the lowest neighbour that can fill the gap
  std::vector<int64_t> placed_;
  std::vector<int64_t> load_, floor_,
      rivals_;  // of a section: free bytes, least low, who may come next

  std::vector<Change> trail_;
  std::vector<int32_t> lifted_, touched_;  // queues of items and sections
  std::vector<uint8_t> in_lifted_, in_touched_;
  int64_t capacity_ = 0, steps_ = 0;
  std::minstd_rand random_;  // the same numbers everywhere
};

Search::Search(std::span<const Item> items, int32_t sections)
    : items_(items), n_(static_cast<int32_t>(items.size())), sections_(sections) {
  std::vector<std::vector<int32_t>> near(items_.size()), members(sections_);
  for (int32_t i = 0; i < n_; ++i) {
    for (int32_t j = i + 1; j < n_ && items_[j].lo <= items_[i].hi; ++j) {
      near[i].push_back(j);
      near[j].push_back(i);
    }
    for (int32_t s = items_[i].lo; s <= items_[i].hi; ++s) members[s].push_back(i);
  }
  auto flatten = [](const std::vector<std::vector<int32_t>>& lists, std::vector<int32_t>& begin,
                    std::vector<int32_t>& flat) {
    for (const auto& list : lists) {
      begin.push_back(static_cast<int32_t>(flat.size()));
      flat.insert(flat.end(), list.begin(), list.end());
    }
    begin.push_back(static_cast<int32_t>(flat.size()));
  };
  flatten(near, near_begin_, near_);
  flatten(members, member_begin_, member_);
  in_lifted_.assign(items_.size(), 0);
  in_touched_.assign(static_cast<size_t>(sections_), 0);
  weight_.assign(static_cast<size_t>(sections_), 1);
}

void Search::undo(size_t mark) {
  while (trail_.size() > mark) {
    *trail_.back().where = trail_.back().old;
    trail_.pop_back();
  }
}

bool Search::reset() {
  low_.assign(items_.size(), 0);
  gap_.assign(items_.size(), kNoGap);
  under_.assign(items_.size(), -1);
  placed_.assign(items_.size(), 0);
  load_.assign(static_cast<size_t>(sections_), 0);
  floor_ = rivals_ = load_;
  trail_.clear();
  for (const Item& v : items_) {
    if (v.size > capacity_) return false;
    for (int32_t s = v.lo; s <= v.hi; ++s) load_[s] += v.size;
  }
  for (int32_t s = 0; s < sections_; ++s)
    if (!settle(s)) return false;
  return true;
}

void Search::queue_section(int32_t s) {
  if (in_touched_[s]) return;
  in_touched_[s] = 1;
  touched_.push_back(s);
}

// A buffer has no place left: its fullest section answers for it.
bool Search::blame(int32_t i) {
  int32_t fullest = items_[i].lo;
  for (int32_t s = items_[i].lo; s <= items_[i].hi; ++s)
    if (floor_[s] + load_[s] > floor_[fullest] + load_[fullest]) fullest = s;
  ++weight_[fullest];
  return false;
}

bool Search::lift(int32_t i, int64_t low) {
  const Item& v = items_[i];
  low = align_up(low, v.align);
  if (low <= low_[i]) return true;
  if (low + v.size > capacity_) return blame(i);
  for (int32_t s = v.lo; s <= v.hi; ++s) queue_section(s);
  set(low_[i], low);
  if (!in_lifted_[i]) {
    in_lifted_[i] = 1;
    lifted_.push_back(i);
  }
  return true;
}

// A raised buffer needs a free neighbour that reaches into its gap, and lies above it.
bool Search::support(int32_t i) {
  int64_t end = gap_[i] + items_[i].size, best = kNoLimit;
  int32_t who = -1;
  for (int32_t k = near_begin_[i]; k < near_begin_[i + 1]; ++k) {
    int32_t j = near_[k];
    if (placed_[j] || low_[j] >= end) continue;
    int64_t top = low_[j] + items_[j].size;
    if (top < best) best = top, who = j;
  }
  steps_ += near_begin_[i + 1] - near_begin_[i];
  if (who < 0) return blame(i);
  if (under_[i] != who) set(under_[i], who);
  return lift(i, best);
}

bool Search::settle(int32_t s) {
  int64_t low = kNoLimit, rivals = 0, limit = capacity_ - load_[s];
  for (int32_t k = member_begin_[s]; k < member_begin_[s + 1]; ++k) {
    int32_t i = member_[k];
    if (placed_[i]) continue;
    low = std::min(low, low_[i]);
    rivals += low_[i] <= limit;
  }
  steps_ += member_begin_[s + 1] - member_begin_[s];
  if (rivals != rivals_[s]) set(rivals_[s], rivals);
  if (low == kNoLimit) return true;
  if (low != floor_[s]) set(floor_[s], low);
  if (low <= limit) return true;
  ++weight_[s];
  return false;
}

// Works both queues off; after a failure it only empties them.
bool Search::propagate(bool good) {
  while (good && !(lifted_.empty() && touched_.empty())) {
    if (!touched_.empty()) {
      int32_t s = touched_.back();
      touched_.pop_back();
      in_touched_[s] = 0;
      good = settle(s);
      continue;
    }
    int32_t j = lifted_.back();
    lifted_.pop_back();
    in_lifted_[j] = 0;
    steps_ += near_begin_[j + 1] - near_begin_[j];
    for (int32_t k = near_begin_[j]; good && k < near_begin_[j + 1]; ++k) {
      int32_t i = near_[k];
      if (!placed_[i] && gap_[i] != kNoGap && under_[i] == j) good = support(i);
    }
  }
  for (int32_t j : lifted_) in_lifted_[j] = 0;
  for (int32_t s : touched_) in_touched_[s] = 0;
  lifted_.clear();
  touched_.clear();
  return good;
}

bool Search::place(int32_t i) {
  const Item& v = items_[i];
  int64_t at = low_[i], top = at + v.size;
  set(placed_[i], 1);
  for (int32_t s = v.lo; s <= v.hi; ++s) {
    set(load_[s], load_[s] - v.size);
    queue_section(s);
  }
  bool good = true;
  for (int32_t k = near_begin_[i]; good && k < near_begin_[i + 1]; ++k) {
    int32_t j = near_[k];
    if (placed_[j]) continue;
    if (gap_[j] != kNoGap && at < gap_[j] + items_[j].size) set(gap_[j], kNoGap);
    good = lift(j, top) && (gap_[j] == kNoGap || under_[j] != i || support(j));
  }
  steps_ += near_begin_[i + 1] - near_begin_[i] + 4;
  return propagate(good);
}

bool Search::raise(int32_t i) {
  set(gap_[i], low_[i]);
  return propagate(support(i));
}

// The section with the fewest buffers that may come next, or with the least slack; the more
// branches it has ended, the sooner.
int32_t Search::choose_section(bool tightest) {
  constexpr int64_t kScale = 1'000'000;
  int32_t best = -1;
  std::array<int64_t, 2> best_key{};
  for (int32_t s = 0; s < sections_; ++s) {
    if (rivals_[s] == 0) continue;
    int64_t slack = capacity_ - floor_[s] - load_[s], choice = rivals_[s] * kScale / weight_[s];
    std::array<int64_t, 2> key{tightest ? slack : choice, tightest ? choice : slack};
    if (best < 0 || key < best_key) best_key = key, best = s;
  }
  steps_ += sections_ / 2;
  return best;
}

// A free buffer to decide on, or -1 when all are placed.
int32_t Search::choose(bool tightest) {
  int32_t s = choose_section(tightest), best = -1;
  if (s < 0) return -1;
  for (int32_t k = member_begin_[s]; k < member_begin_[s + 1]; ++k) {
    int32_t i = member_[k];
    if (placed_[i]) continue;
    if (best < 0 || low_[i] < low_[best] || (low_[i] == low_[best] && rank_[i] < rank_[best]))
      best = i;
  }
  while (true) {
    int32_t next = best;
    for (int32_t k = near_begin_[best]; k < near_begin_[best + 1]; ++k) {
      int32_t i = near_[k];
      if (!placed_[i] && low_[i] < low_[next]) next = i;
    }
    steps_ += near_begin_[best + 1] - near_begin_[best];
    if (next == best) return best;
    best = next;
  }
}

void Search::rank(First first, bool noisy) {
  std::vector<std::array<double, 3>> keys;
  for (const Item& v : items_) {
    int64_t most = 0;
    for (int32_t s = v.lo; s <= v.hi; ++s) most = std::max(most, load_[s]);
    double total = static_cast<double>(most), width = v.hi - v.lo + 1;
    double size = static_cast<double>(v.size);
    switch (first) {
      case First::widest:
        keys.push_back({width, size, total});
        break;
      case First::contested:
        keys.push_back({total, size, width});
        break;
      case First::greatest_area:
        keys.push_back({width * size, width, total});
        break;
    }
    if (noisy) keys.back()[0] *= static_cast<double>(1000 + random_() % kNoise);
  }
  std::vector<int32_t> order(items_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return keys[a] != keys[b] ? keys[a] > keys[b] : a < b; });
  rank_.resize(items_.size());
  for (int32_t k = 0; k < n_; ++k) rank_[order[k]] = k;
}

Answer Search::run(int64_t capacity, Taste taste, bool noisy, int64_t slice) {
  capacity_ = capacity;
  int64_t end = steps_ + slice;
  if (!reset()) return Answer::none;
  rank(taste.first, noisy);
  std::vector<Decision> path;
  while (steps_ < end) {
    int32_t i = choose(taste.tightest_section);
    if (i < 0) return Answer::found;
    path.push_back({i, trail_.size()});
    if (place(i)) continue;
    bool good = false;
    while (!good) {
      if (path.empty()) return Answer::none;
      Decision last = path.back();
      path.pop_back();
      undo(last.trail);
      good = raise(last.item);
    }
  }
  return Answer::budget;
}

// Both ways of time.
class Forest {
 public:
  explicit Forest(Part& part)
      : part_(part), forward_(part.items, part.sections), from_(part.items.size()) {
    std::iota(from_.begin(), from_.end(), 0);
    std::stable_sort(from_.begin(), from_.end(),
                     [&](int32_t a, int32_t b) { return part.items[a].hi > part.items[b].hi; });
    for (int32_t i : from_) {
      Item v = part.items[i];
      v.lo = part.sections - 1 - part.items[i].hi;
      v.hi = part.sections - 1 - part.items[i].lo;
      mirrored_.push_back(v);
    }
  }
  int64_t steps() const { return forward_.steps() + (backward_ ? backward_->steps() : 0); }

  // Trees with growing slices, until the answer or the budget.
  Answer decide(int64_t capacity, int64_t budget) {
    double slice = static_cast<double>(std::max(kFirstSlice, 4 * forward_.descent()));
    for (int tree = 0; steps() < budget; ++tree, slice *= kSliceGrowth) {
      bool back = tree % 2 != 0;
      if (back && !backward_) backward_.emplace(mirrored_, part_.sections);
      Search& search = back ? *backward_ : forward_;
      int64_t most = static_cast<int64_t>(std::min(slice, static_cast<double>(budget - steps())));
      Taste taste = kTastes[static_cast<size_t>(tree / 2) % std::size(kTastes)];
      Answer answer = search.run(capacity, taste, tree >= kPlainTrees, most);
      if (answer == Answer::found) keep(search.offset(), back);
      if (answer != Answer::budget) return answer;
    }
    return Answer::budget;
  }

 private:
  void keep(const std::vector<int64_t>& found, bool back) {
    std::vector<int64_t> offset(found.size());
    int64_t arena = 0;
    for (size_t k = 0; k < found.size(); ++k) {
      size_t i = back ? static_cast<size_t>(from_[k]) : k;
      offset[i] = found[k];
      arena = std::max(arena, found[k] + part_.items[i].size);
    }
    part_.keep(arena, offset);
  }

  Part& part_;
  Search forward_;
  std::vector<int32_t> from_;  // which item of the part each mirrored one is
  std::vector<Item> mirrored_;
  std::optional<Search> backward_;
};

bool searchable(const Part& part) {
  int64_t pairs = 0;
  for (size_t i = 0; i < part.items.size(); ++i) {
    if (part.items[i].fixed >= 0) return false;
    for (size_t j = i + 1; j < part.items.size() && part.items[j].lo <= part.items[i].hi; ++j)
      if (++pairs > kMaxPairs) return false;
  }
  return true;
}

}  // namespace

Outcome search_part(Part& part, int64_t target, bool wanted, int64_t budget, int64_t& steps) {
  if (part.arena <= target) return Outcome::reached;
  if (!searchable(part)) return Outcome::gave_up;
  Forest forest(part);
  budget -= steps;
  // No plan has an arena of `impossible` or less; none was found up to `failed`.
  int64_t impossible = part.bound - 1, failed = impossible;
  int64_t capacity = std::max(target, part.bound);
  while (part.arena > target && failed < part.arena - 1 && forest.steps() < budget) {
    // The first try gets half of what is left, for it is the one that matters; so do those after
    // it.
    int64_t left = budget - forest.steps(), spare = wanted ? left / 8 : left / 2;
    Answer answer = forest.decide(capacity, budget - spare);
    if (answer == Answer::none) impossible = std::max(impossible, capacity);
    if (answer != Answer::found) failed = std::max(failed, capacity);
    capacity = failed + (part.arena - failed) / 2;
    wanted = false;
  }
  steps += forest.steps();
  if (part.arena <= target) return Outcome::reached;
  return impossible == part.arena - 1 ? Outcome::optimal : Outcome::gave_up;
}

}  // namespace ge::arena
