// ge.QuantizeRows: x f32 [..., D] as bytes i8 [..., D] and scales f32 [..., 1], of each row its own, symmetric
// (kernels/move/quantize_rows.h). ge.DequantizeRows: the way back.
#include "base/text.h"
#include "ops/op.h"

namespace ge::ops {
namespace {

Status infer_quantize(InferContext& c) {
  if (c.dtype(0) != DType::f32) return c.fail(format("the input is {}, not f32", name(c.dtype(0))));
  if (!c.ranked(0)) {
    c.set_unranked(0, DType::i8), c.set_unranked(1, DType::f32);
    return ok();
  }
  if (c.rank(0) == 0) return c.fail("the input is a scalar");
  auto dims = c.dims(0);
  c.set(0, DType::i8, dims);
  dims.back() = Dim(1);
  c.set(1, DType::f32, std::move(dims));
  return ok();
}

Status infer_dequantize(InferContext& c) {
  if (c.dtype(0) != DType::i8 || c.dtype(1) != DType::f32) return c.fail(format("the inputs are {} and {}, not i8 and f32", name(c.dtype(0)), name(c.dtype(1))));
  c.out[0] = c.type(0);
  c.out[0].dtype = DType::f32;
  return ok();
}

Status lower_quantize(LowerContext& c) {
  Arg scale = c.out(1);
  if (!c.wants(1)) {
    auto dims = c.type(0).dims;
    dims.back() = Dim(1);
    scale = c.temp(DType::f32, std::move(dims));
  }
  c.call("quantize.rows", {c.in(0)}, {c.wants(0) ? c.out(0) : c.temp(DType::i8, c.type(0).dims), scale});
  return ok();
}

Status lower_dequantize(LowerContext& c) {
  c.call("dequantize.rows", {c.in(0), c.in(1)}, {c.out()});
  return ok();
}

const Register r1(OpDef{.name = "ge.QuantizeRows", .min_inputs = 1, .max_inputs = 1, .min_outputs = 1, .max_outputs = 2, .doc = "rows as bytes with a scale each",
                        .infer = infer_quantize, .reference = lower_quantize, .lower = lower_quantize});
const Register r2(OpDef{.name = "ge.DequantizeRows", .min_inputs = 2, .max_inputs = 2, .doc = "rows of bytes times their scales",
                        .infer = infer_dequantize, .reference = lower_dequantize, .lower = lower_dequantize});

}  // namespace
}  // namespace ge::ops
