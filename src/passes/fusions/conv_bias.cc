//   Conv|ConvTranspose(x, w, b) -> Add(c)  becomes  the same with bias b + c     c constant, one value for each channel
#include "passes/fusions/cube_group.h"

namespace ge::passes {
namespace {

Verdict one_value_for_each_channel(const Match& m) {
  if (per_channel(*m.g, m.value("c"), m.g->value(m.g->node(m.nodes.at("t")).outputs[0]).type, 1)) return yes();
  return no("the constant that is added is not one value for each channel", "a bias has the shape [C,1,1]");
}
Verdict nothing_in_between(const Match& m) {
  CubeGroup group;
  Verdict v = takes_tail(*m.g, m.nodes.at("t"));
  if (v) v = read_group(*m.g, m.nodes.at("t"), group);
  if (!v) return v;
  if (group.has_act() || group.has_program()) return no("an activation already follows the convolution");
  if (group.bias && !m.g->is_constant(group.bias)) return no("the convolution's own bias is computed at run time", "make it a constant");
  return yes();
}

Result<ir::NodeId> build(ir::Graph& g, const Match& m) {
  CubeGroup group;
  Verdict v = read_group(g, m.nodes.at("t"), group);
  GE_CHECK(v.holds, v.why);
  auto bias = *per_channel(g, m.value("c"), g.value(m.value("t")).type, 1);
  if (group.bias)
    for (size_t i = 0; i < bias.size(); ++i) bias[i] += g.value(group.bias).constant->as<float>()[i];
  group.bias = g.add_constant(vector_f32(bias), "bias");
  return write_group(g, m, group, m.value("y"));
}

const RegisterFusion r(Fusion{.name = "conv_bias",
                              .doc = "a constant added to each channel becomes the convolution's bias",
                              .order = 0,
                              .patterns = {R"(%t = Conv|ge.Conv|ConvTranspose|ge.ConvTranspose(%x, %w, ...)
                                              %y = Add(%t, %c:const))"},
                              .require = {one_value_for_each_channel, nothing_in_between},
                              .build = build});

}  // namespace
}  // namespace ge::passes
