//   Conv|ConvTranspose(x, w, b) -> Mul(c)  becomes  Conv(x, w * c, b * c)     c constant, one value for each channel
#include "passes/fusions/cube_group.h"

namespace ge::passes {
namespace {

Verdict scales_channels(const Match& m) {
  auto& out = m.g->value(m.g->node(m.nodes.at("t")).outputs[0]).type;
  if (m.type("w").dtype != DType::f32) return no("the weights are not f32");
  if (Verdict v = takes_tail(*m.g, m.nodes.at("t")); !v) return v;
  if (!per_channel(*m.g, m.value("c"), out, 1)) return no("the constant factor is not one value for each channel", "a factor has the shape [C,1,1]");
  return yes();
}

Result<ir::NodeId> build(ir::Graph& g, const Match& m) {
  CubeGroup group;
  Verdict v = read_group(g, m.nodes.at("t"), group);
  GE_CHECK(v.holds, v.why);
  auto k = *per_channel(g, m.value("c"), g.value(m.value("t")).type, 1);
  group.w = g.add_constant(scaled_weights(*m.constant("w"), group, {k.begin(), k.end()}), g.value(m.value("w")).name + ".scaled");
  if (m.has("b")) {
    for (size_t i = 0; i < k.size(); ++i) k[i] *= m.constant("b")->as<float>()[i];
    group.bias = g.add_constant(vector_f32(k), "bias");
  }
  return write_group(g, m, group, m.value("y"));
}

const RegisterFusion r(Fusion{.name = "conv_scale",
                              .doc = "a constant factor of each channel goes into the convolution's weights",
                              .order = 0,
                              .patterns = {R"(%t = Conv|ConvTranspose(%x, %w:const, %b?:const)
                                              %y = Mul(%t, %c:const))"},
                              .require = {scales_channels},
                              .build = build});

}  // namespace
}  // namespace ge::passes
