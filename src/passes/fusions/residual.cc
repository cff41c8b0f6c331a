#include "passes/fusions/residual.h"

#include "base/text.h"

namespace ge::passes {

Verdict group_takes_residual(const Match& m) {
  CubeGroup group;
  Verdict v = takes_tail(*m.g, m.nodes.at("t"));
  if (v) v = read_group(*m.g, m.nodes.at("t"), group);
  if (!v) return v;
  if (group.residual) return no("another tensor is already added");
  if (group.has_act() || group.has_program()) return no("an activation stands before the sum");
  auto& out = m.type("y");
  auto& sums = m.g->value(m.g->node(m.nodes.at("t")).outputs[0]).type;
  if (sums.dims != out.dims) return no("the sum is larger than the product", "a residual must not broadcast the product");
  if (!out.ranked || m.type("r").dims != out.dims || m.type("r").dtype != DType::f32 || out.dtype != DType::f32)
    return no(format("what is added has shape {}, the sums have {}", ir::text(m.type("r")), ir::text(out)));
  return m.g->is_constant(m.value("r")) ? no("what is added is constant") : yes();
}

Result<ir::NodeId> build_residual(ir::Graph& g, const Match& m) {
  CubeGroup group;
  Verdict v = read_group(g, m.nodes.at("t"), group);
  GE_CHECK(v.holds, v.why);
  group.residual = m.value("r");
  return write_group(g, m, group, m.value("y"));
}

}  // namespace ge::passes
