// DynamicQuantizeLinear: x as u8 with the scale and zero point that its own range gives.
#include "base/text.h"
#include "ops/quantization.h"
#include "ops/vector_lowering.h"

namespace ge::ops {
namespace {

using kernels::vector::Lane;
using kernels::vector::ProgramBuilder;

Status infer(InferContext& c) {
  c.out[0] = c.type(0);
  c.out[0].dtype = DType::u8;
  c.set(1, DType::f32, {});
  c.set(2, DType::u8, {});
  return ok();
}

// The scale and zero point, as outputs of the node or as temporaries where nobody wants them.
std::pair<Arg, Arg> emit_parameters(LowerContext& c) {
  Arg ranges = c.temp(DType::f32, {Dim(64), Dim(2)});
  Arg scale = c.wants(1) ? c.out(1) : c.temp(DType::f32, {}), zero = c.wants(2) ? c.out(2) : c.temp(DType::u8, {});
  c.call("quantize.range", {c.in(0)}, {ranges});
  c.call("quantize.parameters", {ranges}, {scale, zero});
  return {scale, zero};
}

Status reference(LowerContext& c) {
  auto [scale, zero] = emit_parameters(c);
  if (c.wants(0)) c.call("ref.QuantizeLinear", {c.in(0), scale, zero}, {c.out()}, {-1, 0, static_cast<int64_t>(DType::f32), 1});
  return ok();
}

Status lower(LowerContext& c) {
  auto [scale, zero] = emit_parameters(c);
  if (!c.wants(0)) return ok();
  ProgramBuilder b;
  b.store(0, quantize(b, b.load(0), b.load(1), b.load(2, Lane::i32), DType::u8));
  GE_TRY(auto program, b.finish(3, 1));
  emit_vector_program(c, program, 0, {c.in(0), scale, zero}, {c.out()});
  return ok();
}

std::vector<int> layout(const Graph& g, const Node& n) {
  auto& x = g.value(n.inputs[0]);
  return x.type.ranked && x.layout.size() == x.type.dims.size() ? x.layout : std::vector<int>{};
}

const Register r(OpDef{.name = "DynamicQuantizeLinear",
                       .min_inputs = 1,
                       .max_inputs = 1,
                       .max_outputs = 3,
                       .since = 11,
                       .doc = "x as u8, with the scale and zero point that fit its range (0 among it)",
                       .types = {DType::f32},
                       .infer = infer,
                       .reference = reference,
                       .lower = lower,
                       .layout = layout});

}  // namespace
}  // namespace ge::ops
