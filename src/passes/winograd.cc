// Chooses the convolutions that run by minimal filtering (kernels/cube/winograd.h): attribute "winograd" of
// ge.Conv, the size of the tile. Large maps transform their weights in each run; for small ones that takes too
// long, and the file holds transformed weights ("winograd_stored"), which are 4 (tile 4) or 1.8 times (tile 2) as
// large: by a static cost model, best gain a byte first, within a budget. Where sizes are open, the run that finds
// out chooses between both ways; what would be stored is then made, by the first run that wants it, of the weights of the
// direct sum, and stays in the arena ("winograd_kept").
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <span>

#include "kernels/cube/winograd_cost.h"
#include "passes/conv_cost.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

using ir::NodeId;

// What a size that is not known may be: a small map, one of which the choice depends, a large one, several images.
struct Guess {
  double spatial, images;
};
constexpr Guess kGuesses[] = {{32, 1}, {8, 1}, {96, 1}, {32, 4}, {32, 16}, {32, 64}};
constexpr double kFew = 4;             // images for which memory counts
constexpr double kSmall = 256 << 10;  // bytes

using kernels::cube::direct_cycles;
using kernels::cube::kLeastGain;
using kernels::cube::filter_cycles;
using kernels::cube::winograd_cycles;
using Conv = kernels::cube::ConvCost;

// A guess at a size, not outside of what its symbols' ranges and gears allow (sizes grow with their symbols).
double within(const ir::Graph& g, const Dim& d, double guess) {
  auto end = [&](bool most) -> std::optional<int64_t> {
    auto value = d.eval([&](std::string_view name) -> std::optional<int64_t> {
      auto symbol = g.symbols.find(name);
      ir::SymbolInfo range = symbol == g.symbols.end() ? ir::SymbolInfo{} : symbol->second;
      auto at = static_cast<size_t>(std::find(g.gears.symbols.begin(), g.gears.symbols.end(), name) - g.gears.symbols.begin());
      if (at < g.gears.symbols.size()) {
        auto less = [&](auto& a, auto& b) { return a[at] < b[at]; };
        auto [low, high] = std::minmax_element(g.gears.sizes.begin(), g.gears.sizes.end(), less);
        range.min = (*low)[at], range.max = (*high)[at];
      }
      if (most && range.max == INT64_MAX) return std::nullopt;
      return most ? range.max : range.min;
    });
    return value.ok() ? std::optional(*value) : std::nullopt;
  };
  auto low = end(false), high = end(true);
  if (low) guess = std::max(guess, static_cast<double>(*low));
  if (high) guess = std::min(guess, static_cast<double>(std::max<int64_t>(*high, 1)));
  return guess;
}

bool is_conv(const ir::Graph& g, const ir::Node& n) {
  auto& y = g.value(n.outputs[0]).type;
  return (n.op == "Conv" || n.op == "ge.Conv") && y.ranked && y.rank() >= 3;
}

// Maps of one model hang together: that of the first convolutions is 16 times as wide as that of the last. What is guessed is
// the size in the middle, and others are larger or smaller than that as they are for some size of the input.
class Relation {
 public:
  explicit Relation(const ir::Graph& g) : g_(g) {
    std::vector<double> all;
    for (NodeId id : g.order())
      if (is_conv(g, g.node(id)))
        for (auto& d : edges(g.node(id)))
          if (auto size = example(d)) all.push_back(*size);
    if (all.empty()) return;
    auto middle = all.begin() + static_cast<int64_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    middle_ = *middle;
  }
  double to_middle(const Dim& d) const {
    constexpr double kMost = 16;
    auto size = middle_ > 0 ? example(d) : std::nullopt;
    return size ? std::clamp(*size / middle_, 1 / kMost, kMost) : 1;
  }

 private:
  std::vector<Dim> edges(const ir::Node& n) const {
    auto& dims = g_.value(n.outputs[0]).type.dims;
    std::vector<Dim> out;
    std::copy_if(dims.begin() + 2, dims.end(), std::back_inserter(out), [](auto& d) { return !d.known(); });
    return out;
  }
  std::optional<double> example(const Dim& d) const {
    constexpr int64_t kInput = 512;   // most models divide it evenly
    auto value = d.eval([&](std::string_view name) -> std::optional<int64_t> {
      auto it = g_.symbols.find(name);
      return it == g_.symbols.end() ? kInput : std::clamp(kInput, it->second.min, it->second.max);
    });
    return value.ok() && *value > 0 ? std::optional(static_cast<double>(*value)) : std::nullopt;
  }
  const ir::Graph& g_;
  double middle_ = 0;
};

using Size = std::function<double(const Dim&)>;   // of one that is not known

