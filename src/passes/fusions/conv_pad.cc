//   Pad(x, pads) -> Conv   becomes   Conv {pads + pads}     zeros around the spatial axes only
#include "base/text.h"
#include "passes/fusions/cube_group.h"

namespace ge::passes {
namespace {

// Padding of each axis, begins then ends; nullopt when it is not known.
std::optional<std::vector<int64_t>> all_pads(const ir::Graph& g, const ir::Node& n) {
  auto e = g.elements(n.inputs[1]);
  auto rank = static_cast<size_t>(g.value(n.inputs[0]).type.rank());
  if (!e) return std::nullopt;
  std::vector<int64_t> axes;
  if (n.inputs.size() > 3 && n.inputs[3]) {
    auto given = g.elements(n.inputs[3]);
    if (!given) return std::nullopt;
    for (auto& a : *given) {
      if (!a.known()) return std::nullopt;
      axes.push_back(a.value() < 0 ? a.value() + static_cast<int64_t>(rank) : a.value());
    }
  } else {
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (e->size() != 2 * axes.size()) return std::nullopt;
  std::vector<int64_t> pads(2 * rank);
  for (size_t i = 0; i < axes.size(); ++i) {
    auto axis = static_cast<size_t>(axes[i]);
    if (axis >= rank || !(*e)[i].known() || !(*e)[axes.size() + i].known()) return std::nullopt;
    pads[axis] = (*e)[i].value();
    pads[rank + axis] = (*e)[axes.size() + i].value();
  }
  return pads;
}

Verdict zeros_around(const Match& m) {
  auto& pad = m.node("p");
  if (ir::attr_string(pad, "mode", "constant") != "constant") return no("the padding is not constant");
  if (m.has("value")) {
    auto v = scalar_constant(*m.g, m.value("value"));
    if (!v || *v != 0) return no("the padding is not zero");
  }
  auto pads = m.type("x").ranked ? all_pads(*m.g, pad) : std::nullopt;
  if (!pads) return no("the padding is not known");
  size_t rank = pads->size() / 2;
  for (size_t i = 0; i < 2; ++i)
    if ((*pads)[i] || (*pads)[rank + i]) return no("batch or channels are padded too");
  for (int64_t p : *pads)
    if (p < 0) return no("the padding crops");
  std::string auto_pad = ir::attr_string(m.node("y"), "auto_pad", "NOTSET");
  return auto_pad == "NOTSET" || auto_pad == "VALID" ? yes() : no(format("the convolution pads by itself ({})", auto_pad));
}

Result<ir::NodeId> build(ir::Graph& g, const Match& m) {
  auto pads = *all_pads(g, m.node("p"));
  size_t rank = pads.size() / 2, spatial = rank - 2;
  CubeGroup group;
  Verdict v = read_group(g, m.nodes.at("y"), group);
  GE_CHECK(v.holds, v.why);
  auto own = ir::attr_ints(m.node("y"), "pads");
  own.resize(2 * spatial);
  for (size_t i = 0; i < spatial; ++i) {
    own[i] += pads[2 + i];
    own[spatial + i] += pads[rank + 2 + i];
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
