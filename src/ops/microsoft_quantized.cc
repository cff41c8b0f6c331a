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
  if (last && global) return ok();   // expand_pool
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

// The mean over all axes between the first and the last, once it is known how many there are.
Result<bool> expand_pool(UpgradeContext& c) {
  const Type& x = c.graph.value(input_of(c, 0)).type;
  if (!x.ranked) return false;
  std::vector<int64_t> axes;
  for (int64_t a = 1; a + 1 < x.rank(); ++a) axes.push_back(a);
  become_quantized(c, make_node(c, "ReduceMean", {dequantized(c, 0), c.constant_ints(axes)}), input_of(c, 3), input_of(c, 4));
  return true;
}
Status infer_pool(InferContext& c) {
  c.set_unranked(0, c.dtype(0));
  if (c.ranked(0) && c.rank(0) < 3) return c.fail("its input has no spatial axes");
  return ok();
}

Status upgrade_mean(UpgradeContext& c) {
  std::vector<ValueId> in{dequantized(c, 0)};
  if (ir::has_attr(c.node(), "axes")) in.push_back(c.constant_ints(ir::attr_ints(c.node(), "axes")));
  int64_t keep = ir::attr_int(c.node(), "keepdims", 1);
  become_quantized(c, make_node(c, "ReduceMean", std::move(in), {{"keepdims", keep}}), input_of(c, 3), input_of(c, 4));
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

// --- MatMulBnb4: weights of 4 bits that name one of 16 numbers, times the largest of their block ---

// As bitsandbytes has them: a sign, two bits of exponent and one more; and quantiles of the normal distribution.
constexpr float kFp4[] = {0, 0.0052083333f, 0.6666667f, 1, 0.33333333f, 0.5f, 0.16666667f, 0.25f, -0.0f, -0.0052083333f, -0.6666667f, -1, -0.33333333f, -0.5f, -0.16666667f, -0.25f};
constexpr float kNf4[] = {-1, -0.6961928f, -0.52507305f, -0.3949175f, -0.28444138f, -0.18477343f, -0.091050036f, 0, 0.0795803f, 0.1609302f, 0.2461123f, 0.33791524f, 0.44070983f, 0.562617f, 0.72295684f, 1};

Status upgrade_bnb4(UpgradeContext& c) {
  Packing p{ir::attr_int(c.node(), "K", 0), ir::attr_int(c.node(), "N", 0), 4, ir::attr_int(c.node(), "block_size", 0)};
  constexpr int64_t kMost = int64_t{1} << 24;
  const int64_t kind = ir::attr_int(c.node(), "quant_type", 1);
  if (p.k < 1 || p.n < 1 || p.k > kMost || p.n > kMost || p.block < 8 || p.block > kMost || kind < 0 || kind > 1)
    return upgrade_error(c, format("K = {}, N = {}, block_size = {}, quant_type = {}", p.k, p.n, p.block, kind));
  if (p.k * p.n % 2) return upgrade_error(c, "an odd number of weights is not supported");
  ValueId a = input_of(c, 0), largest = input_of(c, 2);
  // The first of two is in the upper bits.
  ValueId pairs = reshaped(c, make_node(c, "Cast", {unpacked(c, input_of(c, 1), p)}, {{"to", static_cast<int64_t>(DType::i32)}}), {p.k * p.n / 2, 2});
  ValueId codes = reshaped(c, make_node(c, "Gather", {pairs, c.constant_ints({1, 0})}, {{"axis", int64_t{1}}}), {p.k * p.n});
  ValueId table = c.graph.add_constant(Tensor::of<float>(DType::f32, {16}, std::span<const float>(kind ? kNf4 : kFp4)), "table");
  ValueId w = make_node(c, "Gather", {make_node(c, "CastLike", {table, largest}), codes});
  const int64_t blocks = (p.k * p.n + p.block - 1) / p.block, rest = blocks * p.block - p.k * p.n;
  if (rest) w = make_node(c, "Pad", {w, c.constant_ints({0, rest})});
  w = make_node(c, "Mul", {reshaped(c, w, {blocks, p.block}), reshaped(c, largest, {blocks, 1})});
  if (rest) w = make_node(c, "Slice", {reshaped(c, w, {blocks * p.block}), c.constant_ints({0}), c.constant_ints({p.k * p.n})});
  w = reshaped(c, w, {p.n, p.k});
  if (ir::attr_int(c.node(), "transB", 1)) w = make_node(c, "Transpose", {w}, {{"perm", std::vector<int64_t>{1, 0}}});
  become(c, "MatMul", {a, w});
  return ok();
}

struct Entry {
  const char* name;
  int min_inputs, max_inputs;
  Types types;
  int data;
  Status (*upgrade)(UpgradeContext&);
  uint32_t optional = 0;
};
constexpr Types kBytes{DType::u8, DType::i8};
const Entry kTable[] = {
    {"com.microsoft.QLinearAdd", 7, 8, types::quantised, 0, upgrade_binary, 0b100100},
    {"com.microsoft.QLinearMul", 7, 8, types::quantised, 0, upgrade_binary, 0b100100},
    {"com.microsoft.QLinearSigmoid", 4, 5, types::quantised, 0, upgrade_unary, 0b100},
    {"com.microsoft.QLinearLeakyRelu", 4, 5, types::quantised, 0, upgrade_unary, 0b100},
    {"com.microsoft.QLinearConcat", 5, -1, types::quantised, 2, upgrade_concat},
    {"com.microsoft.QLinearAveragePool", 4, 5, types::quantised, 0, upgrade_pool, 0b100},
    {"com.microsoft.QLinearGlobalAveragePool", 4, 5, types::quantised, 0, upgrade_pool, 0b100},
    {"com.microsoft.QLinearReduceMean", 4, 5, types::quantised, 0, upgrade_mean, 0b100},
    {"com.microsoft.MatMulBnb4", 3, 3, types::floats | Types{DType::i32, DType::i64, DType::u32, DType::u64}, 0, upgrade_bnb4},
    {"com.microsoft.QLinearSoftmax", 4, 5, types::quantised, 0, upgrade_softmax, 0b100},
    {"com.microsoft.MatMulIntegerToFloat", 4, 7, kBytes, 0, upgrade_to_float},
    {"com.microsoft.DynamicQuantizeMatMul", 3, 5, {DType::f32}, 0, upgrade_dynamic},
    {"com.microsoft.QGemm", 6, 9, kBytes, 0, upgrade_gemm},
    {"com.microsoft.QLinearWhere", 8, 9, types::quantised, 1, upgrade_where},
    {"com.microsoft.MatMulNBits", 3, 6, types::floats, 0, upgrade_nbits},
};

[[maybe_unused]] const bool registered = [] {
  for (auto& e : kTable) {
    OpDef d = rewritten(e.name, e.min_inputs, e.max_inputs, e.types, e.upgrade);
    d.data = e.data;
    d.optional = e.optional;
    if (e.upgrade == upgrade_pool) d.infer = infer_pool, d.expand = expand_pool;
    Register r(std::move(d));
  }
  return true;
}();

}  // namespace
}  // namespace ge::ops
