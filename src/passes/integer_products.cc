// Products and convolutions of dequantised bytes become sums of bytes:
//   Conv(DequantizeLinear(x), DequantizeLinear(w), b), MatMul and Gemm alike   ->   ge.IntegerConv, ge.IntegerMatMul
//   Cast(ConvInteger), Cast(MatMulInteger) to f32                              ->   the same
//   ConvInteger, QLinearConv of many groups                            ->   Conv in f32, where that is exact
// x has one scale, w one or one for each column, all scales are constant. The sums are exact; the scales and the bias
// are the beginning of the program, into which the fusion rules put what follows. Runs before folding, which
// would make f32 weights.
#include <algorithm>

#include "base/text.h"
#include "ops/integer_product.h"
#include "passes/fusion.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

ValueId input(const ir::Node& n, size_t i) { return i < n.inputs.size() ? n.inputs[i] : ValueId{}; }

// The DequantizeLinear of bytes to f32 that makes v.
const ir::Node* dequantizer(const ir::Graph& g, ValueId v) {
  if (!v || !g.value(v).producer || g.value(v).type.dtype != DType::f32) return nullptr;
  auto& n = g.node(g.value(v).producer);
  if (n.op != "DequantizeLinear" || !ops::is_byte(g.value(n.inputs[0]).type.dtype) || ir::attr_int(n, "block_size", 0)) return nullptr;
  return g.is_constant(n.inputs[1]) && g.value(n.inputs[1]).type.dtype == DType::f32 ? &n : nullptr;
}

bool one_element(const ir::Graph& g, ValueId v) {
  auto& t = g.value(v).type;
  return t.ranked && product(t.dims).is(1);
}

struct Operands {
  ValueId x, w, x_zero, w_zero;
  std::vector<float> scale;   // of the sums: one, or one for each column
};

// The operands when the product of `n` is one of bytes; column_axis: the axis of w that the sums keep.
Verdict read(const ir::Graph& g, const ir::Node& n, int column_axis, Operands& o) {
  auto *x = dequantizer(g, input(n, 0)), *w = dequantizer(g, input(n, 1));
  if (!w || !g.is_constant(w->inputs[0])) return no("the weights are not dequantised constants");
  if (!x) return no("the input is not dequantised bytes");
  if (!one_element(g, x->inputs[1])) return no("the input has several scales", "quantise it with one scale");
  o.x = x->inputs[0], o.w = w->inputs[0], o.x_zero = input(*x, 2), o.w_zero = input(*w, 2);
  auto& weights = g.value(o.w).type;
  auto &xs = *g.value(x->inputs[1]).constant, &ws = *g.value(w->inputs[1]).constant;
  if (ws.count() != 1) {
    int64_t axis = ir::attr_int(*w, "axis", 1);
    if (axis < 0) axis += weights.rank();
    if (axis != column_axis || ws.rank() != 1 || ws.dims()[0] != weights.dims[static_cast<size_t>(axis)].value())
      return no("the weights have scales along another axis than that of the columns", "quantise them with a scale for each column");
  }
  for (int64_t i = 0; i < ws.count(); ++i) o.scale.push_back(xs.as<float>()[0] * ws.as<float>()[i]);
  return yes();
}

// Puts the product in place of n's output: scale and bias (or none) as the program.
void replace(ir::Graph& g, NodeId id, std::string op, const Operands& o, size_t trailing, ValueId bias, ir::Attrs attrs, Trace& trace) {
  std::vector<ValueId> in{o.x, o.w, o.x_zero, o.w_zero};
  std::string program;
  std::vector<int64_t> dims{static_cast<int64_t>(o.scale.size())};
  if (o.scale.size() > 1) dims.insert(dims.end(), trailing, 1);
  in.push_back(g.add_constant(Tensor::of<float>(DType::f32, dims, std::span<const float>(o.scale)), "scale"));
  program = "v0 = load 0; v1 = load 1; v2 = mul v0 v1; ";
  if (bias && trailing) {
    std::vector<int64_t> shape{-1};
    shape.insert(shape.end(), trailing, 1);
    NodeId r = g.insert("Reshape", {bias, g.add_constant(Tensor::vector_i64(shape), "shape")}, {ir::Type{}}, {}, id);
    g.value(g.node(r).outputs[0]).type.dtype = DType::f32;
    bias = g.node(r).outputs[0];
  }
  if (bias) in.push_back(bias), program += "v3 = load 2; v4 = add v2 v3; store 0 v4";
  else program += "store 0 v2";
  attrs["program"] = program;
  attrs["dtypes"] = std::vector<int64_t>{static_cast<int64_t>(DType::f32)};
  ValueId out = g.node(id).outputs[0];
  NodeId made = g.insert(std::move(op), std::move(in), {g.value(out).type}, std::move(attrs), id);
  std::string name = g.node(id).name;
  g.replace_uses(out, g.node(made).outputs[0]);
  g.erase(id);
  trace.fused("integer_products", g, made, name);
}

