// ref.TfIdfVectorizer: in [x [C] or [B, C], integers], out [[S] or [B, S], f32]: how often each n-gram of a pool stands in
//   each row, its items next to one another or as many apart as the skips allow (single items count once).
//   ints [mode (0 count, 1 whether, 2 count) of which 1 and 2 are weighted, shortest, longest, most items skipped,
//   n, n starts in the pool of the 1-grams, 2-grams ..., p, p items of the pool, the place in S of each n-gram],
//   floats: the weight of each n-gram, or none.
#include <map>

#include "kernels/move/check.h"
#include "kernels/reference/place.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kName = "ref.TfIdfVectorizer";

// The n-grams as a tree: from a node by an item to the next.
struct Ngrams {
  std::map<std::pair<int64_t, int64_t>, int64_t> next;
  std::vector<int64_t> entry{-1};           // of each node: the n-gram that ends there
  std::vector<int64_t> place;               // of each n-gram in the output
  int64_t mode = 0, shortest = 1, longest = 1, skips = 0;
};

Status add(Ngrams& g, std::span<const int64_t> items, int64_t number) {
  int64_t node = 0;
  for (int64_t item : items) {
    auto [it, fresh] = g.next.try_emplace({node, item}, static_cast<int64_t>(g.entry.size()));
    if (fresh) g.entry.push_back(-1);
    node = it->second;
  }
  auto& entry = g.entry[static_cast<size_t>(node)];
  if (entry >= 0) return bad(kName, format("n-gram {} is in the pool twice", number));
  entry = number;
  return ok();
}

Result<Ngrams> ngrams(const Call& c, int64_t places) {
  auto ints = c.ints;
  auto take = [&](int64_t n) -> Result<std::span<const int64_t>> {
    if (n < 0 || static_cast<size_t>(n) > ints.size()) return bad(kName, "too few parameters");
    auto head = ints.first(static_cast<size_t>(n));
    ints = ints.subspan(static_cast<size_t>(n));
    return head;
  };
  Ngrams g;
  GE_TRY(auto head, take(4));
  g.mode = head[0], g.shortest = head[1], g.longest = head[2], g.skips = head[3];
  if (g.mode < 0 || g.mode > 2 || g.shortest < 1 || g.longest < g.shortest || g.skips < 0 || g.skips > kMaxCount) return bad(kName, "wrong parameters");
  GE_TRY(auto n, take(1));
  GE_TRY(auto starts, take(n[0]));
  GE_TRY(auto p, take(1));
  GE_TRY(auto pool, take(p[0]));
  g.place.assign(ints.begin(), ints.end());
  int64_t number = 0;
  for (size_t k = 0; k < starts.size(); ++k) {
    int64_t length = static_cast<int64_t>(k) + 1, begin = starts[k], end = k + 1 < starts.size() ? starts[k + 1] : p[0];
    if (begin < 0 || end < begin || end > p[0] || (end - begin) % length) return bad(kName, format("the pool of {}-grams is not whole", length));
    for (int64_t at = begin; at < end; at += length, ++number)
      if (length >= g.shortest && length <= g.longest)
        GE_RETURN_IF_ERROR(add(g, pool.subspan(static_cast<size_t>(at), static_cast<size_t>(length)), number));
  }
  if (static_cast<size_t>(number) != g.place.size() || (!c.floats.empty() && c.floats.size() != g.place.size()))
    return bad(kName, format("the pool has {} n-grams, ngram_indexes {} and weights {}; as many of each are needed", number, g.place.size(), c.floats.size()));
  for (int64_t at : g.place)
    if (at < 0 || at >= places) return bad(kName, format("place {} of an n-gram is outside of an output of {}", at, places));
  return g;
}

int64_t rows_of(const View& x) { return x.rank == 2 ? x.dims[0] : 1; }

int64_t chunks_of(const View& x, const View& y) {
  return cut(rows_of(x), 200 + 40.0 * static_cast<double>(std::min<int64_t>(x.dims[x.rank - 1], 1 << 20)) + static_cast<double>(y.dims[y.rank - 1]));
}

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1));
  const View &x = c.in[0], &y = c.out[0];
  if (!plain_integer(x.dtype) || y.dtype != DType::f32) return bad(kName, "wrong types");
  if (x.rank < 1 || x.rank > 2 || y.rank != x.rank || (x.rank == 2 && y.dims[0] != x.dims[0])) return bad(kName, "wrong shapes");
  GE_TRY(Ngrams g, ngrams(c, y.dims[y.rank - 1]));
  Work w;
  w.chunks = chunks_of(x, y);
  w.scratch = static_cast<int64_t>(g.place.size() * sizeof(int64_t));
  w.state = std::make_shared<const Ngrams>(std::move(g));
  return w;
}

// count[place] of the n-grams that begin at item `begin`, their items `step` apart.
void follow(const Ngrams& g, const View& x, int64_t row, int64_t begin, int64_t step, int64_t shortest, int64_t* count) {
  int64_t node = 0, length = 0, items = x.dims[x.rank - 1], stride = x.strides[x.rank - 1];
  for (int64_t at = begin; at < items && length < g.longest; at += step) {
    auto it = g.next.find({node, load_int(x, row + at * stride)});
    if (it == g.next.end()) return;
    node = it->second;
    int64_t entry = g.entry[static_cast<size_t>(node)];
    if (++length >= shortest && entry >= 0) ++count[entry];
  }
}

Status run(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &y = c.out[0];
  auto& g = *static_cast<const Ngrams*>(c.state);
  int64_t items = x.dims[x.rank - 1], places = y.dims[y.rank - 1];
  std::span count(reinterpret_cast<int64_t*>(c.scratch), g.place.size());
  Span rows = slice(rows_of(x), chunk, chunks_of(x, y));
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    int64_t from = x.rank == 2 ? r * x.strides[0] : 0, to = y.rank == 2 ? r * y.strides[0] : 0;
    std::fill(count.begin(), count.end(), 0);
    for (int64_t step = 1, shortest = g.shortest; step <= g.skips + 1 && (step == 1 || step < items); ++step) {
      for (int64_t begin = 0; begin < items; ++begin) follow(g, x, from, begin, step, shortest, count.data());
      shortest = std::max<int64_t>(shortest, 2);  // the distance is nothing to a single item
    }
    for (int64_t i = 0; i < places; ++i) y.as<float>()[to + i * y.strides[y.rank - 1]] = 0;
    for (size_t k = 0; k < count.size(); ++k) {
      auto times = static_cast<float>(g.mode == 1 ? count[k] > 0 : count[k]);
      y.as<float>()[to + g.place[k] * y.strides[y.rank - 1]] += times * (g.mode && !c.floats.empty() ? static_cast<float>(c.floats[k]) : 1.0f);
    }
  }
  return ok();
}

const Register registered(Kernel{.name = kName, .unit = Unit::vector, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::reference
