//   Pad(x, pads) -> Conv   becomes   Conv {pads + pads}     zeros around the spatial axes only
#include "base/text.h"
#include "passes/fusions/cube_group.h"
#include "passes/fusions/spatial_pads.h"

namespace ge::passes {
namespace {

Verdict zeros_around(const Match& m) {
  Verdict v = pads_spatial_axes(m, 0);
  if (!v) return v;
  std::string auto_pad = ir::attr_string(m.node("y"), "auto_pad", "NOTSET");
  return auto_pad == "NOTSET" || auto_pad == "VALID" ? yes() : no(format("the convolution pads by itself ({})", auto_pad), "give its padding as pads");
}

Result<ir::NodeId> build(ir::Graph& g, const Match& m) {
  CubeGroup group;
  Verdict v = read_group(g, m.nodes.at("y"), group);
  GE_CHECK(v.holds, v.why);
  group.attrs["pads"] = joint_pads(m, m.node("y"));
  group.attrs.erase("auto_pad");
  group.x = m.value("x");
  return write_group(g, m, group, m.value("y"));
}

const RegisterFusion r(Fusion{.name = "conv_pad",
                              .doc = "zeros that a Pad puts around become the convolution's own",
                              .order = 0,
                              .patterns = {R"(%p = Pad(%x, %pads, %value?:const, %axes?)
                                              %y = Conv|ge.Conv(%p, %w, ...))"},
                              .require = {zeros_around},
                              .build = build});

}  // namespace
}  // namespace ge::passes
