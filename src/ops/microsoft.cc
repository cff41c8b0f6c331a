// Operators of com.microsoft that are written as canonical ones on import: activations, products and
// normalizations that ONNX Runtime's optimizer had fused. Fusion then starts from one form.
#include <array>

#include "base/text.h"
#include "ops/microsoft_activation.h"
#include "ops/rewrite.h"

namespace ge::ops {

Status become_activation(UpgradeContext& c, const std::string& name, const std::vector<double>& p, ValueId x) {
  auto number = [&](size_t i, double otherwise) { return i < p.size() ? p[i] : otherwise; };
  if (name.empty()) become(c, "Identity", {x});
  else if (name == "Relu" || name == "Tanh" || name == "Sigmoid" || name == "Softplus" || name == "Softsign" || name == "HardSwish") become(c, name, {x});
  else if (name == "Elu" || name == "ThresholdedRelu") become(c, name, {x}, {{"alpha", number(0, 1)}});
  else if (name == "Selu") become(c, name, {x}, {{"alpha", number(0, static_cast<double>(1.67326324f))}, {"gamma", number(1, static_cast<double>(1.05070102f))}});
  else if (name == "LeakyRelu") become(c, name, {x}, {{"alpha", number(0, 0.01)}});
  else if (name == "HardSigmoid") become(c, name, {x}, {{"alpha", number(0, 0.2)}, {"beta", number(1, 0.5)}});
  else if (name == "Clip" && p.size() == 2)
    become(c, name, {x, c.constant_float(static_cast<float>(p[0])), c.constant_float(static_cast<float>(p[1]))});
  else return upgrade_error(c, format("activation '{}' is not supported", name));
  return ok();
}

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

// Batches that are turned need to know how many axes there are.
Status infer_batches(InferContext& c) {
  c.set_unranked(0, c.dtype(0));
  for (int i = 0; i < 2; ++i)
    if (c.ranked(i) && c.rank(i) < 2) return c.fail(format("input {} is no matrix", i));
  return ok();
}
// A, or B, with its first axis moved before its last one.
Result<bool> expand_batches(UpgradeContext& c) {
  const ir::Node n = c.node();
  std::vector<ValueId> in{n.inputs[0], n.inputs[1]};
  for (size_t i = 0; i < 2; ++i) {
    if (!ir::attr_int(n, i ? "transBatchB" : "transBatchA", 0)) continue;
    const Type& t = c.graph.value(in[i]).type;
    if (!t.ranked) return false;
    std::vector<int64_t> perm;
    for (int64_t a = 1; a < t.rank() - 1; ++a) perm.push_back(a);
    perm.push_back(0), perm.push_back(t.rank() - 1);
    in[i] = make_node(c, "Transpose", {in[i]}, {{"perm", perm}});
  }
  become(c, "ge.MatMul", std::move(in), {{"transpose_a", ir::attr_int(n, "transA", 0)}, {"transpose_b", ir::attr_int(n, "transB", 0)}, {"alpha", ir::attr_float(n, "alpha", 1)}});
  return true;
}

// Those of the activation, in its own order; Selu has a gamma in the place of a beta.
std::vector<double> activation_parameters(const ir::Node& n) {
  std::vector<double> out;
  for (auto* p : {"activation_alpha", "activation_beta", "activation_gamma"})
    if (ir::has_attr(n, p)) out.push_back(ir::attr_float(n, p, 0));
  return out;
}

Status upgrade_matmul(UpgradeContext& c) {
  const ir::Node n = c.node();
  auto flag = [&](const char* a) { return ir::attr_int(n, a, 0) != 0; };
  const double alpha = ir::attr_float(n, "alpha", 1);
  const bool a = flag("transA"), b = flag("transB"), batches = flag("transBatchA") || flag("transBatchB");
  std::string act = ir::attr_string(n, "activation", "");
  const bool plain = !batches && !a && !b && alpha == 1;
  ir::Attrs attrs = batches ? n.attrs : plain ? ir::Attrs{} : ir::Attrs{{"transpose_a", int64_t{a}}, {"transpose_b", int64_t{b}}, {"alpha", alpha}};
  for (auto* p : {"activation", "activation_alpha", "activation_beta", "activation_gamma", "activation_axis"})
    if (auto it = attrs.find(p); it != attrs.end()) attrs.erase(it);
  const char* op = batches ? "com.microsoft.FusedMatMul" : plain ? "MatMul" : "ge.MatMul";
  if (!act.empty()) return become_activation(c, act, activation_parameters(n), make_node(c, op, {n.inputs[0], n.inputs[1]}, std::move(attrs)));
  become(c, op, {n.inputs[0], n.inputs[1]}, std::move(attrs));
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
  std::vector<ValueId> in{input_of(c, 0), input_of(c, 1)};
  if (ValueId b = input_of(c, 2)) in.push_back(b);
  return become_activation(c, act, activation_parameters(c.node()), make_node(c, "Gemm", std::move(in), std::move(attrs)));
}

// gelu(X W + bias)
Status upgrade_gemm_gelu(UpgradeContext& c) {
  ValueId y = add_optional(c, make_node(c, "MatMul", {input_of(c, 0), input_of(c, 1)}), input_of(c, 2));
  become(c, "Gelu", {y}, {{"approximate", std::string("tanh")}});
  return ok();
}

Status upgrade_bias_add(UpgradeContext& c) {
  become(c, "Add", {make_node(c, "Add", {input_of(c, 0), input_of(c, 1)}), input_of(c, 2)});
  return ok();
}

// Both halves of the last axis.
std::array<ValueId, 2> halves(UpgradeContext& c, ValueId x) {
  auto out = c.graph.node(c.graph.insert("Split", {x}, {Type{}, Type{}}, {{"axis", int64_t{-1}}, {"num_outputs", int64_t{2}}}, c.id)).outputs;
  return {out[0], out[1]};
}

Status upgrade_split_gelu(UpgradeContext& c) {
  auto [left, right] = halves(c, make_node(c, "Add", {input_of(c, 0), input_of(c, 1)}));
  become(c, "Mul", {left, make_node(c, "Gelu", {right})});
  return ok();
}

// softmax(x + bias) over the axes from `axis` on; the bias broadcasts as numpy has it.
Status upgrade_bias_softmax(UpgradeContext& c) {
  int64_t axis = ir::attr_int(c.node(), "axis", 1);
  become(c, "Softmax", {make_node(c, "Add", {input_of(c, 0), input_of(c, 1)})}, {{"axis", axis}, {"flatten", int64_t{1}}});
  return ok();
}

// silu of x, scaled first
Status upgrade_scaled_silu(UpgradeContext& c) {
  ValueId x = input_of(c, 0), scale = input_of(c, 1);
  scale = make_node(c, "CastLike", {scale ? scale : c.constant_float(static_cast<float>(ir::attr_float(c.node(), "alpha", 1))), x});
  become(c, "Swish", {make_node(c, "Mul", {x, scale})});
  return ok();
}

// x + y * gate, or with weights x + y * sigmoid(gate weights)
Status upgrade_gated_add(UpgradeContext& c) {
  ValueId x = input_of(c, 0), y = input_of(c, 1), gate = input_of(c, 2);
  if (ValueId w = input_of(c, 3)) gate = make_node(c, "Sigmoid", {make_node(c, "MatMul", {gate, w})});
  become(c, "Add", {x, make_node(c, "Mul", {y, gate})});
  return ok();
}

// Each group of as many elements as the scale has, normalized by its root mean square, times the activation of the gate.
Status upgrade_gated_norm(UpgradeContext& c) {
  ValueId x = input_of(c, 0), scale = input_of(c, 1), gate = input_of(c, 2);
  std::string act = ir::attr_string(c.node(), "activation", "silu");
  if (act != "silu" && act != "swish" && act != "sigmoid") return upgrade_error(c, format("activation '{}' is not supported", act));
  double epsilon = ir::attr_float(c.node(), "epsilon", static_cast<double>(1e-6f));
  ValueId shape = make_node(c, "Shape", {x});
  ValueId groups = make_node(c, "Concat", {make_node(c, "Shape", {x}, {{"end", int64_t{-1}}}), c.constant_ints({-1}), make_node(c, "Shape", {scale})}, {{"axis", int64_t{0}}});
  ValueId normal = make_node(c, "RMSNormalization", {make_node(c, "Reshape", {x, groups}), scale}, {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  become(c, "Mul", {make_node(c, "Reshape", {normal, shape}), make_node(c, act == "sigmoid" ? "Sigmoid" : "Swish", {gate})});
  return ok();
}

// swish(gate) * (up + beta), both clamped where there is a limit; without `up` the gate holds both halves.
Status upgrade_swiglu(UpgradeContext& c) {
  ValueId gate = input_of(c, 0), up = input_of(c, 1);
  double alpha = ir::attr_float(c.node(), "activation_alpha", 1), beta = ir::attr_float(c.node(), "activation_beta", 0), limit = ir::attr_float(c.node(), "limit", 0);
  if (!up) {
    auto both = halves(c, gate);
    gate = both[0], up = both[1];
  }
  auto like = [&](double v) { return make_node(c, "CastLike", {c.constant_float(static_cast<float>(v)), gate}); };
  if (limit > 0) {
    ValueId most = like(limit);
    gate = make_node(c, "Min", {gate, most});
    up = make_node(c, "Max", {make_node(c, "Min", {up, most}), like(-limit)});
  }
  if (beta != 0) up = make_node(c, "Add", {up, like(beta)});
  become(c, "Mul", {make_node(c, "Swish", {gate}, {{"alpha", alpha}}), up});
  return ok();
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
  Types types;
  Status (*upgrade)(UpgradeContext&);
};
constexpr Types kProducts = types::floats | Types{DType::i32, DType::i64, DType::u32, DType::u64};
const Entry kTable[] = {
    {"com.microsoft.Gelu", 1, 1, 1, types::floats, upgrade_gelu},
    {"com.microsoft.FastGelu", 1, 2, 1, types::floats, upgrade_gelu},
    {"com.microsoft.BiasGelu", 2, 2, 1, types::floats, upgrade_gelu},
    {"com.microsoft.QuickGelu", 1, 1, 1, types::floats, upgrade_quick_gelu},
    {"com.microsoft.GemmFastGelu", 2, 3, 1, types::floats, upgrade_gemm_gelu},
    {"com.microsoft.BiasAdd", 3, 3, 1, types::numbers, upgrade_bias_add},
    {"com.microsoft.BiasSplitGelu", 2, 2, 1, types::floats, upgrade_split_gelu},
    {"com.microsoft.BiasSoftmax", 2, 2, 1, types::floats, upgrade_bias_softmax},
    {"com.microsoft.ScaledSiLU", 1, 2, 1, types::floats, upgrade_scaled_silu},
    {"com.microsoft.GatedAdd", 3, 4, 1, types::numbers, upgrade_gated_add},
    {"com.microsoft.GatedRMSNorm", 3, 3, 1, types::floats, upgrade_gated_norm},
    {"com.microsoft.SwiGLU", 1, 2, 1, types::floats, upgrade_swiglu},
    {"com.microsoft.FusedMatMulActivation", 2, 2, 1, kProducts, upgrade_matmul},
    {"com.microsoft.FusedMatMul", 2, 2, 1, kProducts, upgrade_matmul},
    {"com.microsoft.TransposeMatMul", 2, 2, 1, kProducts, upgrade_matmul},
    {"com.microsoft.FusedConv", 2, 4, 1, types::numbers, upgrade_conv},
    {"com.microsoft.FusedGemm", 2, 3, 1, types::numbers, upgrade_gemm},
    {"com.microsoft.SkipLayerNormalization", 3, 5, 4, types::floats, upgrade_skip},
    {"com.microsoft.SkipSimplifiedLayerNormalization", 3, 4, 4, types::floats, upgrade_skip},
    {"SimplifiedLayerNormalization", 2, 2, 2, types::floats, upgrade_simplified},
};

[[maybe_unused]] const bool registered = [] {
  for (auto& e : kTable) {
    OpDef d = rewritten(e.name, e.min_inputs, e.max_inputs, e.types, e.upgrade);
    d.max_outputs = e.max_outputs;
    if (e.upgrade == upgrade_matmul) d.infer = infer_batches, d.expand = expand_batches;
    Register r(std::move(d));
  }
  return true;
}();

}  // namespace
}  // namespace ge::ops
