// ai.onnx.ml's small numeric operators, written as canonical ones on import: Scaler, Normalizer, Binarizer.
#include "base/text.h"
#include "ops/rewrite.h"

namespace ge::ops {
namespace {

// A node of these that is still there after import is our bug; inference says so.

ValueId floats(UpgradeContext& c, const std::vector<double>& v) {
  std::vector<float> f(v.begin(), v.end());
  // One number for all features needs no axis, so that any rank of x broadcasts.
  if (f.size() == 1) return c.constant_float(f[0]);
  return c.graph.add_constant(Tensor::of<float>(DType::f32, {static_cast<int64_t>(f.size())}, std::span<const float>(f)));
}

ValueId as_f32(UpgradeContext& c, ValueId x) {
  return make_node(c, "Cast", {x}, {{"to", static_cast<int64_t>(DType::f32)}});
}

// (x - offset) * scale, as floats.
Status upgrade_scaler(UpgradeContext& c) {
  auto offset = ir::attr_floats(c.node(), "offset"), scale = ir::attr_floats(c.node(), "scale");
  ValueId x = as_f32(c, input_of(c, 0));
  if (!offset.empty()) x = make_node(c, "Sub", {x, floats(c, offset)});
  if (scale.empty()) become(c, "Identity", {x});
  else become(c, "Mul", {x, floats(c, scale)});
  return ok();
}

// x / max(norm over axis 1, 1e-30).
Status upgrade_normalizer(UpgradeContext& c) {
  std::string norm = ir::attr_string(c.node(), "norm", "MAX");
  ValueId x = as_f32(c, input_of(c, 0)), axis = c.constant_ints({1}), size;
  if (norm == "L1") size = make_node(c, "ReduceL1", {x, axis});
  else if (norm == "L2") size = make_node(c, "ReduceL2", {x, axis});
  else if (norm == "MAX") size = make_node(c, "ReduceMax", {make_node(c, "Abs", {x}), axis});
  else return upgrade_error(c, format("norm is '{}', not MAX, L1 or L2", norm));
  become(c, "Div", {x, make_node(c, "Max", {size, c.constant_float(1e-30f)})});
  return ok();
}

// x > threshold ? 1 : 0, in the type of x.
Status upgrade_binarizer(UpgradeContext& c) {
  ValueId x = input_of(c, 0);
  ValueId threshold = c.constant_float(static_cast<float>(ir::attr_float(c.node(), "threshold", 0)));
  ValueId above = make_node(c, "Greater", {as_f32(c, x), threshold});
  become(c, "CastLike", {above, x});
  return ok();
}

OpDef define(const char* name, std::vector<AttrDef> attrs, Status (*upgrade)(UpgradeContext&)) {
  OpDef d = rewritten(name, 1, 1, types::all - types::complex, upgrade);
  d.attrs = std::move(attrs);
  return d;
}

const Register r1(define("ai.onnx.ml.Scaler", {{"offset", "subtracted first"}, {"scale", "factor"}}, upgrade_scaler));
const Register r2(define("ai.onnx.ml.Normalizer", {{"norm", "MAX, L1 or L2"}}, upgrade_normalizer));
const Register r3(define("ai.onnx.ml.Binarizer", {{"threshold", "above it: 1"}}, upgrade_binarizer));

}  // namespace
}  // namespace ge::ops
