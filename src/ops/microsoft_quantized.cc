// Quantised operators of com.microsoft, written as what they mean on import: DequantizeLinear, the operator in
// f32, QuantizeLinear; or integer products and their scales.
#include "base/text.h"
#include "ops/rewrite.h"

namespace ge::ops {
namespace {

// Node op of x, scale and zero point (which may be absent) from input `first` on.
ValueId dequantized(UpgradeContext& c, ValueId x, ValueId scale, ValueId zero) {
  std::vector<ValueId> in{x, scale};
  if (zero) in.push_back(zero);
  return make_node(c, "DequantizeLinear", std::move(in));
}
ValueId dequantized(UpgradeContext& c, size_t first) {
  return dequantized(c, input_of(c, first), input_of(c, first + 1), input_of(c, first + 2));
}

void become_quantized(UpgradeContext& c, ValueId x, ValueId scale, ValueId zero) {
  std::vector<ValueId> in{x, scale};
  if (zero) in.push_back(zero);
  become(c, "QuantizeLinear", std::move(in));
}

Status upgrade_binary(UpgradeContext& c) {
  ValueId y = make_node(c, c.node().op == "com.microsoft.QLinearAdd" ? "Add" : "Mul", {dequantized(c, 0), dequantized(c, 3)});
  become_quantized(c, y, input_of(c, 6), input_of(c, 7));
  return ok();
}

Status upgrade_unary(UpgradeContext& c) {
  ir::Attrs attrs;
  bool leaky = c.node().op == "com.microsoft.QLinearLeakyRelu";
  if (leaky) attrs["alpha"] = ir::attr_float(c.node(), "alpha", 0.01);
  ValueId y = make_node(c, leaky ? "LeakyRelu" : "Sigmoid", {dequantized(c, 0)}, std::move(attrs));
  become_quantized(c, y, input_of(c, 3), input_of(c, 4));
  return ok();
}

Status upgrade_concat(UpgradeContext& c) {
  std::vector<ValueId> parts;
  size_t n = c.node().inputs.size();
  if (n < 5 || (n - 2) % 3) return upgrade_error(c, format("{} inputs", n));
  int64_t axis = ir::attr_int(c.node(), "axis", 0);
  for (size_t i = 2; i < n; i += 3) parts.push_back(dequantized(c, i));
  ValueId y = make_node(c, "Concat", std::move(parts), {{"axis", axis}});
  become_quantized(c, y, input_of(c, 0), input_of(c, 1));
  return ok();
}

Status upgrade_pool(UpgradeContext& c) {
  bool global = c.node().op == "com.microsoft.QLinearGlobalAveragePool";
  bool last = ir::attr_int(c.node(), "channels_last", 0) != 0;
  ir::Attrs attrs;
  for (auto* a : {"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"})
    if (auto it = c.node().attrs.find(a); it != c.node().attrs.end()) attrs[a] = it->second;
  size_t spatial = ir::attr_ints(c.node(), "kernel_shape").size();
  if (last && global) return upgrade_error(c, "channels_last is not supported");
  if (global) attrs.clear();
  ValueId x = dequantized(c, 0);
  std::vector<int64_t> to{0, static_cast<int64_t>(spatial) + 1}, back{0};
  for (size_t a = 1; a <= spatial; ++a) to.push_back(static_cast<int64_t>(a)), back.push_back(static_cast<int64_t>(a) + 1);
  back.push_back(1);
  if (last) x = make_node(c, "Transpose", {x}, {{"perm", to}});
  ValueId y = make_node(c, global ? "GlobalAveragePool" : "AveragePool", {x}, std::move(attrs));
  if (last) y = make_node(c, "Transpose", {y}, {{"perm", back}});
  become_quantized(c, y, input_of(c, 3), input_of(c, 4));
  return ok();
}

// Before opset 13 Softmax took all axes from `axis` on as one row.
Status upgrade_softmax(UpgradeContext& c) {
  int64_t axis = ir::attr_int(c.node(), "axis", -1), opset = ir::attr_int(c.node(), "opset", 13);
  ValueId x = dequantized(c, 0);
  if (opset < 13 && axis != -1) {
    ValueId flat = make_node(c, "Flatten", {x}, {{"axis", axis}}), shape = make_node(c, "Shape", {x});
    x = make_node(c, "Reshape", {make_node(c, "Softmax", {flat}, {{"axis", int64_t{-1}}}), shape});
  } else {
    x = make_node(c, "Softmax", {x}, {{"axis", axis}});
  }
  become_quantized(c, x, input_of(c, 3), input_of(c, 4));
  return ok();
}

// (a - zero) * (b - zero) as i32, times both scales, plus bias; c's own node becomes the result.
void become_scaled_product(UpgradeContext& c, std::vector<ValueId> operands, ValueId a_scale, ValueId b_scale, ValueId bias) {
  while (!operands.back()) operands.pop_back();
  ValueId sums = make_node(c, "MatMulInteger", std::move(operands));
  ValueId floats = make_node(c, "Cast", {sums}, {{"to", static_cast<int64_t>(DType::f32)}});
  ValueId scale = make_node(c, "Mul", {a_scale, b_scale});
  if (!bias) {
    become(c, "Mul", {floats, scale});
    return;
  }
  become(c, "Add", {make_node(c, "Mul", {floats, scale}), bias});
}

Status upgrade_to_float(UpgradeContext& c) {
  auto in = [&](size_t i) { return input_of(c, i); };
  ValueId a_scale = in(2), b_scale = in(3), bias = in(6);
  become_scaled_product(c, {in(0), in(1), in(4), in(5)}, a_scale, b_scale, bias);
  return ok();
}

Status upgrade_dynamic(UpgradeContext& c) {
  auto in = [&](size_t i) { return input_of(c, i); };
  NodeId q = c.graph.insert("DynamicQuantizeLinear", {in(0)}, {Type{}, Type{}, Type{}}, {}, c.id);
  auto out = c.graph.node(q).outputs;
  ValueId b_scale = in(2), bias = in(4);
  become_scaled_product(c, {out[0], in(1), out[2], in(3)}, out[1], b_scale, bias);
  return ok();
}

// alpha * a_scale * b_scale * ((a - zero) * (b - zero) + bias), of which the output is quantised if it has a scale.
Status upgrade_gemm(UpgradeContext& c) {
  enum { kA, kAScale, kAZero, kB, kBScale, kBZero, kBias, kYScale, kYZero };
  auto in = [&](size_t i) { return input_of(c, i); };
  auto turned = [&](size_t i, const char* flag) {
    return ir::attr_int(c.node(), flag, 0) ? make_node(c, "Transpose", {in(i)}, {{"perm", std::vector<int64_t>{1, 0}}}) : in(i);
  };
  std::vector<ValueId> operands{turned(kA, "transA"), turned(kB, "transB"), in(kAZero), in(kBZero)};
  while (!operands.back()) operands.pop_back();
  ValueId sums = make_node(c, "MatMulInteger", std::move(operands));
  if (in(kBias)) sums = make_node(c, "Add", {sums, in(kBias)});
  ValueId scale = make_node(c, "Mul", {in(kAScale), in(kBScale)}), y_scale = in(kYScale), y_zero = in(kYZero);
  if (double alpha = ir::attr_float(c.node(), "alpha", 1); alpha != 1) scale = make_node(c, "Mul", {scale, c.constant_float(static_cast<float>(alpha))});
  ValueId floats = make_node(c, "Cast", {sums}, {{"to", static_cast<int64_t>(DType::f32)}});
  if (!y_scale) become(c, "Mul", {floats, scale});
  else become_quantized(c, make_node(c, "Mul", {floats, scale}), y_scale, y_zero);
  return ok();
}

Status upgrade_where(UpgradeContext& c) {
  ValueId y = make_node(c, "Where", {input_of(c, 0), dequantized(c, 1), dequantized(c, 4)});
  become_quantized(c, y, input_of(c, 7), input_of(c, 8));
  return ok();
}

// --- MatMulNBits: the weights are unpacked and dequantised in blocks; of constants, while compiling ---

struct Packing {
  int64_t k = 0, n = 0, bits = 4, block = 0, blocks = 0;
  DType type() const { return bits == 2 ? DType::u2 : bits == 4 ? DType::u4 : DType::u8; }
};

ValueId unpacked(UpgradeContext& c, ValueId v, const Packing& p) {
  return p.bits == 8 ? v : make_node(c, "ge.UnpackBits", {v}, {{"bits", p.bits}});
}
ValueId reshaped(UpgradeContext& c, ValueId v, std::vector<int64_t> dims) {
  return make_node(c, "Reshape", {v, c.constant_ints(dims)});
}

// The zero points as [N, blocks, 1] of the packed type.
ValueId zero_points(UpgradeContext& c, ValueId v, const Packing& p) {
  if (!v) {
    Tensor t(p.type(), {p.n, p.blocks, 1});
    for (int64_t i = 0; i < t.count(); ++i) t.as<uint8_t>()[i] = static_cast<uint8_t>(1 << (p.bits - 1));
    return c.graph.add_constant(std::move(t), "zero_points");
  }
  // Rows begin at whole bytes.
  int64_t row = (p.blocks * p.bits + 7) / 8 * 8 / p.bits;
  ValueId z = reshaped(c, unpacked(c, v, p), {p.n, row});
  if (row != p.blocks) z = make_node(c, "Slice", {z, c.constant_ints({0}), c.constant_ints({p.blocks}), c.constant_ints({1})});
  return reshaped(c, z, {p.n, p.blocks, 1});
}

Status upgrade_nbits(UpgradeContext& c) {
  Packing p{ir::attr_int(c.node(), "K", 0), ir::attr_int(c.node(), "N", 0), ir::attr_int(c.node(), "bits", 4), ir::attr_int(c.node(), "block_size", 0)};
  constexpr int64_t kMost = int64_t{1} << 31;
  if (p.k < 1 || p.n < 1 || p.k > kMost || p.n > kMost || p.block < 8 || p.block > kMost || (p.bits != 2 && p.bits != 4 && p.bits != 8))
    return upgrade_error(c, format("K = {}, N = {}, bits = {}, block_size = {}", p.k, p.n, p.bits, p.block));
  if (input_of(c, 4)) return upgrade_error(c, "g_idx is not supported");
  p.blocks = (p.k + p.block - 1) / p.block;
  if (p.n > (int64_t{1} << 40) / (p.blocks * p.block)) return upgrade_error(c, "the weights are too large");
  ValueId a = input_of(c, 0), zero = input_of(c, 3), bias = input_of(c, 5);
  ValueId q = reshaped(c, unpacked(c, input_of(c, 1), p), {p.n, p.blocks, p.block});
  ValueId scale = reshaped(c, input_of(c, 2), {p.n, p.blocks, 1}), w;
  const Tensor* z = constant_of(c, 3);
  if (z && is_float(z->dtype())) {
    ValueId numbers = make_node(c, "CastLike", {q, zero});
    ValueId centred = make_node(c, "Sub", {numbers, reshaped(c, zero, {p.n, p.blocks, 1})});
    w = make_node(c, "Mul", {centred, scale});
  } else {
    w = make_node(c, "DequantizeLinear", {q, scale, zero_points(c, zero, p)}, {{"axis", int64_t{2}}, {"block_size", p.block}});
  }
  w = reshaped(c, w, {p.n, p.blocks * p.block});
  if (p.blocks * p.block != p.k) w = make_node(c, "Slice", {w, c.constant_ints({0}), c.constant_ints({p.k}), c.constant_ints({1})});
  w = make_node(c, "Transpose", {w}, {{"perm", std::vector<int64_t>{1, 0}}});
  if (bias) become(c, "Add", {make_node(c, "MatMul", {a, w}), bias});
  else become(c, "MatMul", {a, w});
  return ok();
}

struct Entry {
  const char* name;
  int min_inputs, max_inputs;
  Status (*upgrade)(UpgradeContext&);
};
const Entry kTable[] = {
    {"com.microsoft.QLinearAdd", 7, 8, upgrade_binary},
    {"com.microsoft.QLinearMul", 7, 8, upgrade_binary},
    {"com.microsoft.QLinearSigmoid", 4, 5, upgrade_unary},
    {"com.microsoft.QLinearLeakyRelu", 4, 5, upgrade_unary},
    {"com.microsoft.QLinearConcat", 5, -1, upgrade_concat},
    {"com.microsoft.QLinearAveragePool", 4, 5, upgrade_pool},
    {"com.microsoft.QLinearGlobalAveragePool", 4, 5, upgrade_pool},
    {"com.microsoft.QLinearSoftmax", 4, 5, upgrade_softmax},
    {"com.microsoft.MatMulIntegerToFloat", 4, 7, upgrade_to_float},
    {"com.microsoft.DynamicQuantizeMatMul", 3, 5, upgrade_dynamic},
    {"com.microsoft.QGemm", 6, 9, upgrade_gemm},
    {"com.microsoft.QLinearWhere", 8, 9, upgrade_where},
    {"com.microsoft.MatMulNBits", 3, 6, upgrade_nbits},
};

[[maybe_unused]] const bool registered = [] {
  for (auto& e : kTable) {
    Register r(rewritten(e.name, e.min_inputs, e.max_inputs, e.upgrade));
  }
  return true;
}();

}  // namespace
}  // namespace ge::ops
