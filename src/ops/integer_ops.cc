// MatMulInteger and ConvInteger: sums of bytes less their zero points, as i32.
#include "base/text.h"
#include "ops/conv_lowering.h"
#include "ops/integer_product.h"
#include "ops/matmul_lowering.h"

namespace ge::ops {
namespace {

bool is_conv(const Node& n) { return n.op == "ConvInteger"; }

Status infer(InferContext& c) {
  for (int i = 0; i < c.inputs(); ++i) {
    if (!c.has(i)) continue;
    if (!is_byte(c.dtype(i))) return c.fail(format("input {} is {}, not u8 or i8", i, name(c.dtype(i))));
    if (i >= 2 && c.dtype(i) != c.dtype(i - 2)) return c.fail(format("the zero point (input {}) is {}, but its tensor is {}; they need one type", i, name(c.dtype(i)), name(c.dtype(i - 2))));
  }
  if (!c.ranked(0) || !c.ranked(1)) {
    c.set_unranked(0, DType::i32);
    return ok();
  }
  GE_TRY(auto dims, is_conv(c.node) ? conv_dims(c) : matmul_dims(c, c.dims(0), c.dims(1), false, false));
  c.set(0, DType::i32, std::move(dims));
  return ok();
}

IntegerForm form(const Node& n) {
  IntegerForm f;
  f.conv = is_conv(n);
  return f;
}
Status reference(LowerContext& c) { return reference_integer_product(c, form(c.node), c.out()); }
Status lower(LowerContext& c) { return lower_integer_product(c, form(c.node)); }

const Register r1(OpDef{.name = "MatMulInteger",
                        .min_inputs = 2,
                        .max_inputs = 4,
                        .since = 10,
                        .unit = kernels::Unit::cube,
                        .doc = "the product of (A - its zero point) and (B - its zero point), as i32",
                        .types = {DType::u8, DType::i8},
                        .infer = infer,
                        .reference = reference,
                        .lower = lower});
const Register r2(OpDef{.name = "ConvInteger",
                        .min_inputs = 2,
                        .max_inputs = 4,
                        .since = 10,
                        .attrs = {{"auto_pad", "as of Conv"},
                                  {"dilations", "as of Conv"},
                                  {"group", "as of Conv"},
                                  {"kernel_shape", "as of Conv"},
                                  {"pads", "as of Conv; padded with the zero point"},
                                  {"strides", "as of Conv"}},
                        .unit = kernels::Unit::cube,
                        .doc = "the convolution of (x - its zero point) with (w - its zero point), as i32",
                        .types = {DType::u8, DType::i8},
                        .infer = infer,
                        .reference = reference,
                        .lower = lower,
                        .layout = channels_last_layout});

}  // namespace
}  // namespace ge::ops
