#include "passes/fusions/cube_group.h"

#include "base/text.h"
#include "ops/conv_transpose.h"
#include "tensor/pages.h"

namespace ge::passes {

using ir::ValueId;

bool CubeGroup::has_act() const {
  auto it = attrs.find("act");
  return it != attrs.end() && std::get<std::string>(it->second) != "none";
}
bool CubeGroup::has_program() const { return attrs.count("program") > 0; }

bool is_integer_product(const ir::Node& n) { return n.op == "ge.IntegerConv" || n.op == "ge.IntegerMatMul"; }

Verdict read_group(const ir::Graph& g, ir::NodeId id, CubeGroup& group) {
  auto& n = g.node(id);
  auto in = [&](size_t i) { return i < n.inputs.size() ? n.inputs[i] : ValueId{}; };
  group.x = in(0);
  group.w = in(1);
  group.bias = in(2);
  group.op = n.op.ends_with("ConvTranspose") ? "ge.ConvTranspose" : n.op.ends_with("Conv") ? "ge.Conv" : "ge.MatMul";
  if (is_integer_product(n)) group.op = n.op;
  if (n.op == "Gemm") {
    if (ir::attr_float(n, "beta", 1) != 1) return no("Gemm's beta is not 1", "multiply its C by beta in the model");
    if (ir::attr_int(n, "transA", 0)) group.attrs["transpose_a"] = int64_t(1);
    if (ir::attr_int(n, "transB", 0)) group.attrs["transpose_b"] = int64_t(1);
    if (ir::attr_float(n, "alpha", 1) != 1) group.attrs["alpha"] = ir::attr_float(n, "alpha", 1);
    return yes();
  }
  group.attrs = n.attrs;
  if (n.op.starts_with("ge.")) {
    group.residual = in(3);
    for (size_t i = 4; i < n.inputs.size(); ++i) group.extras.push_back(n.inputs[i]);
  }
  return yes();
}

ir::NodeId write_group(ir::Graph& g, const Match& m, const CubeGroup& group, ValueId replaced) {
  std::vector<ValueId> inputs = {group.x, group.w, group.bias, group.residual};
  inputs.insert(inputs.end(), group.extras.begin(), group.extras.end());
  while (inputs.size() > 2 && !inputs.back()) inputs.pop_back();
  auto id = g.insert(group.op, std::move(inputs), {g.value(replaced).type}, group.attrs, m.anchor);
  take_over(g, m, replaced, id);
  erase_matched(g, m);
  return id;
}

Verdict takes_tail(const ir::Graph& g, ir::NodeId id) {
  auto& n = g.node(id);
  return n.op.ends_with("ConvTranspose") ? ops::conv_transpose_by_phases(g, n) : yes();
}

Tensor scaled_weights(const Tensor& old, const CubeGroup& group, const std::vector<double>& factor) {
  Tensor w(DType::f32, old.dims());
  bool transposed = group.op == "ge.ConvTranspose";   // [C, M / groups, ...], not [M, C / groups, ...]
  auto& d = old.dims();
  int64_t taps = 1;
  for (size_t i = 2; i < d.size(); ++i) taps *= d[i];
  int64_t groups = 1;
  if (auto it = group.attrs.find("group"); it != group.attrs.end()) groups = std::get<int64_t>(it->second);
  for (int64_t i = 0; i < w.count(); ++i) {
    int64_t first = i / taps / d[1], second = i / taps % d[1];
    int64_t channel = transposed ? first / (d[0] / groups) * d[1] + second : first;
    w.as<float>()[i] = static_cast<float>(old.as<float>()[i] * factor[static_cast<size_t>(channel)]);
  }
  rest(old);
  return w;
}

std::optional<std::vector<float>> per_channel(const ir::Graph& g, ValueId v, const ir::Type& out, int axis) {
  if (!g.is_constant(v) || g.value(v).type.dtype != DType::f32 || !out.ranked) return std::nullopt;
  auto& t = *g.value(v).constant;
  auto& channels = out.dims[static_cast<size_t>(axis)];
  if (!channels.known()) return std::nullopt;
  if (t.rank() > out.rank()) return std::nullopt;
  for (int i = 0; i < t.rank(); ++i) {
    int at = out.rank() - t.rank() + i;
    if (t.dims()[static_cast<size_t>(i)] != 1 && (at != axis || t.dims()[static_cast<size_t>(i)] != channels.value())) return std::nullopt;
  }
  std::vector<float> values(static_cast<size_t>(channels.value()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = t.as<float>()[t.count() == 1 ? 0 : i];
  return values;
}

std::optional<double> scalar_constant(const ir::Graph& g, ValueId v) {
  if (!v || !g.is_constant(v) || !is_float(g.value(v).type.dtype)) return std::nullopt;
  auto& t = *g.value(v).constant;
  if (t.count() != 1) return std::nullopt;
  return t.at(0);
}

Tensor vector_f32(const std::vector<float>& v) {
  return Tensor::of<float>(DType::f32, {static_cast<int64_t>(v.size())}, std::span<const float>(v));
}

}  // namespace ge::passes
