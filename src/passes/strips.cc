// Strips: chains of convolutions, pools and elementwise nodes on large maps run a strip of rows at a time, all nodes
// on one strip before the next, so that what passes between them stays in the caches and takes a strip's memory (fused-layer
// evaluation: Alwani et al., MICRO 2016; patch-based inference: Lin et al., NeurIPS 2021). Rows that windows of two strips
// share are kept: they are copied in front of the next ones. By a static cost model: cycles of the nodes, bytes that do
// not fit a cache.
//
// Which nodes run together is a shortest path over the order of nodes: each step is one node as it is, or some that follow
// one another as strips. Where heights or widths are open, this is done for a size at which strips pay, their number is
// the best over larger ones, and each run takes strips or wholes by its sizes (open_strips, when the order of nodes is
// settled: the other way is to take no part in that).
#include "passes/strips.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "passes/order.h"
#include "passes/pass.h"
#include "tensor/dim_range.h"

namespace ge::passes {
namespace {

using namespace cutting;

constexpr size_t kMostNodes = 24;         // of a group
constexpr double kTaskCycles = 8000;      // of one more task
constexpr double kHeldCycles = 1;         // a byte of memory beyond what the nodes take as they are
constexpr double kSavedCycles = 0.1;      // less of it, where that lowers the peak
constexpr double kMostMemory = 1.2;       // of the peak as it is
constexpr double kCopyCycles = 0.1;       // a byte of the rows that are kept
constexpr int64_t kEven = 4;              // strips of so many rows, or of a multiple, leave no part of a tile
constexpr double kWorth = 0.96;           // of the cycles: more do not pay
constexpr std::array<int64_t, 11> kCounts = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
constexpr int64_t kLeastRows = 4;         // of a strip
constexpr int64_t kMostLeastRows = 8 * kLeastRows;   // where sizes are open
constexpr int64_t kMostPieces = 2048;     // of nodes in one graph, where sizes are open: a file is to stay small, and to open fast
constexpr double kSecondWay = 0.01;       // of the cycles: less does not pay for another number of strips
constexpr double kReferenceBytes = 24 << 20;    // of one node's maps, at the size for which groups are chosen
constexpr int64_t kLargestSize = 1 << 22;       // that is tried
constexpr std::array<int64_t, 6> kImages = {1, 2, 3, 4, 6, 8};   // where strips pay for one
constexpr std::array<double, 11> kScales = {0.125, 0.177, 0.25, 0.354, 0.5, 0.707, 1, 1.41, 2, 2.83, 4};   // of it, where strips may pay

struct Cost {
  double cycles = 0;
  double memory = 0;                      // what more or less of it counts, in cycles
};

class Cutter {
 public:
  // largest: bytes of one node's maps, the most; rows: PassOptions::strip_rows.
  Cutter(const ir::Graph& g, int64_t rows, Sizes sizes) : g_(g), rows_(rows), order_(g.order()), at_(g, std::move(sizes), rows > 0) {
    for (NodeId id : order_) {
      if (double bytes = at_.bytes(id); bytes > largest_) largest_ = bytes, largest_node_ = id;
    }
  }
  std::vector<Group> choose() const;
  // How a group whose sizes are open is cut: one number of strips or two, and the sizes from which each pays; none: never.
  // always: the number that is given pays for all.
  std::vector<Group> ways(const Group& group, const std::vector<Rows>& scales, bool always) const;
  const Rows& rows() const { return at_; }

 private:
  bool extend(Group& group, size_t first, size_t last) const;
  void find_sinks(Group& group) const;
  Cost cost(const Rows& at, const Group& group, double largest) const;
  std::vector<std::vector<double>> shares(Group group, const std::vector<Rows>& scales) const;