bool fits(const ir::Graph& g, const Operands& o, bool conv, const ir::Attrs& attrs) {
  ir::Node n;
  n.inputs = {o.x, o.w, o.x_zero, o.w_zero};
  n.attrs = attrs;
  ops::IntegerForm f;
  f.conv = conv;
  return ops::takes_integer_product(g, n, f);
}

Verdict replace_conv(ir::Graph& g, NodeId id, Trace& trace) {
  auto& n = g.node(id);
  Operands o;
  Verdict v = read(g, n, 0, o);
  if (!v) return v;
  ir::Attrs attrs = n.attrs;
  if (!fits(g, o, true, attrs)) return no("the kernel does not take these operands");
  size_t trailing = static_cast<size_t>(g.value(o.w).type.rank()) - 2;
  ValueId bias = input(n, 2);
  if (bias && g.value(bias).type.dtype != DType::f32) return no("the bias is not f32");
  replace(g, id, "ge.IntegerConv", o, trailing, bias, std::move(attrs), trace);
  return yes();
}

Verdict replace_matmul(ir::Graph& g, NodeId id, Trace& trace) {
  auto& n = g.node(id);
  bool gemm = n.op == "Gemm", transposed = gemm && ir::attr_int(n, "transB", 0) != 0;
  if (gemm && (ir::attr_int(n, "transA", 0) || ir::attr_float(n, "alpha", 1) != 1 || ir::attr_float(n, "beta", 1) != 1))
    return no("Gemm transposes A or scales");
  Operands o;
  auto& w = g.value(input(n, 1)).type;
  if (!w.ranked || w.rank() != 2) return no("the weights are no matrix");
  Verdict v = read(g, n, transposed ? 0 : 1, o);
  if (!v) return v;
  if (!fits(g, o, false, {})) return no("the kernel does not take these operands");
  ValueId bias = gemm ? input(n, 2) : ValueId{};
  if (bias && g.value(bias).type.dtype != DType::f32) return no("the bias is not f32");
  if (bias && g.value(bias).type.ranked && g.value(bias).type.rank() == 0) return no("the bias is a scalar");
  if (transposed) {
    NodeId t = g.insert("Transpose", {o.w}, {ir::Type::tensor(w.dtype, {w.dims[1], w.dims[0]})}, {{"perm", std::vector<int64_t>{1, 0}}}, id);
    g.value(g.node(t).outputs[0]).type.dtype = g.value(o.w).type.dtype;
    o.w = g.node(t).outputs[0];
  }
  replace(g, id, "ge.IntegerMatMul", o, 0, bias, {}, trace);
  return yes();
}

// Sums that only a Cast to f32 reads.
Verdict replace_sums(ir::Graph& g, NodeId id, Trace& trace) {
  bool conv = g.node(id).op == "ConvInteger";
  NodeId cast = g.only_reader(g.node(id).outputs[0]);
  if (!cast || g.node(cast).op != "Cast" || ir::attr_int(g.node(cast), "to", 0) != static_cast<int64_t>(DType::f32))
    return no("the sums are not read by one Cast to f32");
  ops::IntegerForm f;
  f.conv = conv;
  if (!ops::takes_integer_product(g, g.node(id), f)) return no("the kernel does not take these operands");
  ir::Attrs attrs = g.node(id).attrs;
  attrs["dtypes"] = std::vector<int64_t>{static_cast<int64_t>(DType::f32)};
  auto in = g.node(id).inputs;
  ValueId out = g.node(cast).outputs[0];
  NodeId made = g.insert(conv ? "ge.IntegerConv" : "ge.IntegerMatMul", std::move(in), {g.value(out).type}, std::move(attrs), cast);
  std::string name = g.node(id).name;
  g.replace_uses(out, g.node(made).outputs[0]);
  g.erase(cast);
  g.erase(id);
  trace.fused("integer_products", g, made, name);
  return yes();
}

