//   x -> Conv|ConvTranspose(w, b) -> BatchNormalization(scale, shift, mean, var) -> y
//   x -> Conv(w', b') -> y      w' = w * k, b' = (b - mean) * k + shift, k = scale / sqrt(var + eps)
// Exact in real arithmetic; computed in double.
#include <cmath>

#include "passes/fusions/cube_group.h"

namespace ge::passes {
namespace {

Verdict is_f32(const Match& m) {
  if (m.type("w").dtype != DType::f32) return no("the weights are not f32");
  if (Verdict v = takes_tail(*m.g, m.nodes.at("t")); !v) return v;
  auto& conv = m.node("t");
  return conv.outputs.size() == 1 && ir::attr_int(m.node("y"), "training_mode", 0) == 0 ? yes() : no("BatchNormalization is in training mode", "export the model for inference");
}

Result<ir::NodeId> build(ir::Graph& g, const Match& m) {
  int64_t channels = m.constant("scale")->count();
  const float *scale = m.constant("scale")->as<float>(), *shift = m.constant("shift")->as<float>(),
              *mean = m.constant("mean")->as<float>(), *var = m.constant("var")->as<float>();
  const float* b = m.has("b") ? m.constant("b")->as<float>() : nullptr;
  double epsilon = ir::attr_float(m.node("y"), "epsilon", 1e-5);
  std::vector<float> bias(static_cast<size_t>(channels));
  std::vector<double> factor(bias.size());
  for (int64_t c = 0; c < channels; ++c) {
    double k = scale[c] / std::sqrt(double(var[c]) + epsilon);
    factor[static_cast<size_t>(c)] = k;
    bias[static_cast<size_t>(c)] = static_cast<float>(((b ? b[c] : 0.0) - mean[c]) * k + shift[c]);
  }
  CubeGroup group;
  Verdict v = read_group(g, m.nodes.at("t"), group);
  GE_CHECK(v.holds, v.why);
  group.w = g.add_constant(scaled_weights(*m.constant("w"), group, factor), g.value(m.value("w")).name + ".bn");
  group.bias = g.add_constant(vector_f32(bias), "bias");
  return write_group(g, m, group, m.value("y"));
}

const RegisterFusion r(Fusion{
    .name = "conv_bn",
    .doc = "BatchNormalization folded into the convolution before it",
    .order = 0,
    .patterns = {R"(%t = Conv|ConvTranspose(%x, %w:const, %b?:const)
                    %y = BatchNormalization(%t, %scale:const, %shift:const, %mean:const, %var:const))"},
    .require = {is_f32},
    .build = build});

}  // namespace
}  // namespace ge::passes
