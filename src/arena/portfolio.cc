#include "arena/portfolio.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace ge::arena {
namespace {

// Buffers that together never hold more than this share of the bound are not worth a place each.
constexpr int64_t kTailShare = 1024;

using Key = std::array<double, 3>;  // greater first

int32_t width(const Item& v) { return v.hi - v.lo + 1; }

// The greatest load of the sections a buffer lives in: how contested its place is.
std::vector<int64_t> totals(const Part& part) {
  std::vector<int64_t> load(static_cast<size_t>(part.sections) + 1, 0);
  for (const Item& v : part.items) {
    load[v.lo] += v.size;
    load[v.hi + 1] -= v.size;
  }
  std::partial_sum(load.begin(), load.end(), load.begin());
  // Sparse table of maxima.
  std::vector<std::vector<int64_t>> table{load};
  for (size_t half = 1; 2 * half <= load.size(); half *= 2) {
    const std::vector<int64_t>& last = table.back();
    std::vector<int64_t> next(load.size() - 2 * half + 1);
    for (size_t i = 0; i < next.size(); ++i) next[i] = std::max(last[i], last[i + half]);
    table.push_back(std::move(next));
  }
  std::vector<int64_t> out;
  for (const Item& v : part.items) {
    int level = 31 - __builtin_clz(static_cast<unsigned>(width(v)));
    out.push_back(std::max(table[level][v.lo], table[level][v.hi + 1 - (1 << level)]));
  }
  return out;
}

std::vector<int32_t> sorted(const Part& part, const std::vector<Key>& keys) {
  std::vector<int32_t> order(part.items.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return keys[a] != keys[b] ? keys[a] > keys[b] : part.items[a].id < part.items[b].id;
  });
  return order;
}

constexpr int kOrders = 9;

std::vector<int32_t> order_number(const Part& part, const Placer& placer,
                                  const std::vector<int64_t>& total, int number) {
  std::vector<Key> keys;
  for (size_t i = 0; i < part.items.size(); ++i) {
    const Item& v = part.items[i];
    double size = static_cast<double>(v.size), w = width(v), area = size * w;
    double load = static_cast<double>(total[i]), degree = placer.degree(static_cast<int32_t>(i));
    switch (number) {
      case 0:
        keys.push_back({size, w, 0});
        break;
      case 1:
        keys.push_back({area, size, 0});
        break;
      case 2:
        keys.push_back({load, size, w});
        break;
      case 3:
        keys.push_back({w, size, 0});
        break;
      case 4:
        keys.push_back({-static_cast<double>(v.lo), w, size});
        break;
      case 5:
        keys.push_back({static_cast<double>(v.hi), w, size});
        break;
      case 6:
        keys.push_back({degree, size, 0});
        break;
      case 7:
        keys.push_back({size * degree, w, 0});
        break;
      default:
        keys.push_back({load, area, size});
        break;
    }
  }
  return sorted(part, keys);
}

// The smallest buffers as far as their own peak is negligible: they get a region of their own on
// top.
Part split_tail(const Part& part, Part& tail) {
  std::vector<int64_t> sizes;
  for (const Item& v : part.items) sizes.push_back(v.size);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  auto below = [&](int64_t size) {
    std::vector<Item> out;
    for (const Item& v : part.items)
      if (v.size < size && v.fixed < 0) out.push_back(v);
    return out;
  };
  // The greatest size such that all smaller buffers stay under the share.
  auto cut = std::partition_point(sizes.begin(), sizes.end(), [&](int64_t size) {
    return bound_of(below(size), part.sections) <= part.bound / kTailShare;
  });
  int64_t size = cut == sizes.begin() ? 0 : *std::prev(cut);
  Part head;
  for (const Item& v : part.items) (v.size < size && v.fixed < 0 ? tail : head).items.push_back(v);
  for (Part* p : {&head, &tail}) {
    p->sections = part.sections;
    p->bound = bound_of(p->items, part.sections);
  }
  return head;
}

void orders_of_all(Part& part, int64_t target, int64_t budget, int64_t& steps) {
  Placer placer(part.items, part.sections);
  std::vector<int64_t> total = totals(part), offset;
  steps += 16 * static_cast<int64_t>(part.items.size());
  for (int number = 0; number < kOrders; ++number) {
    std::vector<int32_t> order = order_number(part, placer, total, number);
    for (Fit fit : {Fit::first, Fit::best}) {
      if (part.arena <= target || steps + placer.cost() > budget) return;
      part.keep(placer.place(order, fit, part.arena - 1, offset, steps), offset);
    }
  }
}

}  // namespace

void first_plan(Part& part, int64_t& steps) {
  std::vector<int64_t> offset;
  bool fixed =
      std::any_of(part.items.begin(), part.items.end(), [](const Item& v) { return v.fixed >= 0; });
  if (!fixed) {
    for (int variant = 0; variant < 4 && part.arena > part.bound; ++variant)
      part.keep(sweep(part.items, part.sections, variant & 1, variant & 2, offset, steps), offset);
    return;
  }
  Placer placer(part.items, part.sections);
  std::vector<int32_t> order(part.items.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return part.items[a].size > part.items[b].size; });
  part.keep(placer.place(order, Fit::first, kNoLimit, offset, steps), offset);
}

void try_orders(Part& part, int64_t target, int64_t budget, int64_t& steps) {
  if (part.arena <= target) return;
  if (part.items.size() <= kLarge) return orders_of_all(part, target, budget, steps);
  Part tail, head = split_tail(part, tail);
  if (tail.items.empty()) return orders_of_all(part, target, budget, steps);
  first_plan(tail, steps);
  steps += 64 * static_cast<int64_t>(part.items.size());
  head.arena = part.arena - tail.arena;  // what it has to beat
  int64_t before = head.arena;
  orders_of_all(head, std::max(target - tail.arena, head.bound), budget, steps);
  if (head.arena == before) return;
  std::vector<int64_t> offset(part.items.size());
  size_t h = 0, t = 0;
  for (size_t i = 0; i < part.items.size(); ++i) {
    bool in_head = h < head.items.size() && head.items[h].id == part.items[i].id;
    offset[i] = in_head ? head.offset[h++] : head.arena + tail.offset[t++];
  }
  part.keep(head.arena + tail.arena, offset);
}

void reorder(Part& part, int64_t target, int64_t budget, int64_t& steps) {
  if (part.arena <= target || part.items.size() > kLarge) return;
  Placer placer(part.items, part.sections);
  std::vector<int64_t> total = totals(part), offset;
  std::vector<double> weight(part.items.size(), 0);
  constexpr int kStarts[] = {0, 1, 2, 8};
  for (int round = 0; round < 4; ++round) {
    std::vector<int32_t> order = order_number(part, placer, total, kStarts[round]);
    int64_t share = steps + (budget - steps) / (4 - round);
    while (steps + placer.cost() <= share) {
      steps += static_cast<int64_t>(order.size()) / 8;
      if (part.keep(placer.place(order, Fit::first, part.arena - 1, offset, steps), offset) &&
          part.arena <= target)
        return;
      // The culprit moves to a place twice as early; what stood there moves back by one.
      auto at = std::find(order.begin(), order.end(), placer.culprit());
      auto to = order.begin() + (at - order.begin()) / 2;
      if (at == to) break;
      std::rotate(to, at, at + 1);
    }
  }
}

}  // namespace ge::arena