// A convolution of many small groups is faster in f32, and as exact: its sums stay below 2^24.
Verdict replace_grouped(ir::Graph& g, NodeId id, Trace& trace) {
  const bool quantized = g.node(id).op == "QLinearConv";
  ops::IntegerForm f;
  f.conv = true;
  if (quantized) f.x = 0, f.x_zero = 2, f.w = 3, f.w_zero = 5;
  auto in = g.node(id).inputs;
  auto at = [&](int i) { return i < static_cast<int>(in.size()) ? in[static_cast<size_t>(i)] : ValueId{}; };
  if (ir::attr_int(g.node(id), "group", 1) < 2 || ops::takes_integer_product(g, g.node(id), f)) return no("it is no convolution of many groups");
  auto &x = g.value(at(f.x)).type, &w = g.value(at(f.w)).type;
  if (!w.is_static() || !x.ranked || w.rank() < 3) return no("the sizes of the weights are not known");
  int64_t terms = 1;
  for (int a = 1; a < w.rank(); ++a) terms *= w.dims[static_cast<size_t>(a)].value();
  constexpr int64_t kLargest = 255 * 255;
  if (terms > (int64_t{1} << 24) / kLargest) return no("the sums of a group may leave what f32 holds exactly");
  if (at(f.x_zero) && !one_element(g, at(f.x_zero))) return no("the input has several zero points", "quantise it with one zero point");
  auto made = [&](std::string op, std::vector<ValueId> operands, ir::Attrs attrs = {}) {
    while (!operands.empty() && !operands.back()) operands.pop_back();
    NodeId node = g.insert(std::move(op), std::move(operands), {ir::Type{}}, std::move(attrs), id);
    ValueId v = g.node(node).outputs[0];
    g.value(v).type.dtype = DType::f32;
    return v;
  };
  const int64_t columns = at(f.w_zero) && !one_element(g, at(f.w_zero)) ? w.dims[0].value() : 0;
  ValueId one = g.add_constant(Tensor::scalar_f32(1), "one"), ones = one, x_scale = one, w_scale = one;
  if (columns) ones = g.add_constant(Tensor::of<float>(DType::f32, {columns}, std::span<const float>(std::vector<float>(static_cast<size_t>(columns), 1))), "ones");
  w_scale = ones;
  if (quantized) x_scale = at(1), w_scale = at(4);
  ir::Attrs attrs = g.node(id).attrs;
  std::vector<ValueId> operands{made("DequantizeLinear", {at(f.x), x_scale, at(f.x_zero)}),
                                made("DequantizeLinear", {at(f.w), w_scale, at(f.w_zero)}, {{"axis", int64_t{0}}})};
  if (quantized && at(8))
    operands.push_back(made("Mul", {made("Cast", {at(8)}, {{"to", int64_t{1}}}), made("Mul", {x_scale, w_scale})}));
  ValueId y = made("Conv", std::move(operands), std::move(attrs));
  ValueId out = g.node(id).outputs[0];
  std::string name = g.node(id).name;
  DType type = g.value(out).type.dtype;
  NodeId last = quantized ? g.insert("QuantizeLinear", {y, at(6), at(7)}, {g.value(out).type}, {}, id)
                          : g.insert("Cast", {y}, {g.value(out).type}, {{"to", static_cast<int64_t>(type)}}, id);
  g.replace_uses(out, g.node(last).outputs[0]);
  g.erase(id);
  trace.fused("integer_products", g, last, name);
  return yes();
}

}  // namespace

Result<bool> integer_products(ir::Graph& g, PassContext& c) {
  bool changed = false;
  if (!c.options.fusion) return false;
  for (NodeId id : g.order()) {
    auto& n = g.node(id);
    if (n.dead || n.outputs.size() != 1) continue;
    bool conv = n.op == "Conv", matmul = n.op == "MatMul" || n.op == "Gemm", sums = n.op == "ConvInteger" || n.op == "MatMulInteger";
    if (n.op == "ConvInteger" || n.op == "QLinearConv") {
      Verdict grouped = in_scope(c.options, g, id).holds ? replace_grouped(g, id, c.trace) : no("it is out of scope");
      if (grouped) {
        changed = true;
        continue;
      }
    }
    if (!conv && !matmul && !sums) continue;
    if (!in_scope(c.options, g, id).holds) continue;
    // Only a product with a dequantised operand is a near miss.
    bool near = sums || dequantizer(g, input(n, 0)) || dequantizer(g, input(n, 1));
    std::string name = n.name;
    Verdict v = conv ? replace_conv(g, id, c.trace) : matmul ? replace_matmul(g, id, c.trace) : replace_sums(g, id, c.trace);
    if (v) changed = true;
    else if (near) c.trace.near_miss({"integer_products", name, 1, 2, name, v.why, v.help});
  }
  return changed;
}

}  // namespace ge::passes
