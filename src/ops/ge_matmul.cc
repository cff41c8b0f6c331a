// ge.MatMul: a product with what follows it in one kernel. Inputs a, b, bias, residual, extras...;
// transpose_a and transpose_b swap the last two axes; alpha scales the product; act and program as in
// fused_tail.h. bias and residual broadcast to the output; absent ones are empty.
#include "ops/matmul_lowering.h"

namespace ge::ops {
namespace {

Result<MatMulForm> read(const Node& n) {
  MatMulForm form;
  form.transpose_a = ir::attr_int(n, "transpose_a", 0) != 0;
  form.transpose_b = ir::attr_int(n, "transpose_b", 0) != 0;
  GE_TRY(form.tail, read_tail(n, 2));
  form.tail.scale = ir::attr_float(n, "alpha", 1);
  return form;
}

Status infer(InferContext& c) {
  GE_TRY(auto form, read(c.node));
  if (!c.ranked(0) || !c.ranked(1)) {
    for (size_t i = 0; i < c.out.size(); ++i) c.set_unranked(static_cast<int>(i), c.dtype(0));
    return ok();
  }
  GE_TRY(auto dims, matmul_dims(c, c.dims(0), c.dims(1), form.transpose_a, form.transpose_b));
  set_fused_outputs(c, dims, c.dtype(0));
  return ok();
}

Status lower(LowerContext& c) {
  GE_TRY(auto form, read(c.node));
  return lower_matmul(c, form);
}

std::vector<AttrDef> attrs() {
  auto a = tail_attrs();
  a.push_back({"transpose_a", "a's last two axes are swapped"});
  a.push_back({"transpose_b", "b's last two axes are swapped"});
  a.push_back({"alpha", "factor of the product"});
  a.push_back({"compute", "bf16: both operands are rounded to it; absent: f32"});
  return a;
}

const Register r(OpDef{.name = "ge.MatMul",
                       .min_inputs = 2,
                       .max_inputs = -1,
                       .max_outputs = -1,
                       .attrs = attrs(),
                       .unit = kernels::Unit::cube,
                       .doc = "a product with bias, residual, activation and a vector program",
                       .infer = infer,
                       .lower = lower});

}  // namespace
}  // namespace ge::ops
