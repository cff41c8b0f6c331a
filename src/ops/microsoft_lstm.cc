// com.microsoft.DynamicQuantizeLSTM (ONNX Runtime's ContribOperators.md), written on import: its input rounded to
// bytes and multiplied with all of W by an integer product, then ge.DynamicLSTM. Weights, their parameters and the
// bias are constants.
#include <algorithm>

#include "base/text.h"
#include "kernels/cube/integer.h"
#include "ops/rewrite.h"

namespace ge::ops {
namespace {

enum Input { kX, kW, kR, kBias, kLengths, kHidden, kCell, kPeepholes, kWScale, kWZero, kRScale, kRZero };

// Columns in the order of cube.recurrent: units in blocks of 16, of each block the gates i o f c side by side.
struct Order {
  int64_t h, n;
  explicit Order(int64_t units) : h(units), n((units + 15) / 16 * 64) {}
  // The column of the gates one after another, or -1 for a unit that only fills the last block.
  int64_t source(int64_t column) const {
    const int64_t unit = column / 64 * 16 + column % 16;
    return unit < h ? column % 64 / 16 * h + unit : -1;
  }
};

// One of the two weights, [D, K, 4 H] of bytes: value (byte - zero) * scale; scale and zero of each direction or column.
struct Weights {
  const Tensor *bytes, *scale, *zero;
  int64_t directions, k, columns;
  bool flip() const { return bytes->dtype() == DType::u8; }  // bytes are kept less 128
  int64_t parameter(int64_t d, int64_t column) const { return scale->rank() == 1 ? d : d * columns + column; }
  float scale_at(int64_t d, int64_t column) const { return scale->as<float>()[parameter(d, column)]; }
  uint8_t zero_at(int64_t d, int64_t column) const { return zero->as<uint8_t>()[parameter(d, column)]; }
};

Result<Weights> read(const UpgradeContext& c, size_t at, size_t scale_at) {
  Weights w{constant_of(c, at), constant_of(c, scale_at), constant_of(c, scale_at + 1), 0, 0, 0};
  if (!w.bytes || !w.scale || !w.zero) return upgrade_error(c, "weights, scales and zero points must be constants");
  if (w.bytes->rank() != 3 || (w.bytes->dtype() != DType::i8 && w.bytes->dtype() != DType::u8)) return upgrade_error(c, "its weights are not three axes of bytes");
  w.directions = w.bytes->dims()[0], w.k = w.bytes->dims()[1], w.columns = w.bytes->dims()[2];
  std::vector<int64_t> each{w.directions}, all{w.directions, w.columns};
  if (w.scale->dtype() != DType::f32 || w.zero->dtype() != w.bytes->dtype() || w.zero->dims() != w.scale->dims() || (w.scale->dims() != each && w.scale->dims() != all))
    return upgrade_error(c, "scales and zero points are not one for each direction, or for each of its columns");
  return w;
}

// The bytes of a direction as [k, n] in the kernel's order; what only fills is worth zero.
std::vector<uint8_t> ordered(const Weights& w, const Order& o, int64_t d) {
  std::vector<uint8_t> out(static_cast<size_t>(w.k * o.n), w.flip() ? 128 : 0);
  const uint8_t* from = w.bytes->as<uint8_t>() + d * w.k * w.columns;
  for (int64_t j = 0; j < o.n; ++j) {
    const int64_t s = o.source(j);
    if (s < 0) continue;
    for (int64_t i = 0; i < w.k; ++i) out[static_cast<size_t>(i * o.n + j)] = from[i * w.columns + s];
  }
  return out;
}

ValueId constant(UpgradeContext& c, Tensor t) { return c.graph.add_constant(std::move(t), "weights"); }

// x times all of W plus both biases, f32 [S, B, D N].
ValueId input_sums(UpgradeContext& c, const Weights& w, const Order& o) {
  const int64_t n = w.directions * o.n;
  Tensor all(w.bytes->dtype(), {w.k, n}), zero(w.bytes->dtype(), {n}), scale(DType::f32, {n}), bias(DType::f32, {n});
  const Tensor* b = constant_of(c, kBias);
  bool zeros = true;
  for (int64_t d = 0; d < w.directions; ++d) {
    const auto bytes = ordered(w, o, d);
    for (int64_t i = 0; i < w.k; ++i) std::copy_n(bytes.data() + i * o.n, o.n, all.as<uint8_t>() + i * n + d * o.n);
    for (int64_t j = 0; j < o.n; ++j) {
      const int64_t s = o.source(j), at = d * o.n + j;
      zero.as<uint8_t>()[at] = s < 0 ? (w.flip() ? 128 : 0) : w.zero_at(d, s);
      scale.as<float>()[at] = s < 0 ? 0 : w.scale_at(d, s);
      bias.as<float>()[at] = s < 0 || !b ? 0 : b->as<float>()[d * 8 * o.h + s] + b->as<float>()[d * 8 * o.h + 4 * o.h + s];
      zeros = zeros && zero.as<uint8_t>()[at] == 0;
    }
  }
  const NodeId q = c.graph.insert("DynamicQuantizeLinear", {input_of(c, kX)}, {Type{}, Type{}, Type{}}, {}, c.id);
  const auto out = c.graph.node(q).outputs;
  std::vector<ValueId> operands{out[0], constant(c, std::move(all)), out[2]};
  if (!zeros) operands.push_back(constant(c, std::move(zero)));
  ValueId sums = make_node(c, "Cast", {make_node(c, "MatMulInteger", std::move(operands))}, {{"to", static_cast<int64_t>(DType::f32)}});
  sums = make_node(c, "Mul", {sums, make_node(c, "Mul", {out[1], constant(c, std::move(scale))})});
  return make_node(c, "Add", {sums, constant(c, std::move(bias))});
}

// Panels, scales, starts and zero points (none if all are 0) of the recurrent weights.
std::vector<ValueId> recurrent_weights(UpgradeContext& c, const Weights& r, const Order& o) {
  const int64_t panel = kernels::cube::quads(r.k) * 64;
  Tensor packed(DType::i8, {r.directions, o.n / 16, panel}), scale(DType::f32, {r.directions, o.n}), start(DType::i32, {r.directions, o.n}),
      zero(DType::i32, {r.directions, o.n});
  bool zeros = true;
  for (int64_t d = 0; d < r.directions; ++d) {
    auto bytes = ordered(r, o, d);
    const int64_t dims[] = {r.k, o.n}, strides[] = {o.n, 1};
    int32_t* starts = start.as<int32_t>() + d * o.n;
    kernels::cube::pack_integer(View{reinterpret_cast<std::byte*>(bytes.data()), r.bytes->dtype(), 2, dims, strides}, packed.as<int8_t>() + d * o.n / 16 * panel, starts);
    for (int64_t j = 0; j < o.n; ++j) {
      const int64_t s = o.source(j), at = d * o.n + j;
      starts[j] *= -128;
      scale.as<float>()[at] = s < 0 ? 0 : r.scale_at(d, s);
      zero.as<int32_t>()[at] = s < 0 ? 0 : r.flip() ? int32_t{r.zero_at(d, s)} - 128 : int32_t{static_cast<int8_t>(r.zero_at(d, s))};
      zeros = zeros && zero.as<int32_t>()[at] == 0;
    }
  }
  return {constant(c, std::move(packed)), constant(c, std::move(scale)), constant(c, std::move(start)), zeros ? ValueId{} : constant(c, std::move(zero))};
}

Status upgrade(UpgradeContext& c) {
  GE_TRY(Weights w, read(c, kW, kWScale));
  GE_TRY(Weights r, read(c, kR, kRScale));
  const int64_t h = r.k;
  if (h < 1 || w.columns != 4 * h || r.columns != 4 * h || w.directions != r.directions || ir::attr_int(c.node(), "hidden_size", h) != h)
    return upgrade_error(c, "its weights do not fit each other");
  if (ValueId b = input_of(c, kBias)) {
    const Tensor* t = constant_of(c, kBias);
    if (!t || t->dtype() != DType::f32 || t->dims() != std::vector<int64_t>{w.directions, 8 * h}) return upgrade_error(c, "its bias is not a constant that fits");
  }
  const Order o(h);
  ir::Attrs attrs = c.node().attrs;
  attrs["hidden_size"] = h;
  std::vector<ValueId> in{input_sums(c, w, o)};
  for (ValueId v : recurrent_weights(c, r, o)) in.push_back(v);
  for (size_t i : {kLengths, kHidden, kCell, kPeepholes}) in.push_back(input_of(c, i));
  while (!in.back()) in.pop_back();
  become(c, "ge.DynamicLSTM", std::move(in), std::move(attrs));
  return ok();
}

const Register lstm([] {
  OpDef d = rewritten("com.microsoft.DynamicQuantizeLSTM", 12, 12, {DType::f32}, upgrade);
  d.optional = 0b11111000;
  d.max_outputs = 3;
  return d;
}());

}  // namespace
}  // namespace ge::ops
