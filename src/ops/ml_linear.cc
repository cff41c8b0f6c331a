// ai.onnx.ml's LinearRegressor and LinearClassifier: on import a product with the coefficients, and what follows it.
#include <algorithm>

#include "base/text.h"
#include "ops/ml_common.h"

namespace ge::ops {
namespace {

// x [N, features] times coefficients [rows, features] transposed, plus the intercepts.
Result<ValueId> scores(UpgradeContext& c, int64_t rows) {
  auto k = ir::attr_floats(c.node(), "coefficients"), b = ir::attr_floats(c.node(), "intercepts");
  auto count = static_cast<int64_t>(k.size());
  if (rows < 1 || count < 1 || count % rows) return upgrade_error(c, format("{} coefficients for {} rows", count, rows));
  if (!b.empty() && static_cast<int64_t>(b.size()) != rows) return upgrade_error(c, format("{} intercepts for {} rows", b.size(), rows));
  int64_t features = count / rows;
  std::vector<double> turned(k.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t f = 0; f < features; ++f) turned[static_cast<size_t>(f * rows + r)] = k[static_cast<size_t>(r * features + f)];
  ValueId s = make_node(c, "MatMul", {cast_f32(c, input_of(c, 0)), constant_floats(c, turned, {features, rows})});
  return b.empty() ? s : make_node(c, "Add", {s, constant_floats(c, b, {rows})});
}

Status upgrade_regressor(UpgradeContext& c) {
  GE_TRY(ValueId s, scores(c, ir::attr_int(c.node(), "targets", 1)));
  GE_TRY(s, post_transform(c, s));
  become(c, "Identity", {s});
  return ok();
}

Status upgrade_classifier(UpgradeContext& c) {
  auto labels = class_labels(c, "classlabels_ints");
  auto rows = static_cast<int64_t>(ir::attr_floats(c.node(), "intercepts").size());
  if (rows == 0) rows = static_cast<int64_t>(labels.size());
  GE_TRY(ValueId s, scores(c, rows));
  if (rows == 1 && labels.size() == 2) s = make_node(c, "Concat", {make_node(c, "Neg", {s}), s}, {{"axis", int64_t{1}}});
  GE_TRY(s, post_transform(c, s));
  if (rows == 1 && labels.size() != 2) return upgrade_error(c, "one row of coefficients needs two labels");
  if (static_cast<int64_t>(labels.size()) != std::max<int64_t>(rows, 2)) return upgrade_error(c, format("{} labels for {} rows", labels.size(), rows));
  return become_labels(c, labels, s);
}

const Register r1([] {
  OpDef d = rewritten("ai.onnx.ml.LinearRegressor", 1, 1, types::all - types::complex, upgrade_regressor);
  d.attrs = {{"coefficients", "[targets, features]."}, {"intercepts", "Of each target."}, {"targets", "How many."}, {"post_transform", "Of the result."}};
  return d;
}());
const Register r2([] {
  OpDef d = rewritten("ai.onnx.ml.LinearClassifier", 1, 1, types::all - types::complex, upgrade_classifier);
  d.max_outputs = 2;
  d.attrs = {{"coefficients", "[classes, features]."}, {"intercepts", "Of each class."}, {"classlabels_ints", "Labels."}, {"classlabels_strings", "Labels."}, {"post_transform", "Of the scores."}, {"multi_class", "Not used."}};
  return d;
}());

}  // namespace
}  // namespace ge::ops