// Shape of a convolution that cube.winograd takes. image: their number, where that is not known.
std::optional<Conv> candidate(const ir::Graph& g, const ir::Node& n, const Size& open, const Size& image) {
  if (!is_conv(g, n)) return std::nullopt;
  auto& x = g.value(n.inputs[0]).type;
  auto& y = g.value(n.outputs[0]).type;
  auto* w = g.value(n.inputs[1]).constant.get();
  if (!w || w->dtype() != DType::f32 || w->count() == 0 || !x.ranked || x.dtype != DType::f32 || y.dtype != DType::f32) return std::nullopt;
  if (x.rank() < 3 || x.rank() > 5 || ir::attr_int(n, "group", 1) != 1) return std::nullopt;
  for (int64_t v : ir::attr_ints(n, "strides"))
    if (v != 1) return std::nullopt;
  auto& k = w->dims();
  size_t rank = k.size();
  if (k[rank - 1] != 3 || (rank >= 4 && k[rank - 2] != 3 && k[rank - 2] != 1) || (rank == 5 && k[2] != 1)) return std::nullopt;
  Conv c;
  auto size = [&](const Dim& d) { return d.known() ? static_cast<double>(d.value()) : open(d); };
  c.m = static_cast<double>(k[0]), c.c = static_cast<double>(k[1]);
  c.images = (y.dims[0].known() ? size(y.dims[0]) : image(y.dims[0])) * (rank == 5 ? size(y.dims[2]) : 1);
  c.width = size(y.dims.back());
  c.two_axes = rank >= 4 && k[rank - 2] == 3;
  if (rank >= 4) c.height = size(y.dims[rank - 2]);
  auto dilations = ir::attr_ints(n, "dilations");
  if (!dilations.empty()) c.phases_w = std::min(c.width, static_cast<double>(dilations.back()));
  if (dilations.size() > 1 && c.two_axes) c.phases_h = std::min(c.height, static_cast<double>(dilations[dilations.size() - 2]));
  return c;
}

// relation: null where every map has the guess's size.
std::optional<Conv> candidate(const ir::Graph& g, const ir::Node& n, const Guess& guess, const Relation* relation) {
  if (!is_conv(g, n)) return std::nullopt;
  // A line is longer than an edge.
  const double unknown = g.value(n.outputs[0]).type.rank() == 3 ? guess.spatial * guess.spatial / 8 : guess.spatial;
  auto open = [&](const Dim& d) { return within(g, d, relation ? std::max(1.0, unknown * relation->to_middle(d)) : unknown); };
  return candidate(g, n, open, [&](const Dim& d) { return within(g, d, guess.images); });
}

// The convolution for each guess that makes a difference.
std::vector<Conv> scenarios(const ir::Graph& g, const ir::Node& n, const Relation& relation) {
  std::vector<Conv> out;
  auto first = candidate(g, n, kGuesses[0], &relation);
  if (!first) return out;
  out.push_back(*first);
  auto& y = g.value(n.outputs[0]).type.dims;
  bool batch = !y[0].known(), spatial = std::any_of(y.begin() + 2, y.end(), [](auto& d) { return !d.known(); });
  for (auto& guess : std::span(kGuesses).subspan(1))
    if ((spatial && guess.spatial != kGuesses[0].spatial) || (batch && guess.images != kGuesses[0].images)) out.push_back(*candidate(g, n, guess, &relation));
  return out;
}

enum class Filters : uint8_t { each_run, kept, stored };

// Cycles that a tile gains, of those that the first guess takes: the mean of the shares gained. Where the file has no
// transformed weights and the sizes are not known, the run takes the direct sum if that is faster.
double gained(const std::vector<Conv>& all, int tile, Filters filters) {
  double sum = 0;
  for (auto& c : all) {
    double direct = direct_cycles(c), gain = direct - winograd_cycles(c, tile) - (filters != Filters::each_run ? 0 : filter_cycles(c, tile));
    sum += (filters == Filters::stored || all.size() == 1 ? gain : std::max(0.0, gain)) / direct;
  }
  return sum / static_cast<double>(all.size()) * direct_cycles(all[0]);
}

// Of input and output of a map of the first guess, the mean over small numbers of images.
double map_bytes(const std::vector<Conv>& all) {
  double images = 0, count = 0;
  for (auto& c : all)
    if (c.height == all[0].height && c.width == all[0].width && (c.images <= kFew || count == 0)) images += c.images, ++count;
  return 4 * images / count * all[0].height * all[0].width * (all[0].c + all[0].m);
}

struct Choice {
  NodeId node;
  int tile;
  Filters filters;
  double gain;     // cycles
  double grown;    // bytes
};

