// com.microsoft.DynamicQuantizeLSTM (ONNX Runtime's ContribOperators.md), written on import as LSTM over its weights
// in f32. Inputs and states are not rounded to bytes: the cell is bound by its weights' traffic only for tiny batches,
// and rounding each state costs more than it saves.
#include "base/text.h"
#include "ops/rewrite.h"

namespace ge::ops {
namespace {

// W [directions, size, 4 * hidden] in bytes with scale and zero point [directions] or [directions, 4 * hidden], as
// LSTM's W [directions, 4 * hidden, size].
Result<ValueId> weights(UpgradeContext& c, size_t w, size_t scale_at) {
  const Tensor *bytes = constant_of(c, w), *scale = constant_of(c, scale_at), *zero = constant_of(c, scale_at + 1);
  if (!bytes || !scale || !zero) return upgrade_error(c, "weights, scales and zero points must be constants");
  if (scale->rank() < 1 || scale->rank() > 2 || zero->dims() != scale->dims() || zero->dtype() != bytes->dtype() || bytes->rank() != 3)
    return upgrade_error(c, "scales and zero points are not one for each direction, or for each of its rows");
  std::vector<int64_t> axes{1};
  if (scale->rank() == 1) axes.push_back(2);
  auto numbers = [&](ValueId v) { return make_node(c, "Cast", {v}, {{"to", static_cast<int64_t>(DType::f32)}}); };
  auto spread = [&](ValueId v) { return make_node(c, "Unsqueeze", {v, c.constant_ints(axes)}); };
  ValueId s = spread(input_of(c, scale_at)), z = spread(numbers(input_of(c, scale_at + 1)));
  ValueId values = make_node(c, "Mul", {make_node(c, "Sub", {numbers(input_of(c, w)), z}), s});
  return make_node(c, "Transpose", {values}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
}

Status upgrade(UpgradeContext& c) {
  GE_TRY(ValueId w, weights(c, 1, 8));
  GE_TRY(ValueId r, weights(c, 2, 10));
  std::vector<ValueId> in{input_of(c, 0), w, r};
  for (size_t i = 3; i < 8; ++i) in.push_back(input_of(c, i));
  while (!in.back()) in.pop_back();
  become(c, "LSTM", std::move(in), ir::Attrs(c.node().attrs));
  return ok();
}

const Register lstm([] {
  OpDef d = rewritten("com.microsoft.DynamicQuantizeLSTM", 12, 12, upgrade);
  d.max_outputs = 3;
  return d;
}());

}  // namespace
}  // namespace ge::ops