  const ir::Graph& g_;
  const int64_t rows_;
  const std::vector<NodeId> order_;
  const Rows at_;
  double largest_ = 0;
  NodeId largest_node_;
};

// The node at place `last` joins a group that begins at `first`; false: neither it nor one behind it can.
bool Cutter::extend(Group& group, size_t first, size_t last) const {
  NodeId id = order_[last];
  if (at_.step(id).fits) {
    group.nodes.push_back(id);
    return group.nodes.size() <= kMostNodes;
  }
  // What reads of the group from outside must run behind it.
  for (ValueId v : g_.node(id).inputs)
    if (v && group.holds(g_.value(v).producer)) return false;
  return last - first < 4 * kMostNodes;
}

void Cutter::find_sinks(Group& group) const {
  group.sinks.clear();
  for (NodeId id : group.nodes)
    for (ValueId v : g_.node(id).outputs) {
      auto& uses = g_.value(v).uses;
      if (g_.is_output(v) || std::any_of(uses.begin(), uses.end(), [&](auto& u) { return !group.holds(u.node); })) group.sinks.push_back(v);
    }
}

// Of all strips, which are taken to be equal; infinite where one in the middle is not possible. largest: bytes of one node's maps.
Cost Cutter::cost(const Rows& at, const Group& group, double largest) const {
  const int64_t middle = group.count / 2;
  const Strip s = at.strip(group, middle, at.ends(group, middle - 1));
  if (!s.possible) return {HUGE_VAL, 0};
  const double count = static_cast<double>(group.count);
  double sum = 0, kept = 0, passing = 0, whole = 0;   // cycles; bytes from strip to strip, of one node, of one node that is not cut
  for (NodeId id : group.nodes) {
    auto& step = at.step(id);
    auto& out = g_.node(id).outputs;
    const RowRange made = s.made.at(id.v);
    const double height = static_cast<double>(at.height(out[0])), tile = static_cast<double>(step.tile);
    // Larger strips end where tiles do.
    const double waste = height / count >= 2 * kEven ? 1 : std::ceil(height / count / tile) * tile / (height / count);
    sum += count * kTaskCycles + step.cycles * waste;
    double here = 0, uncut = 0;
    for (ValueId v : out) {
      const double bytes = at.map(v).bytes;
      const bool sink = group.is_sink(v);
      sum += from_memory(bytes, sink ? bytes : bytes / count);
      uncut += bytes, here += sink ? bytes : bytes / count;
      auto read = s.read.find(v.v);
      if (read == s.read.end() || read->second.begin >= made.begin) continue;
      const double old = bytes * static_cast<double>(made.begin - read->second.begin) / height;
      sum += count * (2 * kTaskCycles + kCopyCycles * (2 * old + (sink ? bytes / count : 0)));
      kept += old;
    }
    for (auto& in : step.inputs) {
      const double bytes = at.map(in.value).bytes;
      const bool inside = group.holds(g_.value(in.value).producer);
      sum += from_memory(bytes, inside ? bytes / count : bytes);
      uncut += bytes, here += inside ? bytes / count : bytes;
    }
    passing = std::max(passing, here), whole = std::max(whole, uncut);
  }
  const double more = kept + passing - whole;
  return {sum, more > 0 ? kHeldCycles * more : whole > largest / 2 ? kSavedCycles * more : 0};
}

std::vector<Group> Cutter::choose() const {
  const size_t n = order_.size();
  std::vector<double> best(n + 1, HUGE_VAL);
  std::vector<std::pair<size_t, int64_t>> from(n + 1);   // where the last step began, its strips (0: as it is)
  best[0] = 0;
  for (size_t i = 0; i < n; ++i) {
    auto& step = at_.step(order_[i]);
    if (best[i] + step.alone < best[i + 1]) best[i + 1] = best[i] + step.alone, from[i + 1] = {i, 0};
    if (!step.fits) continue;
    Group group;
    double alone = 0, traffic = 0;
    for (size_t j = i; j < n && extend(group, i, j); ++j) {
      auto& next = at_.step(order_[j]);
      alone += next.alone;
      traffic += next.alone - next.cycles;
      if (!next.fits || group.nodes.size() < 2) continue;
      find_sinks(group);
      if (group.sinks.empty() || (traffic <= (1 - kWorth) * alone && rows_ == 0)) continue;   // strips save traffic alone
      const int64_t least = at_.height(at_.lowest(group));
      if (rows_ > 0 && least > rows_) {
        group.count = (least + rows_ - 1) / rows_;
        if (best[i] < best[j + 1]) best[j + 1] = best[i], from[j + 1] = {i, group.count};
        continue;
      }
      for (int64_t count : kCounts) {
        if (rows_ > 0 || count * kLeastRows > least) break;
        group.count = count;
        group.even = least / count >= 2 * kEven ? kEven : 1;
        const Cost c = cost(at_, group, largest_);
        if (c.cycles < kWorth * alone && best[i] + c.cycles + c.memory < best[j + 1]) best[j + 1] = best[i] + c.cycles + c.memory, from[j + 1] = {i, count};
      }
    }
  }
  std::vector<Group> out;
  for (size_t j = n; j > 0; j = from[j].first) {
    auto [first, count] = from[j];
    if (count == 0) continue;
    Group group;
    for (size_t i = first; i < j; ++i)
      if (at_.step(order_[i]).fits) group.nodes.push_back(order_[i]);
    find_sinks(group);
    group.count = count;
    group.even = at_.height(at_.lowest(group)) / count >= 2 * kEven ? kEven : 1;
    if (at_.possible(group, at_.strips(group))) out.push_back(std::move(group));   // at the ends too
  }
  return out;
}

// What strips take of what wholes do, for each number of strips at each scale; infinite where they do not pay.
std::vector<std::vector<double>> Cutter::shares(Group group, const std::vector<Rows>& scales) const {
  std::vector<std::vector<double>> out;
  for (int64_t count : kCounts) {
    group.count = count;
    auto& row = out.emplace_back();
    for (auto& at : scales) {
      double alone = 0;
      bool fits = true;
      for (NodeId id : group.nodes) alone += at.step(id).alone, fits &= at.step(id).fits;
      fits = fits && at.height(at.lowest(group)) >= count * kLeastRows;
      const Cost c = fits ? cost(at, group, at.bytes(largest_node_)) : Cost{HUGE_VAL, 0};
      row.push_back(c.cycles < kWorth * alone ? (c.cycles + c.memory) / alone : HUGE_VAL);
    }
  }
  return out;
}

std::vector<Group> Cutter::ways(const Group& group, const std::vector<Rows>& scales, bool always) const {
  Group way = group;
  way.open = true;
  // Where each begins: the bytes of the group's largest map.
  auto bytes_at = [&](size_t scale) {
    double bytes = scale < scales.size() ? 0 : HUGE_VAL;
    for (NodeId id : group.nodes)
      for (ValueId v : g_.node(id).outputs)
        if (scale < scales.size()) bytes = std::max(bytes, scales[scale].map(v).bytes);
    return bytes;
  };
  if (rows_ > 0) {
    Group more = way;
    if (always) more.count = way.count + 1, more.least_bytes = bytes_at(1);
    else way.count = std::min<int64_t>(group.count, 2 + rows_ % 3), way.least_rows = rows_, more.count = way.count + 1, more.least_rows = 3 * rows_;
    if (!always) way.even = 1;
    more.even = 1;
    return {way, more};
  }
  const auto share = shares(group, scales);
  auto total = [&](size_t i, size_t j) {
    double sum = 0;
    for (size_t t = 0; t < scales.size(); ++t) sum += std::min({share[i][t], share[j][t], 1.0});
    return sum;
  };
  // The best, and with it another one for larger sizes.
  const auto given = static_cast<size_t>(std::find(kCounts.begin(), kCounts.end(), group.count) - kCounts.begin());
  size_t first = always ? given : 0, one = first, two = first;
  for (size_t i = 0; i < kCounts.size() && !always; ++i)
    if (total(i, i) < total(one, one)) one = two = i;
  for (size_t i = first; i < (always ? first + 1 : kCounts.size()); ++i)
    for (size_t j = i + 1; j < kCounts.size(); ++j)
      if (total(i, j) < total(one, two) - (one == two ? kSecondWay * static_cast<double>(scales.size()) : 0)) one = i, two = j;
  auto begins = [&](auto better) {
    size_t from = scales.size();
    while (from > 0 && better(from - 1)) --from;
    return bytes_at(from);
  };
  std::vector<Group> out;
  way.even = kEven, way.least_rows = kLeastRows;
  way.count = kCounts[one];
  way.least_bytes = always ? 0 : begins([&](size_t t) { return std::min(share[one][t], share[two][t]) < kWorth; });
  if (way.least_bytes < HUGE_VAL) out.push_back(way);
  if (one == two || out.empty()) return out;
  way.count = kCounts[two];
  way.least_bytes = begins([&](size_t t) { return share[two][t] <= share[one][t]; });
  if (way.least_bytes < HUGE_VAL) out.push_back(way);
  return out;
}

// Nodes whose windows slide over maps.
std::vector<NodeId> windows_of(const ir::Graph& g) {
  std::vector<NodeId> out;
  for (NodeId id : g.order()) {
    auto* def = ops::find(g.node(id).op);
    if (def && def->cut_rows) out.push_back(id);
  }
  return out;
}

// Symbols in sizes of maps: of the number of images, and all others.
struct OpenSizes {
  std::vector<std::string> images, others;

