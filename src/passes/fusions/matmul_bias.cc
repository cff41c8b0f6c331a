//   Add(MatMul(a, b), c)  becomes  ge.MatMul(a, b, c)     c constant, one value for each column
#include "passes/fusions/cube_group.h"

namespace ge::passes {
namespace {

Verdict is_a_row(const Match& m) {
  auto& out = m.type("y");
  if (out.dtype != DType::f32) return no("the values are not f32");
  if (!out.ranked || out.rank() < 1) return no("the product's shape is not known", "give the inputs' shapes with --input_shape");
  auto& product = m.g->value(m.g->node(m.nodes.at("t")).outputs[0]).type;
  if (product.dims != out.dims) return no("the sum is larger than the product", "a bias must not broadcast the product");
  if (per_channel(*m.g, m.value("c"), out, out.rank() - 1)) return yes();
  return no("the constant that is added is not one value for each column", "a bias has the shape [N]");
}
Verdict nothing_in_between(const Match& m) {
  CubeGroup group;
  Verdict v = read_group(*m.g, m.nodes.at("t"), group);
  if (!v) return v;
  if (group.bias) return no("the product has a bias already");
  return group.has_act() || group.has_program() ? no("an activation already follows the product") : yes();
}

Result<ir::NodeId> build(ir::Graph& g, const Match& m) {
  CubeGroup group;
  Verdict v = read_group(g, m.nodes.at("t"), group);
  GE_CHECK(v.holds, v.why);
  auto& out = g.value(m.value("y")).type;
  group.bias = g.add_constant(vector_f32(*per_channel(g, m.value("c"), out, out.rank() - 1)), "bias");
  return write_group(g, m, group, m.value("y"));
}

const RegisterFusion r(Fusion{.name = "matmul_bias",
                              .doc = "a constant row added to a product becomes its bias",
                              .order = 1,
                              .patterns = {R"(%t = MatMul|Gemm|ge.MatMul(%x, %w, ...)
                                              %y = Add(%t, %c:const))"},
                              .require = {is_a_row, nothing_in_between},
                              .build = build});

}  // namespace
}  // namespace ge::passes
