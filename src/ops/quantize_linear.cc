// QuantizeLinear and DequantizeLinear.
#include "base/text.h"
#include "ops/elementwise.h"
#include "ops/quantization.h"
#include "ops/rewrite.h"
#include "ops/vector_lowering.h"

namespace ge::ops {
namespace {

using kernels::vector::kNoReg;
using kernels::vector::Lane;
using kernels::vector::ProgramBuilder;
using kernels::vector::Reg;

bool is_quantized(DType t) { return (is_integer(t) && bits(t) <= 16) || (is_float(t) && bits(t) <= 8 && t != DType::f8e8m0); }
bool plain_float(DType t) { return t == DType::f32 || t == DType::f16 || t == DType::bf16 || t == DType::f64; }

// An attribute that names a type; none when absent.
DType type_attr(const Node& n, const char* attr) {
  int64_t t = ir::attr_int(n, attr, 0);
  return t > 0 && t < kDTypeCount ? static_cast<DType>(t) : DType::none;
}

// The type in which x / scale is rounded.
DType precision(const Graph& g, const Node& n) {
  DType t = type_attr(n, "precision");
  if (t == DType::none) t = g.value(n.inputs[1]).type.dtype;
  return plain_float(t) ? t : DType::f32;
}

Status infer_quantize(InferContext& c) {
  DType to = type_attr(c.node, "output_dtype"), x = c.dtype(0), s = c.dtype(1);
  if (c.has(2)) {
    if (to != DType::none && to != c.dtype(2)) return c.fail(format("output_dtype is {}, but the zero point is {}; they need one type", name(to), name(c.dtype(2))));
    to = c.dtype(2);
  }
  if (to == DType::none) to = DType::u8;
  if (!is_quantized(to)) return c.fail(format("{} is no type that it can quantize to (integers of up to 16 bits, float8, float4)", name(to)));
  if (!plain_float(x) && x != DType::i32) return c.fail(format("cannot quantize {}", name(x)));
  if (!plain_float(s) && s != DType::i32 && s != DType::f8e8m0) return c.fail(format("the scale is {}, which is no float type", name(s)));
  GE_RETURN_IF_ERROR(check_granularity(c));
  c.out[0] = c.type(0);
  c.out[0].dtype = to;
  return ok();
}

Status infer_dequantize(InferContext& c) {
  DType to = type_attr(c.node, "output_dtype"), x = c.dtype(0), s = c.dtype(1);
  if (to == DType::none) to = s;
  if (!is_quantized(x) && x != DType::i32) return c.fail(format("cannot dequantize {}", name(x)));
  if (c.has(2) && c.dtype(2) != x) return c.fail(format("the zero point is {}, but the input is {}; they need one type", name(c.dtype(2)), name(x)));
  if (!plain_float(s) && s != DType::f8e8m0) return c.fail(format("the scale is {}, which is no float type", name(s)));
  if (!plain_float(to) && to != DType::f8e8m0) return c.fail(format("the output would be {}, which is no float type", name(to)));
  GE_RETURN_IF_ERROR(check_granularity(c));
  c.out[0] = c.type(0);
  c.out[0].dtype = to;
  return ok();
}

Status reference(LowerContext& c) {
  Granularity g = granularity(c.graph, c.node);
  std::vector<Arg> in{c.in(0), parameter_operand(c, 1, g)};
  if (c.has(2)) in.push_back(parameter_operand(c, 2, g));
  auto ints = granularity_ints(g);
  bool quantizes = c.node.op == "QuantizeLinear";
  if (quantizes) {
    ints.push_back(Dim(static_cast<int64_t>(precision(c.graph, c.node))));
    ints.push_back(Dim(ir::attr_int(c.node, "saturate", 1)));
  }
  c.call(quantizes ? "ref.QuantizeLinear" : "ref.DequantizeLinear", std::move(in), {c.out()}, std::move(ints));
  return ok();
}

bool float_lane(DType t) { return t == DType::f32 || t == DType::f16 || t == DType::bf16; }

// Whether programs compute the node, shapes aside.
bool has_program(const Graph& g, const Node& n) {
  auto dtype = [&](size_t i) { return g.value(n.inputs[i]).type.dtype; };
  DType out = g.value(n.outputs[0]).type.dtype;
  if (n.op == "QuantizeLinear")
    return (float_lane(dtype(0)) || dtype(0) == DType::i32) && float_lane(dtype(1)) && precision(g, n) == DType::f32 && vector_quantized(out);
  return (vector_quantized(dtype(0)) || dtype(0) == DType::i32) && float_lane(dtype(1)) && float_lane(out);
}

Reg build(const Graph& g, const Node& n, ProgramBuilder& b, Reg x, Reg scale, Reg zero) {
  if (n.op == "DequantizeLinear") return dequantize(b, x, scale, zero);
  if (!float_lane(g.value(n.inputs[0]).type.dtype)) x = b.op(kernels::vector::Op::to_f32, x);
  return quantize(b, x, scale, zero, g.value(n.outputs[0]).type.dtype);
}

// Inside a region: numpy's broadcasting must give each element its own scale.
bool vector(VectorContext& c) {
  if (!has_program(c.graph, c.node)) return false;
  auto &x = c.graph.value(c.node.inputs[0]).type, &s = c.graph.value(c.node.inputs[1]).type;
  if (!x.ranked || !s.ranked) return false;
  Granularity g = granularity(c.graph, c.node);
  if (g.kind == Granularity::Kind::blocks || s.rank() > x.rank()) return false;
  if (g.kind == Granularity::Kind::axis && g.axis != x.rank() - 1) return false;
  for (size_t i = 1; i < c.node.inputs.size(); ++i)
    if (c.node.inputs[i] && c.graph.value(c.node.inputs[i]).type.rank() > x.rank()) return false;
  c.out[0] = build(c.graph, c.node, c.builder, c.in[0], c.in[1], c.in.size() > 2 ? c.in[2] : kNoReg);
  return true;
}

// Alone: scales along any axis as strided operands.
Status lower(LowerContext& c) {
  if (!has_program(c.graph, c.node) || !c.type(0).ranked || !c.type(1).ranked) return ok();
  Granularity g = granularity(c.graph, c.node);
  if (g.kind == Granularity::Kind::blocks) return ok();
  ProgramBuilder b;
  std::vector<Arg> in{c.in(0), parameter_operand(c, 1, g)};
  Reg x = b.load(0, vector_lane(c.type(0).dtype)), scale = b.load(1), zero = kNoReg;
  if (c.has(2)) zero = b.load(2, Lane::i32), in.push_back(parameter_operand(c, 2, g));
  b.store(0, build(c.graph, c.node, b, x, scale, zero));
  GE_TRY(auto program, b.finish(static_cast<int>(in.size()), 1));
  emit_vector_program(c, program, 0, std::move(in), {c.out()});
  return ok();
}

Status upgrade_microsoft(UpgradeContext& c) {
  std::vector<ValueId> in = c.node().inputs;
  become(c, c.node().op == "com.microsoft.QuantizeLinear" ? "QuantizeLinear" : "DequantizeLinear", in, ir::Attrs(c.node().attrs));
  return ok();
}

std::vector<int> layout(const Graph& g, const Node& n) {
  auto& x = g.value(n.inputs[0]);
  return x.type.ranked && x.layout.size() == x.type.dims.size() ? x.layout : std::vector<int>{};
}

constexpr Types kQuantizes = types::floats | Types{DType::i32}, kDequantizes = types::quantised | Types{DType::i32};

OpDef def(const char* op, const char* doc, Types types, Status (*infer)(InferContext&)) {
  OpDef d;
  d.name = op;
  d.min_inputs = 2, d.max_inputs = 3;
  d.since = 10;
  d.attrs = {{"axis", "of the scales, or of the blocks"},
             {"block_size", "elements of `axis` that share a scale; 0: no blocks"},
             {"output_dtype", "the type of y, as in TensorProto"}};
  d.doc = doc;
  d.types = types;
  d.infer = infer;
  d.reference = reference;
  d.lower = lower;
  d.vector_kind = VectorKind::elementwise;
  d.vector = vector;
  d.layout = layout;
  return d;
}

[[maybe_unused]] const bool registered = [] {
  OpDef q = def("QuantizeLinear", "saturate(round(x / scale) + zero point), ties to even", kQuantizes, infer_quantize);
  q.attrs.push_back({"precision", "the type of the quotient; absent: that of the scale"});
  q.attrs.push_back({"saturate", "float8: what is out of range becomes the largest value (1) or infinity or NaN (0)"});
  Register r1(std::move(q));
  Register r2(def("DequantizeLinear", "(x - zero point) * scale", kDequantizes, infer_dequantize));
  for (auto& [name, types] : {std::pair{"com.microsoft.QuantizeLinear", kQuantizes}, std::pair{"com.microsoft.DequantizeLinear", kDequantizes}})
    Register r(rewritten(name, 2, 3, types, upgrade_microsoft));
  return true;
}();

}  // namespace
}  // namespace ge::ops