  explicit OpenSizes(const ir::Graph& g) {
    auto add = [&](std::vector<std::string>& to, const Dim& d) {
      if (d.known()) return;
      for (auto& s : symbols_of(d)) {
        auto it = g.symbols.find(s);
        const bool data = it != g.symbols.end() && it->second.data;
        if (!data && std::find(images.begin(), images.end(), s) == images.end() && std::find(to.begin(), to.end(), s) == to.end()) to.push_back(s);
      }
    };
    std::vector<std::string> edges;
    for (NodeId id : windows_of(g)) {
      auto& dims = g.value(g.node(id).outputs[0]).type.dims;
      for (size_t a = 0; a < dims.size(); ++a) add(a == 0 ? images : edges, dims[a]);
    }
    std::erase_if(images, [&](auto& s) { return std::find(edges.begin(), edges.end(), s) != edges.end(); });
    for (NodeId id : g.order())
      for (ValueId v : g.node(id).outputs)
        if (v && g.value(v).type.ranked && g.value(v).type.rank() > kAxis)
          for (auto& d : g.value(v).type.dims) add(others, d);
  }
  Sizes only_images(const ir::Graph& g, int64_t count) const {
    Sizes out;
    set(out, g, images, count);
    return out;
  }
  // All others as large, of one image; where no others are, so many images. more: beyond that, of the first of them; of the second
  // twice as much, and so on.
  Sizes at(const ir::Graph& g, int64_t size, int64_t more = 0) const {
    Sizes out = only_images(g, others.empty() ? std::max<int64_t>(size, 1) + more : 1);
    set(out, g, others, size, more);
    return out;
  }

