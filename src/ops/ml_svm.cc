// ai.onnx.ml's SVMRegressor: on import the kernel of x with the support vectors, times their coefficients.
#include "base/text.h"
#include "ops/ml_common.h"

namespace ge::ops {

Result<ValueId> svm_kernel(UpgradeContext& c, ValueId x, const std::vector<double>& vectors, int64_t count) {
  std::string type = ir::attr_string(c.node(), "kernel_type", "LINEAR");
  auto p = ir::attr_floats(c.node(), "kernel_params");
  p.resize(3, 0);
  auto number = [&](double v) { return c.constant_float(static_cast<float>(v)); };
  int64_t features = static_cast<int64_t>(vectors.size()) / count;
  if (type == "RBF") {
    // By differences: squares that cancel would lose what lies close.
    ValueId wide = make_node(c, "Unsqueeze", {x, c.constant_ints({1})});
    ValueId apart = make_node(c, "Sub", {wide, constant_floats(c, vectors, {count, features})});
    ValueId square = make_node(c, "ReduceSumSquare", {apart, c.constant_ints({2})}, {{"keepdims", int64_t{0}}});
    return make_node(c, "Exp", {make_node(c, "Mul", {square, number(-p[0])})});
  }
  ValueId columns = make_node(c, "Transpose", {constant_floats(c, vectors, {count, features})}, {{"perm", std::vector<int64_t>{1, 0}}});
  ValueId dot = make_node(c, "MatMul", {x, columns});
  if (type == "LINEAR") return dot;
  ValueId s = make_node(c, "Add", {make_node(c, "Mul", {dot, number(p[0])}), number(p[1])});
  if (type == "SIGMOID") return make_node(c, "Tanh", {s});
  if (type == "POLY") return make_node(c, "Pow", {s, number(p[2])});
  return upgrade_error(c, format("kernel_type '{}' is not known", type));
}

namespace {

Status upgrade(UpgradeContext& c) {
  auto vectors = ir::attr_floats(c.node(), "support_vectors"), k = ir::attr_floats(c.node(), "coefficients"), rho = ir::attr_floats(c.node(), "rho");
  int64_t count = ir::attr_int(c.node(), "n_supports", 0);
  if (rho.empty() || k.empty()) return upgrade_error(c, "it has no coefficients or no rho");
  ValueId x = cast_f32(c, input_of(c, 0)), s;
  if (count > 0) {
    if (vectors.empty() || static_cast<int64_t>(vectors.size()) % count || static_cast<int64_t>(k.size()) != count)
      return upgrade_error(c, format("{} numbers and {} coefficients for {} vectors", vectors.size(), k.size(), count));
    GE_TRY(s, svm_kernel(c, x, vectors, count));
  } else {
    s = x;
  }
  s = make_node(c, "MatMul", {s, constant_floats(c, k, {static_cast<int64_t>(k.size()), 1})});
  s = make_node(c, "Add", {s, c.constant_float(static_cast<float>(rho[0]))});
  if (ir::attr_int(c.node(), "one_class", 0))
    s = make_node(c, "Where", {make_node(c, "Greater", {s, c.constant_float(0)}), c.constant_float(1), c.constant_float(-1)});
  GE_TRY(s, post_transform(c, s));
  become(c, "Identity", {s});
  return ok();
}

const Register r([] {
  OpDef d = rewritten("ai.onnx.ml.SVMRegressor", 1, 1, types::all - types::complex, upgrade);
  d.attrs = {{"kernel_type", "LINEAR, POLY, RBF or SIGMOID."}, {"kernel_params", "Gamma, coef0, degree."}, {"support_vectors", "[n_supports, features]."},
             {"n_supports", "0: linear."}, {"coefficients", "Of the vectors, or of the features."}, {"rho", "Added."},
             {"one_class", "1 or -1 by the sign."}, {"post_transform", "Of the result."}};
  return d;
}());

}  // namespace
}  // namespace ge::ops
