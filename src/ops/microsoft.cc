// Operators of com.microsoft that are written as canonical ones on import: activations, products and
// normalizations that ONNX Runtime's optimizer had fused. Fusion then starts from one form.
#include "base/text.h"
#include "ops/rewrite.h"

namespace ge::ops {
namespace {

ValueId add_optional(UpgradeContext& c, ValueId x, ValueId y) { return y ? make_node(c, "Add", {x, y}) : x; }

Status upgrade_gelu(UpgradeContext& c) {
  bool tanh = c.node().op == "com.microsoft.FastGelu";
  ValueId x = add_optional(c, input_of(c, 0), input_of(c, 1));
  become(c, "Gelu", {x}, {{"approximate", std::string(tanh ? "tanh" : "none")}});
  return ok();
}

// x * sigmoid(alpha * x)
Status upgrade_quick_gelu(UpgradeContext& c) {
  double alpha = ir::attr_float(c.node(), "alpha", static_cast<double>(1.702f));
  become(c, "Swish", {input_of(c, 0)}, {{"alpha", alpha}});
  return ok();
}

Status upgrade_matmul(UpgradeContext& c) {
  auto flag = [&](const char* a) { return ir::attr_int(c.node(), a, 0) != 0; };
  if (flag("transBatchA") || flag("transBatchB")) return upgrade_error(c, "transBatchA and transBatchB are not supported");
  double alpha = ir::attr_float(c.node(), "alpha", 1);
  bool a = flag("transA"), b = flag("transB");
  if (!a && !b && alpha == 1) become(c, "MatMul", {input_of(c, 0), input_of(c, 1)});
  else
    become(c, "ge.MatMul", {input_of(c, 0), input_of(c, 1)},
           {{"transpose_a", int64_t{a}}, {"transpose_b", int64_t{b}}, {"alpha", alpha}});
  return ok();
}

// c's node becomes the activation of x.
Status become_activation(UpgradeContext& c, const std::string& name, const std::vector<double>& p, ValueId x) {
  auto number = [&](size_t i, double otherwise) { return i < p.size() ? p[i] : otherwise; };
  if (name.empty()) become(c, "Identity", {x});
  else if (name == "Relu" || name == "Tanh" || name == "Sigmoid") become(c, name, {x});
  else if (name == "LeakyRelu") become(c, name, {x}, {{"alpha", number(0, 0.01)}});
  else if (name == "HardSigmoid") become(c, name, {x}, {{"alpha", number(0, 0.2)}, {"beta", number(1, 0.5)}});
  else if (name == "Clip" && p.size() == 2)
    become(c, name, {x, c.constant_float(static_cast<float>(p[0])), c.constant_float(static_cast<float>(p[1]))});
  else return upgrade_error(c, format("activation '{}' is not supported", name));
  return ok();
}

Status upgrade_conv(UpgradeContext& c) {
  ir::Attrs attrs = c.node().attrs;
  std::string act = ir::attr_string(c.node(), "activation", "");
  auto params = ir::attr_floats(c.node(), "activation_params");
  attrs.erase("activation");
  attrs.erase("activation_params");
  std::vector<ValueId> in{input_of(c, 0), input_of(c, 1)};
  if (ValueId b = input_of(c, 2)) in.push_back(b);
  ValueId y = make_node(c, "Conv", std::move(in), std::move(attrs));
  y = add_optional(c, y, input_of(c, 3));
  return become_activation(c, act, params, y);
}

Status upgrade_gemm(UpgradeContext& c) {
  ir::Attrs attrs;
  for (auto* a : {"alpha", "beta", "transA", "transB"})
    if (auto it = c.node().attrs.find(a); it != c.node().attrs.end()) attrs[a] = it->second;
  std::string act = ir::attr_string(c.node(), "activation", "");
  std::vector<double> params;
  for (auto* a : {"activation_alpha", "activation_beta"})
    if (ir::has_attr(c.node(), a)) params.push_back(ir::attr_float(c.node(), a, 0));
  std::vector<ValueId> in{input_of(c, 0), input_of(c, 1)};
  if (ValueId b = input_of(c, 2)) in.push_back(b);
  return become_activation(c, act, params, make_node(c, "Gemm", std::move(in), std::move(attrs)));
}

// input + skip (+ bias), kept as output 3, then a normalization over the last axis.
Status upgrade_skip(UpgradeContext& c) {
  bool rms = c.node().op == "com.microsoft.SkipSimplifiedLayerNormalization";
  double epsilon = ir::attr_float(c.node(), "epsilon", static_cast<double>(1e-12f));
  ValueId scale = input_of(c, 2), shift = rms ? ValueId{} : input_of(c, 3), bias = input_of(c, rms ? 3 : 4);
  ValueId sum = add_optional(c, make_node(c, "Add", {input_of(c, 0), input_of(c, 1)}), bias);
  sum = hand_over(c, 3, sum);
  std::vector<ValueId> in{sum, scale};
  if (shift) in.push_back(shift);
  auto& out = c.node().outputs;
  if (rms && ((out.size() > 1 && out[1]) || (out.size() > 2 && out[2]))) return upgrade_error(c, "its statistics as outputs are not supported");
  out.resize(std::min<size_t>(out.size(), rms ? 1 : 3));
  become(c, rms ? "RMSNormalization" : "LayerNormalization", std::move(in), {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  return ok();
}

// ONNX Runtime's own name in ONNX's domain.
Status upgrade_simplified(UpgradeContext& c) {
  double epsilon = ir::attr_float(c.node(), "epsilon", static_cast<double>(1e-5f));
  int64_t axis = ir::attr_int(c.node(), "axis", -1);
  auto& out = c.node().outputs;
  if (out.size() > 1 && out[1]) return upgrade_error(c, "its statistics as outputs are not supported");
  out.resize(1);
  become(c, "RMSNormalization", {input_of(c, 0), input_of(c, 1)}, {{"axis", axis}, {"epsilon", epsilon}});
  return ok();
}

struct Entry {
  const char* name;
  int min_inputs, max_inputs, max_outputs;
  Status (*upgrade)(UpgradeContext&);
};
const Entry kTable[] = {
    {"com.microsoft.Gelu", 1, 1, 1, upgrade_gelu},
    {"com.microsoft.FastGelu", 1, 2, 1, upgrade_gelu},
    {"com.microsoft.BiasGelu", 2, 2, 1, upgrade_gelu},
    {"com.microsoft.QuickGelu", 1, 1, 1, upgrade_quick_gelu},
    {"com.microsoft.FusedMatMul", 2, 2, 1, upgrade_matmul},
    {"com.microsoft.TransposeMatMul", 2, 2, 1, upgrade_matmul},
    {"com.microsoft.FusedConv", 2, 4, 1, upgrade_conv},
    {"com.microsoft.FusedGemm", 2, 3, 1, upgrade_gemm},
    {"com.microsoft.SkipLayerNormalization", 3, 5, 4, upgrade_skip},
    {"com.microsoft.SkipSimplifiedLayerNormalization", 3, 4, 4, upgrade_skip},
    {"SimplifiedLayerNormalization", 2, 2, 2, upgrade_simplified},
};

[[maybe_unused]] const bool registered = [] {
  for (auto& e : kTable) {
    OpDef d = rewritten(e.name, e.min_inputs, e.max_inputs, e.upgrade);
    d.max_outputs = e.max_outputs;
    Register r(std::move(d));
  }
  return true;
}();

}  // namespace
}  // namespace ge::ops
