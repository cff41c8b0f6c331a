// QLinearMatMul and QLinearConv: products of quantised operands whose sums are quantised again.
#include "base/text.h"
#include "kernels/reference/elementwise.h"
#include "ops/conv_lowering.h"
#include "ops/fused_tail.h"
#include "ops/integer_product.h"
#include "ops/matmul_lowering.h"
#include "ops/quantization.h"

namespace ge::ops {
namespace {

using kernels::vector::kNoReg;
using kernels::vector::Lane;
using kernels::vector::ProgramBuilder;
using kernels::vector::Reg;
using V = kernels::vector::Op;

// Inputs: x, its scale and zero point, w, its scale and zero point, the output's scale and zero point, bias.
constexpr int kX = 0, kXScale = 1, kXZero = 2, kW = 3, kWScale = 4, kWZero = 5, kYScale = 6, kYZero = 7, kBias = 8;

bool is_conv(const Node& n) { return n.op == "QLinearConv"; }

IntegerForm form(const Node& n) {
  IntegerForm f;
  f.conv = is_conv(n);
  f.x = kX, f.x_zero = kXZero, f.w = kW, f.w_zero = kWZero;
  return f;
}

bool takes_operand(const Node& n, DType t) { return find(n.op)->types.has(t); }

Status infer(InferContext& c) {
  for (int i : {kX, kW, kYZero})
    if (!takes_operand(c.node, c.dtype(i))) return c.fail(format("input {} is {}, not one of {}", i, name(c.dtype(i)), text(find(c.node.op)->types)));
  for (int i : {kXScale, kWScale, kYScale})
    if (!is_float(c.dtype(i)) || bits(c.dtype(i)) < 16) return c.fail(format("the scale (input {}) is {}, which is no float type", i, name(c.dtype(i))));
  if (c.dtype(kXZero) != c.dtype(kX) || c.dtype(kWZero) != c.dtype(kW)) return c.fail("a zero point has another type than its tensor");
  if (c.has(kBias) && c.dtype(kBias) != DType::i32) return c.fail(format("the bias is {}, not i32", name(c.dtype(kBias))));
  DType y = c.dtype(kYZero);
  if (!c.ranked(kX) || !c.ranked(kW)) {
    c.set_unranked(0, y);
    return ok();
  }
  GE_TRY(auto dims, is_conv(c.node) ? conv_dims(c, kW) : matmul_dims(c, c.dims(kX), c.dims(kW), false, false));
  c.set(0, y, std::move(dims));
  return ok();
}

// A scale or zero point with the rank of the output, or of an operand; a vector runs along `axis`.
Arg along(LowerContext& c, int i, size_t axis, size_t rank) {
  Strided v = c.view(i), spread{v.offset, std::vector<Dim>(rank, Dim(1)), std::vector<Dim>(rank, Dim(0))};
  if (v.dims.size() == rank) return c.in_as(i, v);
  if (v.dims.size() == 1 && rank > 0) spread.dims[axis] = v.dims[0], spread.strides[axis] = v.strides[0];
  return c.in_as(i, spread);
}

Arg along(LowerContext& c, int i, size_t axis) { return along(c, i, axis, c.out_type(0).dims.size()); }

// A matrix of floats of 8 bits: dequantised, multiplied in f32, quantised.
Status reference_floats(LowerContext& c) {
  auto parameters = [&](int scale, size_t axis, size_t rank) {
    std::vector<Arg> out{along(c, scale, axis, rank), along(c, scale + 1, axis, rank)};
    for (Arg& a : out)
      if (product(a.view->dims).is(1)) a.view = Strided{a.view->offset, {}, {}};
    return out;
  };
  auto dequantised = [&](int i, size_t from_last) {
    auto& dims = c.type(i).dims;
    auto p = parameters(i + 1, dims.size() < from_last ? 0 : dims.size() - from_last, dims.size());
    Arg out = c.temp(DType::f32, dims);
    c.call("ref.DequantizeLinear", {c.in(i), p[0], p[1]}, {out}, {-1, 0});
    return out;
  };
  Arg x = dequantised(kX, 2), w = dequantised(kW, 1), sums = c.temp(DType::f32, c.out_type(0).dims);
  c.call("ref.MatMul", {x, w}, {sums});
  const size_t rank = c.out_type(0).dims.size();
  auto p = parameters(kYScale, rank < 2 ? 0 : rank - 2, rank);
  c.call("ref.QuantizeLinear", {sums, p[0], p[1]}, {c.out()}, {-1, 0, static_cast<int64_t>(DType::f32), 1});
  return ok();
}

Status reference(LowerContext& c) {
  for (int i : {kX, kW, kYZero})
    if (!is_byte(c.type(i).dtype)) return reference_floats(c);
  using kernels::reference::Ew;
  const size_t rank = c.out_type(0).dims.size();
  const size_t columns = is_conv(c.node) ? 1 : rank ? rank - 1 : 0, rows = is_conv(c.node) ? 0 : rank > 1 ? rank - 2 : 0;
  Arg sums = c.temp(DType::i32, c.out_type(0).dims);
  GE_RETURN_IF_ERROR(reference_integer_product(c, form(c.node), sums));
  if (c.has(kBias)) {
    Arg with = c.temp(DType::i32, c.out_type(0).dims);
    c.call("ref.elementwise", {sums, along(c, kBias, columns)}, {with}, {static_cast<int64_t>(Ew::add)}, {0, 0});
    sums = with;
  }
  Arg x = along(c, kXScale, rows), w = along(c, kWScale, columns), y = along(c, kYScale, rows);
  DType type = c.type(kXScale).dtype;
  std::vector<Dim> dims(rank, Dim(1));
  for (size_t a = 0; a < rank; ++a) dims[a] = broadcast(broadcast(x.view->dims[a], w.view->dims[a]), y.view->dims[a]);
  Arg both = c.temp(type, dims), factor = c.temp(type, dims), scaled = c.temp(DType::f32, c.out_type(0).dims);
  c.call("ref.elementwise", {x, w}, {both}, {static_cast<int64_t>(Ew::mul)}, {0, 0});
  c.call("ref.elementwise", {both, y}, {factor}, {static_cast<int64_t>(Ew::div)}, {0, 0});
  c.call("ref.DequantizeLinear", {sums, factor}, {scaled}, {-1, 0});
  Arg one = c.weight(Tensor::scalar_f32(1)), zero = along(c, kYZero, rows);
  if (!product(zero.view->dims).is(1)) {
    // The zero point has the shape of its scale in ref.QuantizeLinear.
    Tensor ones(DType::f32, {1});
    *ones.as<float>() = 1;
    one = c.weight(std::move(ones));
    one.view = Strided{Dim(0), zero.view->dims, std::vector<Dim>(rank, Dim(0))};
  } else {
    zero.view = Strided{zero.view->offset, {}, {}};
  }
  c.call("ref.QuantizeLinear", {scaled, one, zero}, {c.out()}, {-1, 0, static_cast<int64_t>(DType::f32), 1});
  return ok();
}

// scale of x * scale of w / scale of y, when all are constants: one, or one for each column.
std::optional<std::vector<float>> constant_factor(const LowerContext& c) {
  auto *x = c.constant_of(kXScale), *w = c.constant_of(kWScale), *y = c.constant_of(kYScale);
  if (!x || !w || !y || x->count() != 1 || y->count() != 1) return std::nullopt;
  std::vector<float> f(static_cast<size_t>(w->count()));
  for (size_t i = 0; i < f.size(); ++i)
    f[i] = static_cast<float>(x->at(0)) * static_cast<float>(w->at(static_cast<int64_t>(i))) / static_cast<float>(y->at(0));
  return f;
}

// An operand that runs along the columns of the output: [N], or [N, 1...] for a convolution.
void column_operand(IntegerForm& f, Arg a, const Strided& v, DType t, size_t rank) {
  Strided spread = v;
  if (spread.dims.empty()) spread = with_axis(spread, 0);
  if (f.conv)
    while (spread.dims.size() + 1 < rank) spread = with_axis(spread, spread.dims.size());
  f.extras.push_back(std::move(a));
  f.extra_views.push_back(std::move(spread));
  f.extra_types.push_back(t);
}

Status lower(LowerContext& c) {
  auto one = [&](int i) { return c.type(i).ranked && product(c.type(i).dims).is(1); };
  IntegerForm f = form(c.node);
  const size_t rank = c.out_type(0).dims.size();
  if (!is_byte(c.out_type(0).dtype) || !takes_integer_product(c.graph, c.node, f) || !one(kXScale) || !one(kYScale) || !one(kYZero)) return ok();
  if (!one(kWScale) && (c.type(kWScale).rank() != 1 || (!f.conv && c.type(kW).rank() < 2))) return ok();
  ProgramBuilder b;
  Reg sum = b.load(0);
  auto operand = [&](int i, Lane lane) {
    Strided v = c.view(i);
    if (product(v.dims).is(1)) v = Strided{v.offset, {}, {}};
    column_operand(f, c.in(i), v, c.type(i).dtype, rank);
    return b.load(static_cast<int>(f.extras.size()), lane);
  };
  auto known = constant_factor(c);
  auto* bias = c.constant_of(kBias);
  if (known && (bias || !c.has(kBias))) {
    // Scale and bias of the columns, which the kernel applies to the sums in registers.
    auto vector = [&](const std::vector<float>& v) {
      column_operand(f, c.weight(Tensor::of<float>(DType::f32, {static_cast<int64_t>(v.size())}, std::span<const float>(v))),
                     Strided::dense({Dim(static_cast<int64_t>(v.size()))}), DType::f32, rank);
      return b.load(static_cast<int>(f.extras.size()));
    };
    sum = b.op(V::mul, sum, vector(*known));
    if (bias) {
      std::vector<float> scaled(static_cast<size_t>(bias->count()));
      for (size_t i = 0; i < scaled.size(); ++i)
        scaled[i] = static_cast<float>(bias->at(static_cast<int64_t>(i)) * static_cast<double>((*known)[known->size() == 1 ? 0 : i]));
      sum = b.op(V::add, sum, vector(scaled));
    }
  } else {
    if (c.has(kBias)) sum = b.op(V::add, sum, b.op(V::to_f32, operand(kBias, Lane::i32)));
    Reg x = operand(kXScale, Lane::f32), w = operand(kWScale, Lane::f32);
    sum = b.op(V::mul, sum, b.op(V::div, b.op(V::mul, x, w), operand(kYScale, Lane::f32)));
  }
  auto* zero = c.constant_of(kYZero);
  Reg z = zero ? b.constant_i32(static_cast<int32_t>(zero->at_int(0))) : operand(kYZero, Lane::i32);
  b.store(0, saturate(b, sum, z, c.out_type(0).dtype));
  GE_TRY(f.program, b.finish(static_cast<int>(f.extras.size()) + 1, 1));
  return lower_integer_product(c, std::move(f));
}

const Register r1(OpDef{.name = "QLinearMatMul",
                        .min_inputs = 8,
                        .max_inputs = 8,
                        .since = 10,
                        .unit = kernels::Unit::cube,
                        .doc = "a product of quantised matrices, quantised",
                        .types = types::float8 | Types{DType::u8, DType::i8},
                        .infer = infer,
                        .reference = reference,
                        .lower = lower});
const Register r2(OpDef{.name = "QLinearConv",
                        .min_inputs = 8,
                        .max_inputs = 9,
                        .since = 10,
                        .attrs = {{"auto_pad", "as of Conv"},
                                  {"dilations", "as of Conv"},
                                  {"group", "as of Conv"},
                                  {"kernel_shape", "as of Conv"},
                                  {"pads", "as of Conv; padded with the zero point"},
                                  {"strides", "as of Conv"}},
                        .unit = kernels::Unit::cube,
                        .doc = "a convolution of quantised operands, quantised; the bias is i32",
                        .types = {DType::u8, DType::i8},
                        .infer = infer,
                        .reference = reference,
                        .lower = lower,
                        .layout = channels_last_layout});

}  // namespace
}  // namespace ge::ops
