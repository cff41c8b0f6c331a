//   MatMul(a, b) -> Mul|Div(c)   becomes   ge.MatMul(a, b) {alpha}     c one constant number
#include "passes/fusions/cube_group.h"

namespace ge::passes {
namespace {

Verdict one_number(const Match& m) {
  auto c = scalar_constant(*m.g, m.value("c"));
  if (!c || m.type("c").dtype != DType::f32) return no("the factor is not one constant f32 number");
  auto& n = m.node("y");
  if (n.op == "Div" && m.g->is_constant(n.inputs[0])) return no("the product is the divisor");
  if (m.type("y").dims != m.g->value(m.g->node(m.nodes.at("t")).outputs[0]).type.dims) return no("the factor makes the shape larger", "give the factor no more axes than the product has");
  return yes();
}
Verdict nothing_in_between(const Match& m) {
  CubeGroup group;
  Verdict v = read_group(*m.g, m.nodes.at("t"), group);
  if (!v) return v;
  return group.bias || group.residual || group.has_act() || group.has_program() ? no("something is added to the product before it is scaled") : yes();
}

Result<ir::NodeId> build(ir::Graph& g, const Match& m) {
  CubeGroup group;
  Verdict v = read_group(g, m.nodes.at("t"), group);
  GE_CHECK(v.holds, v.why);
  double c = *scalar_constant(g, m.value("c"));
  auto it = group.attrs.find("alpha");
  double alpha = it == group.attrs.end() ? 1.0 : std::get<double>(it->second);
  group.attrs["alpha"] = m.node("y").op == "Div" ? alpha / c : alpha * c;
  return write_group(g, m, group, m.value("y"));
}

const RegisterFusion r(Fusion{.name = "matmul_scale",
                              .doc = "a constant factor goes into the product",
                              .order = 1,
                              .patterns = {R"(%t = MatMul|ge.MatMul(%x, %w, ...)
                                              %y = Mul|Div(%t, %c:const))"},
                              .require = {one_number, nothing_in_between},
                              .build = build});

}  // namespace
}  // namespace ge::passes
