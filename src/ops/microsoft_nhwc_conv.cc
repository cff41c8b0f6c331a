// com.microsoft.NhwcConv: Conv on channels that are last in the input, the weights and the output.
#include "ops/rewrite.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

std::vector<int64_t> channels_first(int rank) {
  std::vector<int64_t> perm{0, rank - 1};
  for (int64_t a = 1; a < rank - 1; ++a) perm.push_back(a);
  return perm;
}
std::vector<int64_t> channels_last(int rank) {
  std::vector<int64_t> perm{0};
  for (int64_t a = 2; a < rank; ++a) perm.push_back(a);
  perm.push_back(1);
  return perm;
}

Status infer(InferContext& c) {
  c.set_unranked(0, c.dtype(0));  // known once it is Conv
  if (c.ranked(0) && c.rank(0) < 3) return c.fail("its input has no spatial axes");
  return ok();
}

Result<bool> expand(UpgradeContext& c) {
  const ir::Node n = c.node();
  const Type &x = c.graph.value(n.inputs[0]).type, &w = c.graph.value(n.inputs[1]).type;
  if (!x.ranked || !w.ranked || x.rank() != w.rank()) return false;
  const int rank = x.rank();
  auto first = [&](size_t i) { return make_node(c, "Transpose", {n.inputs[i]}, {{"perm", channels_first(rank)}}); };
  std::vector<ValueId> in{first(0), first(1)};
  if (ValueId bias = input_of(c, 2)) in.push_back(bias);
  ValueId y = make_node(c, "Conv", std::move(in), n.attrs);
  become(c, "Transpose", {y}, {{"perm", channels_last(rank)}});
  return true;
}

const Register r(OpDef{.name = "com.microsoft.NhwcConv",
                       .min_inputs = 2,
                       .max_inputs = 3,
                       .attrs = {{"auto_pad", "As of Conv."}, {"dilations", "As of Conv."}, {"group", "As of Conv."}, {"kernel_shape", "As of Conv."}, {"pads", "As of Conv."}, {"strides", "As of Conv."}},
                       .unit = kernels::Unit::cube,
                       .doc = "written as Conv",
                       .infer = infer,
                       .expand = expand});

}  // namespace
}  // namespace ge::ops