 private:
  // The nearest to n that their ranges allow, and more, as far as they allow.
  static void set(Sizes& sizes, const ir::Graph& g, const std::vector<std::string>& symbols, int64_t n, int64_t more = 0) {
    int64_t times = 0;
    for (auto& s : symbols) {
      auto it = g.symbols.find(s);
      const ir::SymbolInfo any, &info = it == g.symbols.end() ? any : it->second;
      const int64_t least = std::clamp(n, info.min, info.max), beyond = ++times * more;
      sizes[s] = info.max - least < beyond ? info.max : least + beyond;
    }
  }
};

// The size at which the largest node's maps have so many bytes, or the largest that is allowed; nothing where no size of a
// window's maps is open.
int64_t reference_size(const ir::Graph& g, const OpenSizes& open, int64_t rows) {
  constexpr int64_t kSmallest = 64, kUsual = 512, kTested = 96;
  if (open.others.empty() && open.images.empty()) return 0;
  if (rows > 0) return open.others.empty() ? 2 : kTested;
  NodeId largest;
  double most = 0;
  const Rows usual(g, open.at(g, open.others.empty() ? 1 : kUsual), true);
  for (NodeId id : windows_of(g))
    if (double here = usual.bytes(id); here > most) most = here, largest = id;
  if (!largest) return 0;
  int64_t size = open.others.empty() ? 2 : kSmallest;
  while (size < kLargestSize && Rows(g, open.at(g, size), true).bytes(largest) < kReferenceBytes) size += size / 2;
  return size;
}

// Sizes from the smallest on at which strips have enough rows: what is the same for all of them is taken to hold beyond. None: ranges do
// not allow so many rows.
std::vector<Rows> samples_of(const ir::Graph& g, const OpenSizes& open, const Group& group) {
  auto rows = [&](int64_t size) {
    const Rows at(g, open.at(g, size), true);
    const ValueId lowest = at.lowest(group);
    return at.height(lowest) / group.count;
  };
  int64_t low = 1, high = 1;
  while (high < kLargestSize && rows(high) < group.least_rows) high *= 2;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (rows(middle) < group.least_rows) low = middle + 1;
    else high = middle;
  }
  if (rows(low) < group.least_rows) return {};
  std::vector<Rows> out;
  auto add = [&](int64_t more) { out.emplace_back(g, open.at(g, low, more), true); };
  for (int64_t more = 0; more < 24; ++more) add(more);
  for (int64_t k = 1; k < 24; ++k) add(low * k * k / 23 + 13 * k);
  return out;
}

// The groups in strips, in the ways given for each, those that can be.
bool cut_all(ir::Graph& g, std::vector<std::vector<Group>> groups, const OpenSizes& open, PassContext& c) {
  bool changed = false;
  for (auto& ways : groups) {
    bool done = ways.empty();
    while (!done) {
      std::vector<std::vector<Rows>> samples;
      std::erase_if(ways, [&](auto& way) {
        auto at = way.open ? samples_of(g, open, way) : std::vector<Rows>(1, Rows(g, open.only_images(g, 1), true));
        if (at.empty()) return true;
        samples.push_back(std::move(at));
        return false;
      });
      if (ways.empty()) break;
      done = cut(g, ways, samples, c.trace);
      changed |= done;
      // Larger strips may do, whose windows reach no further than one of them.
      for (auto& way : ways) way.least_rows *= 2;
      done |= !ways[0].open || ways[0].least_rows > kMostLeastRows;
    }
  }
  return changed;
}

}  // namespace

