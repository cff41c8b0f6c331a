//   Pad(x, pads) -> Conv   becomes   Conv {pads + pads}     zeros around the spatial axes only
#include "base/text.h"
#include "ops/pad.h"
#include "passes/fusions/cube_group.h"

namespace ge::passes {
namespace {

// The same with numbers only; nullopt when a size is not known.
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

Verdict zeros_around(const Match& m) {
  auto& pad = m.node("p");
  if (ir::attr_string(pad, "mode", "constant") != "constant") return no("the padding is not constant");
  if (m.has("value")) {
    auto v = scalar_constant(*m.g, m.value("value"));
    if (!v || *v != 0) return no("the padding is not zero");
  }
  auto pads = m.type("x").ranked ? known_pads(*m.g, pad) : std::nullopt;
  if (!pads) return no("the padding is not known");
  for (size_t i = 0; i < pads->begins.size(); ++i) {
    if (i < 2 && (pads->begins[i] || pads->ends[i])) return no("batch or channels are padded too");
    if (pads->begins[i] < 0 || pads->ends[i] < 0) return no("the padding crops");
  }
  std::string auto_pad = ir::attr_string(m.node("y"), "auto_pad", "NOTSET");
  return auto_pad == "NOTSET" || auto_pad == "VALID" ? yes() : no(format("the convolution pads by itself ({})", auto_pad));
}

Result<ir::NodeId> build(ir::Graph& g, const Match& m) {
  auto pads = *known_pads(g, m.node("p"));
  size_t spatial = pads.begins.size() - 2;
  CubeGroup group;
  Verdict v = read_group(g, m.nodes.at("y"), group);
  GE_CHECK(v.holds, v.why);
  auto own = ir::attr_ints(m.node("y"), "pads");
  own.resize(2 * spatial);
  for (size_t i = 0; i < spatial; ++i) {
    own[i] += pads.begins[2 + i];
    own[spatial + i] += pads.ends[2 + i];
  }
  group.attrs["pads"] = own;
  group.attrs.erase("auto_pad");
  group.x = m.value("x");
  return write_group(g, m, group, m.value("y"));
}

const RegisterFusion r(Fusion{.name = "conv_pad",
                              .doc = "zeros that a Pad puts around become the convolution's own",
                              .order = 0,
                              .patterns = {R"(%p = Pad(%x, %pads, %value?:const, %axes?)
                                              %y = Conv(%p, %w, ...))"},
                              .require = {zeros_around},
                              .build = build});

}  // namespace
}  // namespace ge::passes