// Beyond the weights of the direct sum, also where these stay in the file: once transformed they are pages of a file that
// nobody reads, which the system takes back when it wants memory.
double grown_bytes(const Conv& c, int tile) {
  double edge = tile + 2, panels = std::ceil(c.m / 16) * 16, taps = c.two_axes ? 9 : 3;
  return ((c.two_axes ? edge * edge : edge) - taps) * panels * c.c * 4;
}

// Runs as a task list in one arena, where something can stay; what does not is made in each run.
bool has_one_arena(const ir::Graph& g) {
  if (!g.scope.empty() || std::any_of(g.symbols.begin(), g.symbols.end(), [](auto& s) { return s.second.data; })) return false;
  for (NodeId id : g.order()) {
    auto& n = g.node(id);
    for (auto v : n.outputs)
      if (v && g.value(v).type.kind != ir::TypeKind::tensor) return false;
    for (auto& [name, attr] : n.attrs)
      if (std::holds_alternative<std::shared_ptr<ir::Graph>>(attr) || std::holds_alternative<std::vector<std::shared_ptr<ir::Graph>>>(attr)) return false;
  }
  return true;
}

double weight_bytes(const ir::Graph& g) {
  double sum = 0;
  for (size_t i = 0; i < g.value_capacity(); ++i) {
    auto& v = g.value(ir::ValueId{static_cast<int32_t>(i)});
    if (v.constant && !v.uses.empty()) sum += static_cast<double>(v.constant->bytes());
  }
  return sum;
}

}  // namespace

std::optional<double> winograd_cost(const ir::Graph& g, const ir::Node& n, const Size& size) {
  auto conv = size ? candidate(g, n, size, size) : candidate(g, n, kGuesses[0], nullptr);
  int tile = static_cast<int>(ir::attr_int(n, "winograd", 0));
  if (!conv || !tile) return std::nullopt;
  return winograd_cycles(*conv, tile) + (ir::attr_int(n, "winograd_stored", 0) || ir::attr_int(n, "winograd_kept", 0) ? 0 : filter_cycles(*conv, tile));
}

Result<bool> winograd(ir::Graph& g, PassContext& c) {
  double budget = c.options.winograd_budget * weight_bytes(g);
  std::vector<Choice> choices;
  std::map<int, Choice> chosen;
  const bool keeps = has_one_arena(g);
  const Relation relation(g);
  for (NodeId id : g.order()) {
    auto all = scenarios(g, g.node(id), relation);
    if (all.empty()) continue;
    auto* conv = &all[0];
    double direct = direct_cycles(*conv), unstored = 0;
    for (int tile : {2, 4}) {
      double gain = gained(all, tile, Filters::each_run);
      // The transformed weights lie in the arena meanwhile.
      bool small = grown_bytes(*conv, tile) < map_bytes(all) + kSmall;
      // Where sizes are open the run decides: it need not pay for most of them.
      const double least = all.size() > 1 ? 0 : kLeastGain * direct;
      if (!small || gain <= least || gain < unstored) continue;
      unstored = gain;
      chosen.insert_or_assign(id.v, Choice{id, tile, Filters::each_run, gain, 0});
    }
    const Filters filters = keeps && all.size() > 1 ? Filters::kept : Filters::stored;
    for (int tile : {2, 4}) {
      double gain = gained(all, tile, filters);
      if (gain > kLeastGain * direct && gain > unstored) choices.push_back({id, tile, filters, gain, grown_bytes(*conv, tile)});
    }
  }
  auto worth = [&](const Choice& x) {
    auto old = chosen.find(x.node.v);
    return (x.gain - (old == chosen.end() ? 0 : old->second.gain)) / x.grown;
  };
  std::stable_sort(choices.begin(), choices.end(), [&](auto& a, auto& b) { return worth(a) > worth(b); });
  // The first round fills the budget; the second replaces a small tile by a larger one that still fits.
  for (int round = 0; round < 2; ++round)
    for (auto& choice : choices) {
      auto old = chosen.find(choice.node.v);
      bool better = old != chosen.end() && choice.gain > old->second.gain;
      if (old != chosen.end() && (!better || (round == 0 && old->second.filters != Filters::each_run))) continue;
      double more = choice.grown - (better ? old->second.grown : 0);
      if (more > budget) continue;
      budget -= more;
      chosen.insert_or_assign(choice.node.v, choice);
    }
  for (auto& [id, choice] : chosen) {
    auto& n = g.node(choice.node);
    n.op = "ge.Conv";
    n.attrs["winograd"] = int64_t(choice.tile);
    n.attrs["winograd_stored"] = int64_t(choice.filters == Filters::stored);
    if (choice.filters == Filters::kept) n.attrs["winograd_kept"] = int64_t(1);
  }
  return !chosen.empty();
}

}  // namespace ge::passes
