// MatMul and Gemm.
#include "base/text.h"
#include "ops/matmul_lowering.h"

namespace ge::ops {
namespace {

Status infer_matmul(InferContext& c) {
  if (c.dtype(1) != c.dtype(0)) return c.fail(format("its inputs are {} and {}; they need one type", name(c.dtype(0)), name(c.dtype(1))));
  if (!c.ranked(0) || !c.ranked(1)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  GE_TRY(auto dims, matmul_dims(c, c.dims(0), c.dims(1), false, false));
  c.set(0, c.dtype(0), std::move(dims));
  return ok();
}

Status reference_matmul(LowerContext& c) {
  c.call("ref.MatMul", {c.in(0), c.in(1)}, {c.out()});
  return ok();
}

Status lower_plain(LowerContext& c) {
  GE_RETURN_IF_ERROR(lower_matmul(c, {}));
  if (c.calls.empty()) c.call("matmul.typed", {c.in(0), c.in(1)}, {c.out()});
  return ok();
}

Status infer_gemm(InferContext& c) {
  DType t = c.dtype(0);
  if (c.dtype(1) != t || (c.has(2) && c.dtype(2) != t)) return c.fail("its inputs have different types; they need one");
  for (int i = 0; i < 2; ++i)
    if (c.ranked(i) && c.rank(i) != 2) return c.fail(format("input {} has rank {}, not 2", i, c.rank(i)));
  if (!c.ranked(0) || !c.ranked(1)) {
    c.set_unranked(0, t);
    return ok();
  }
  GE_TRY(auto dims, matmul_dims(c, c.dims(0), c.dims(1), ir::attr_int(c.node, "transA", 0) != 0,
                                ir::attr_int(c.node, "transB", 0) != 0));
  if (c.has(2) && c.ranked(2)) {
    GE_TRY(auto whole, broadcast_dims(c, dims, c.dims(2)));
    bool grows = whole.size() > 2;
    for (size_t i = 0; !grows && i < 2; ++i) grows = dims[i].known() && whole[i].known() && !(dims[i] == whole[i]);
    if (grows) return c.fail(format("C {} does not broadcast to {}", text(c.dims(2)), text(dims)));
  }
  c.set(0, t, std::move(dims));
  return ok();
}

Status reference_gemm(LowerContext& c) {
  std::vector<Arg> in{c.in(0), c.in(1)};
  if (c.has(2)) in.push_back(c.in(2));
  c.call("ref.Gemm", std::move(in), {c.out()},
         {ir::attr_int(c.node, "transA", 0) != 0, ir::attr_int(c.node, "transB", 0) != 0},
         {ir::attr_float(c.node, "alpha", 1), ir::attr_float(c.node, "beta", 1)});
  return ok();
}

Status lower_gemm(LowerContext& c) {
  MatMulForm form;
  form.transpose_a = ir::attr_int(c.node, "transA", 0) != 0;
  form.transpose_b = ir::attr_int(c.node, "transB", 0) != 0;
  form.tail.scale = ir::attr_float(c.node, "alpha", 1);
  form.tail.bias_scale = ir::attr_float(c.node, "beta", 1);
  // beta 0 leaves C out, whatever it holds (numpy would make NaN of an infinite C).
  if (c.has(2) && form.tail.bias_scale != 0) form.tail.bias = 2;
  return lower_matmul(c, form);
}

const Register r1(OpDef{.name = "MatMul",
                        .min_inputs = 2,
                        .max_inputs = 2,
                        .unit = kernels::Unit::cube,
                        .doc = "numpy's matmul",
                        .types = types::floats | Types{DType::i32, DType::i64, DType::u32, DType::u64},
                        .infer = infer_matmul,
                        .reference = reference_matmul,
                        .lower = lower_plain});
const Register r2(OpDef{.name = "Gemm",
                        .min_inputs = 2,
                        .max_inputs = 3,
                        .since = 7,
                        .attrs = {{"alpha", "factor of the product"},
                                  {"beta", "factor of C"},
                                  {"transA", "A is transposed"},
                                  {"transB", "B is transposed"}},
                        .unit = kernels::Unit::cube,
                        .doc = "alpha * A * B + beta * C",
                        .types = types::numbers,
                        .infer = infer_gemm,
                        .reference = reference_gemm,
                        .lower = lower_gemm});

}  // namespace
}  // namespace ge::ops
