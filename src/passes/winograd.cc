// Chooses the convolutions that run by minimal filtering (kernels/cube/winograd.h): attribute "winograd" of
// ge.Conv, the size of the tile. Large maps transform their weights in each run; for small ones that takes too
// long, and the file holds transformed weights ("winograd_stored"), which are 4 (tile 4) or 1.8 times (tile 2) as
// large: by a static cost model, best gain a byte first, within a budget.
#include <algorithm>
#include <cmath>
#include <map>

#include "passes/conv_cost.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

using ir::NodeId;

constexpr double kUnknownSize = 32;   // of a spatial axis whose size is not known
constexpr double kSmall = 256 << 10;  // bytes
constexpr double kLeastGain = 0.08;   // of the direct kernel's time: less is within the model's error

struct Conv {
  double c = 0, m = 0, height = 1, width = 1, images = 1;
  double phases_h = 1, phases_w = 1;   // a dilation makes so many images of one
  bool two_axes = false;
};

// Shape of a convolution that cube.winograd takes.
std::optional<Conv> candidate(const ir::Graph& g, const ir::Node& n) {
  if (n.op != "Conv" && n.op != "ge.Conv") return std::nullopt;
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
  auto size = [](const Dim& d) { return d.known() ? static_cast<double>(d.value()) : kUnknownSize; };
  c.m = static_cast<double>(k[0]), c.c = static_cast<double>(k[1]);
  c.images = (y.dims[0].known() ? size(y.dims[0]) : 1) * (rank == 5 ? size(y.dims[2]) : 1);
  c.width = size(y.dims.back());
  c.two_axes = rank >= 4 && k[rank - 2] == 3;
  if (rank >= 4) c.height = size(y.dims[rank - 2]);
  auto dilations = ir::attr_ints(n, "dilations");
  if (!dilations.empty()) c.phases_w = std::min(c.width, static_cast<double>(dilations.back()));
  if (dilations.size() > 1 && c.two_axes) c.phases_h = std::min(c.height, static_cast<double>(dilations[dilations.size() - 2]));
  return c;
}

// Share of the peak that the microkernel reaches with so many columns.
double efficiency(double columns) { return columns >= 48 ? 0.95 : columns >= 32 ? 0.85 : columns >= 16 ? 0.65 : 0.65 * columns / 16; }

// Cycles of one core with two 16-wide units. The numbers were fitted to timings of single layers.
double direct_cycles(const Conv& c) {
  double taps = c.two_axes ? 9 : 3;
  return c.images * c.height * c.width * taps * c.c * c.m / 32 / efficiency(c.m) + 2000;
}

double winograd_cycles(const Conv& c, int tile) {
  double edge = tile + 2, rows = c.two_axes ? edge : 1;
  double tiles = c.images * std::ceil(c.width / c.phases_w / tile) * c.phases_w *
                 (c.two_axes ? std::ceil(c.height / c.phases_h / tile) * c.phases_h : c.height);
  double blocks = std::ceil(tiles / 30), each = tiles / blocks;
  double products = std::ceil(each / 6) * 6 * blocks * edge * rows * c.c * c.m / 32 / (efficiency(std::min(c.m, 64.0)) * 0.9);
  double weights = blocks * edge * rows * c.c * c.m * 4 / 12;   // a core reads some 12 bytes a cycle from L3
  double in = tiles * std::ceil(c.c / 16) * edge * rows * 3.2, out = tiles * std::ceil(c.m / 16) * edge * rows * 2.6;
  return std::max(products, weights) + in + out + blocks * edge * rows * std::ceil(c.m / 64) * 60 + 3000;
}

// What transforming the weights in each run takes.
double filter_cycles(const Conv& c) { return std::ceil(c.m / 16) * c.c * (c.two_axes ? 80 : 16); }

struct Choice {
  NodeId node;
  int tile;
  bool stored;
  double gain;     // cycles
  double grown;    // bytes
};

double grown_bytes(const Conv& c, int tile) {
  double edge = tile + 2, panels = std::ceil(c.m / 16) * 16;
  return ((c.two_axes ? edge * edge : edge) - (c.two_axes ? 9 : 3)) * panels * c.c * 4;
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

std::optional<double> winograd_cost(const ir::Graph& g, const ir::Node& n) {
  auto conv = candidate(g, n);
  int tile = static_cast<int>(ir::attr_int(n, "winograd", 0));
  if (!conv || !tile) return std::nullopt;
  return winograd_cycles(*conv, tile) + (ir::attr_int(n, "winograd_stored", 0) ? 0 : filter_cycles(*conv));
}

Result<bool> winograd(ir::Graph& g, PassContext& c) {
  double budget = c.options.winograd_budget * weight_bytes(g);
  std::vector<Choice> choices;
  std::map<int, Choice> chosen;
  for (NodeId id : g.order()) {
    auto conv = candidate(g, g.node(id));
    if (!conv) continue;
    double direct = direct_cycles(*conv), unstored = 0;
    for (int tile : {2, 4}) {
      double gain = direct - winograd_cycles(*conv, tile) - filter_cycles(*conv);
      // The transformed weights lie in the arena meanwhile.
      bool small = grown_bytes(*conv, tile) < 4 * conv->images * conv->height * conv->width * (conv->c + conv->m) + kSmall;
      if (!small || gain < kLeastGain * direct || gain < unstored) continue;
      unstored = gain;
      chosen.insert_or_assign(id.v, Choice{id, tile, false, gain, 0});
    }
    for (int tile : {2, 4}) {
      double gain = direct - winograd_cycles(*conv, tile);
      if (gain > kLeastGain * direct && gain > unstored) choices.push_back({id, tile, true, gain, grown_bytes(*conv, tile)});
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
      if (old != chosen.end() && (!better || (round == 0 && old->second.stored))) continue;
      double more = choice.grown - (better ? old->second.grown : 0);
      if (more > budget) continue;
      budget -= more;
      chosen.insert_or_assign(choice.node.v, choice);
    }
  for (auto& [id, choice] : chosen) {
    auto& n = g.node(choice.node);
    n.op = "ge.Conv";
    n.attrs["winograd"] = int64_t(choice.tile);
    n.attrs["winograd_stored"] = int64_t(choice.stored);
  }
  return !chosen.empty();
}

}  // namespace ge::passes
