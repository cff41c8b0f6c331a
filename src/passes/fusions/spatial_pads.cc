#include "passes/fusions/spatial_pads.h"

#include "ops/pad.h"
#include "passes/fusions/cube_group.h"

namespace ge::passes {
namespace {

struct KnownPads {
  std::vector<int64_t> begins, ends;
};
std::optional<KnownPads> known_pads(const ir::Graph& g, const ir::Node& n) {
  auto pads = ops::pads_of(g, n);
  if (!pads) return std::nullopt;
  KnownPads out;
  for (auto& d : pads->begins) {
    if (!d.known()) return std::nullopt;
    out.begins.push_back(d.value());
  }
  for (auto& d : pads->ends) {
    if (!d.known()) return std::nullopt;
    out.ends.push_back(d.value());
  }
  return out;
}

}  // namespace

Verdict pads_spatial_axes(const Match& m, double value) {
  auto& pad = m.node("p");
  if (ir::attr_string(pad, "mode", "constant") != "constant") return no("the padding is not constant");
  auto v = m.has("value") ? scalar_constant(*m.g, m.value("value")) : std::optional(0.0);
  if (!v || *v != value) return no(value == 0 ? "the padding is not zero" : "the padding is not -inf");
  auto pads = m.type("x").ranked ? known_pads(*m.g, pad) : std::nullopt;
  if (!pads) return no("the padding is not known", "make pads a constant");
  for (size_t i = 0; i < pads->begins.size(); ++i) {
    if (i < 2 && (pads->begins[i] || pads->ends[i])) return no("batch or channels are padded too", "pad these in a Pad of their own");
    if (pads->begins[i] < 0 || pads->ends[i] < 0) return no("the padding crops");
  }
  return yes();
}

std::vector<int64_t> joint_pads(const Match& m, const ir::Node& n) {
  auto pads = *known_pads(*m.g, m.node("p"));
  size_t spatial = pads.begins.size() - 2;
  auto own = ir::attr_ints(n, "pads");
  own.resize(2 * spatial);
  for (size_t i = 0; i < spatial; ++i) {
    own[i] += pads.begins[2 + i];
    own[spatial + i] += pads.ends[2 + i];
  }
  return own;
}

}  // namespace ge::passes
