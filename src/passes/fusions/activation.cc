#include "passes/fusions/activation.h"

#include <limits>

namespace ge::passes {
namespace {

bool bound(const ir::Graph& g, const ir::Node& n, size_t i, double otherwise, double& v) {
  v = otherwise;
  if (i >= n.inputs.size() || !n.inputs[i]) return true;
  auto s = scalar_constant(g, n.inputs[i]);
  if (s) v = *s;
  return s.has_value();
}

}  // namespace

Verdict group_takes_activation(const Match& m) {
  CubeGroup group;
  Verdict v = takes_tail(*m.g, m.nodes.at("t"));
  if (v) v = read_group(*m.g, m.nodes.at("t"), group);
  if (!v) return v;
  if (group.has_act() || group.has_program()) return no("an activation already follows");
  if (m.type("y").dtype != DType::f32) return no("the values are not f32");
  auto& n = m.node("y");
  double low, high;
  if (n.op == "Clip" && (!bound(*m.g, n, 1, 0, low) || !bound(*m.g, n, 2, 0, high))) return no("Clip's bounds are computed at run time", "make them constants");
  return yes();
}

Result<ir::NodeId> build_activation(ir::Graph& g, const Match& m) {
  CubeGroup group;
  Verdict v = read_group(g, m.nodes.at("t"), group);
  GE_CHECK(v.holds, v.why);
  auto& n = m.node("y");
  if (n.op == "Relu") {
    group.attrs["act"] = std::string("relu");
  } else if (n.op == "Clip") {
    double low = 0, high = 0;
    bound(g, n, 1, -std::numeric_limits<float>::max(), low);
    bound(g, n, 2, std::numeric_limits<float>::max(), high);
    // Without a bound infinities pass.
    if (n.inputs.size() < 2 || !n.inputs[1]) low = -std::numeric_limits<double>::infinity();
    if (n.inputs.size() < 3 || !n.inputs[2]) high = std::numeric_limits<double>::infinity();
    group.attrs["act"] = std::string("clip");
    group.attrs["act_alpha"] = low;
    group.attrs["act_beta"] = high;
  } else {
    group.attrs["act"] = std::string("leaky");
    group.attrs["act_alpha"] = ir::attr_float(n, "alpha", 0.01);
  }
  return write_group(g, m, group, m.value("y"));
}

}  // namespace ge::passes
