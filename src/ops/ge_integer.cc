// ge.IntegerMatMul and ge.IntegerConv: sums of bytes as f32, with what follows them in one kernel. Inputs x, w,
// their zero points (either may be absent), extras...; the attributes of Conv; program and dtypes as in
// fused_tail.h, program input 0 the sum as f32.
#include "base/text.h"
#include "ops/conv_lowering.h"
#include "ops/integer_product.h"
#include "ops/matmul_lowering.h"

namespace ge::ops {
namespace {

bool is_conv(const Node& n) { return n.op == "ge.IntegerConv"; }

Status infer(InferContext& c) {
  GE_TRY(auto tail, read_tail(c.node, 2));
  (void)tail;
  if (!c.ranked(0) || !c.ranked(1)) {
    c.set_unranked(0, DType::f32);
    return ok();
  }
  GE_TRY(auto dims, is_conv(c.node) ? conv_dims(c) : matmul_dims(c, c.dims(0), c.dims(1), false, false));
  set_fused_outputs(c, dims, DType::f32);
  return ok();
}

Status lower(LowerContext& c) {
  GE_TRY(auto tail, read_tail(c.node, 2));
  IntegerForm f;
  f.conv = is_conv(c.node);
  f.program = tail.program ? *tail.program : identity_program();
  for (int i : tail.extras) f.extra(c, i);
  GE_RETURN_IF_ERROR(lower_integer_product(c, std::move(f)));
  return c.calls.empty() ? Status(c.fail("the operands do not fit the kernel")) : ok();
}

OpDef def(const char* name, const char* doc) {
  OpDef d;
  d.name = name;
  d.min_inputs = 2, d.max_inputs = -1, d.max_outputs = -1;
  d.attrs = tail_attrs();
  d.unit = kernels::Unit::cube;
  d.doc = doc;
  d.infer = infer;
  d.lower = lower;
  return d;
}

[[maybe_unused]] const bool registered = [] {
  Register r1(def("ge.IntegerMatMul", "a product of bytes with a vector program"));
  OpDef conv = def("ge.IntegerConv", "a convolution of bytes with a vector program");
  for (auto* name : {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}) conv.attrs.push_back({name, "as of Conv"});
  conv.layout = channels_last_layout;
  Register r2(std::move(conv));
  return true;
}();

}  // namespace
}  // namespace ge::ops
