#include "kernels/reference/unique.h"

#include <algorithm>
#include <numeric>

#include "kernels/move/lines.h"

namespace ge::kernels::reference {

Different different_entries(DType t, const std::byte* x, int64_t outer, int64_t entries, int64_t inner, bool sorted) {
  Different out;
  if (entries <= 0) return out;
  int64_t width = outer * inner, size = size_of(t);
  std::vector<int64_t> keys(static_cast<size_t>(entries * width));
  auto* key = keys.data();
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t e = 0; e < entries; ++e)
      for (int64_t i = 0; i < inner; ++i) key[e * width + o * inner + i] = move::order_key(t, x + ((o * entries + e) * inner + i) * size);
  auto compare = [&](int64_t a, int64_t b) {
    return std::lexicographical_compare_three_way(key + a * width, key + (a + 1) * width, key + b * width, key + (b + 1) * width);
  };
  std::vector<int64_t> order(static_cast<size_t>(entries));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
  out.which.resize(order.size());
  for (int64_t e : order) {
    // Equal entries follow one another, the first of them first.
    if (out.first.empty() || compare(out.first.back(), e) != 0) {
      out.first.push_back(e);
      out.count.push_back(0);
    }
    out.which[static_cast<size_t>(e)] = static_cast<int64_t>(out.first.size()) - 1;
    ++out.count.back();
  }
  if (sorted) return out;
  std::vector<int64_t> by_place(out.first.size()), place(out.first.size());
  std::iota(by_place.begin(), by_place.end(), 0);
  std::sort(by_place.begin(), by_place.end(), [&](int64_t a, int64_t b) { return out.first[static_cast<size_t>(a)] < out.first[static_cast<size_t>(b)]; });
  Different seen;
  for (int64_t k : by_place) {
    place[static_cast<size_t>(k)] = static_cast<int64_t>(seen.first.size());
    seen.first.push_back(out.first[static_cast<size_t>(k)]);
    seen.count.push_back(out.count[static_cast<size_t>(k)]);
  }
  for (int64_t w : out.which) seen.which.push_back(place[static_cast<size_t>(w)]);
  return seen;
}

}  // namespace ge::kernels::reference