Result<bool> strips(ir::Graph& g, PassContext& c) {
  const OpenSizes open(g);
  // Maps of which all but the number is known, for one of them; more of them may want more strips.
  std::vector<std::vector<Group>> groups;
  {
    const Cutter cutter(g, c.options.strip_rows, open.only_images(g, 1));
    std::vector<Rows> scales;
    for (int64_t n : kImages) scales.emplace_back(g, open.only_images(g, n), true);
    for (auto& group : cutter.choose()) {
      std::vector<Group> ways{group};
      if (!open.images.empty() && std::any_of(group.nodes.begin(), group.nodes.end(), [&](NodeId id) { return !g.value(g.node(id).outputs[0]).type.dims[0].known(); })) {
        auto two = cutter.ways(group, scales, true);
        if (two.size() == 2) ways = two;
      }
      groups.push_back(std::move(ways));
    }
  }
  if (groups.empty()) return false;
  const ir::Graph before = g;
  const Trace trace = c.trace;
  if (!cut_all(g, std::move(groups), open, c)) return false;
  // A whole input and a whole output beside the strips may be more than two maps were; much more is no gain.
  auto peak = [](const ir::Graph& graph) { return static_cast<double>(memory_peak(graph, graph.order())); };
  if (c.options.strip_rows > 0 || peak(g) <= kMostMemory * peak(before)) return true;
  g = before, c.trace = trace;
  return false;
}

Result<bool> open_strips(ir::Graph& g, PassContext& c) {
  const OpenSizes open(g);
  const int64_t size = reference_size(g, open, c.options.strip_rows);
  if (size == 0) return false;
  std::vector<std::vector<Group>> groups;
  {
    const Cutter cutter(g, c.options.strip_rows, open.at(g, size));
    std::vector<Rows> scales;
    for (double k : kScales) scales.emplace_back(g, open.at(g, static_cast<int64_t>(k * static_cast<double>(size))), true);
    for (auto& group : cutter.choose()) groups.push_back(cutter.ways(group, scales, false));
    // The largest maps gain most.
    auto bytes = [&](auto& ways) {
      double sum = 0;
      if (!ways.empty())
        for (NodeId id : ways[0].nodes) sum += cutter.rows().map(g.node(id).outputs[0]).bytes;
      return sum / std::max<double>(1, ways.empty() ? 1 : static_cast<double>(ways[0].nodes.size()));
    };
    std::stable_sort(groups.begin(), groups.end(), [&](auto& a, auto& b) { return bytes(a) > bytes(b); });
    int64_t left = kMostPieces;
    for (auto& ways : groups) {
      std::erase_if(ways, [&](auto& way) {
        const int64_t pieces = way.count * static_cast<int64_t>(way.nodes.size());
        if (pieces > left) return true;
        left -= pieces;
        return false;
      });
    }
  }
  return cut_all(g, std::move(groups), open, c);
}

}  // namespace ge::passes
