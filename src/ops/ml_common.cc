#include "ops/ml_common.h"

#include <numbers>
#include <numeric>

#include "base/text.h"

namespace ge::ops {

ValueId constant_floats(UpgradeContext& c, const std::vector<double>& v, std::vector<int64_t> dims) {
  std::vector<float> f(v.begin(), v.end());
  return c.graph.add_constant(Tensor::of<float>(DType::f32, std::move(dims), std::span<const float>(f)));
}

ValueId cast_f32(UpgradeContext& c, ValueId x) {
  return make_node(c, "Cast", {x}, {{"to", static_cast<int64_t>(DType::f32)}});
}

namespace {

// A softmax whose zeros stay (nearly) zeros: each is multiplied by e^-max instead of e^(0 - max).
ValueId softmax_zero(UpgradeContext& c, ValueId x) {
  auto op = [&](const char* name, std::vector<ValueId> in) { return make_node(c, name, std::move(in)); };
  ValueId axis = c.constant_ints({1}), top = op("ReduceMax", {x, axis});
  ValueId some = op("Greater", {op("Abs", {x}), c.constant_float(1e-7f)});
  ValueId e = op("Where", {some, op("Exp", {op("Sub", {x, top})}), op("Mul", {x, op("Exp", {op("Neg", {top})})})});
  ValueId sum = op("ReduceSum", {e, axis});
  return op("Where", {op("Equal", {sum, c.constant_float(0)}), c.constant_float(0.5f), op("Div", {e, sum})});
}

// sqrt(2) erfinv(2 x - 1), by the approximation that ONNX's reference has.
ValueId probit(UpgradeContext& c, ValueId p) {
  auto op = [&](const char* name, std::vector<ValueId> in) { return make_node(c, name, std::move(in)); };
  auto number = [&](double v) { return c.constant_float(static_cast<float>(v)); };
  ValueId x = op("Sub", {op("Mul", {p, number(2)}), number(1)});
  ValueId t = op("Mul", {op("Sub", {number(1), x}), op("Add", {number(1), x})});
  ValueId log = op("Log", {t});
  ValueId a = op("Add", {op("Mul", {log, number(0.5)}), number(2 / (std::numbers::pi * 0.147))});
  ValueId root = op("Sqrt", {op("Sub", {op("Mul", {a, a}), op("Div", {log, number(0.147)})})});
  ValueId size = op("Sqrt", {op("Sub", {root, a})});
  ValueId y = op("Mul", {op("Sign", {x}), op("Mul", {size, number(1.41421356)})});
  return op("Where", {op("Equal", {t, number(0)}), number(0), y});
}

}  // namespace

Result<ValueId> post_transform(UpgradeContext& c, ValueId scores) {
  std::string name = ir::attr_string(c.node(), "post_transform", "NONE");
  if (name == "NONE") return scores;
  if (name == "LOGISTIC") return make_node(c, "Sigmoid", {scores});
  if (name == "SOFTMAX") return make_node(c, "Softmax", {scores}, {{"axis", int64_t{1}}});
  if (name == "SOFTMAX_ZERO") return softmax_zero(c, scores);
  if (name == "PROBIT") return probit(c, scores);
  return upgrade_error(c, format("post_transform '{}' is not known", name));
}

std::vector<int64_t> class_labels(const UpgradeContext& c, std::string_view numbers) {
  auto strings = ir::attr_strings(c.node(), "classlabels_strings");
  if (strings.empty()) return ir::attr_ints(c.node(), numbers);
  std::vector<int64_t> places(strings.size());
  std::iota(places.begin(), places.end(), 0);
  return places;
}

Status become_labels(UpgradeContext& c, const std::vector<int64_t>& labels, ValueId scores) {
  if (c.node().outputs.size() > 1 && c.node().outputs[1]) {
    // Its producer may be shared or have no output of its own to give away.
    scores = hand_over(c, 1, make_node(c, "Identity", {scores}));
  }
  c.node().outputs.resize(1);
  ValueId best = make_node(c, "ArgMax", {scores}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  ValueId names = c.constant_ints(labels);
  if (auto strings = ir::attr_strings(c.node(), "classlabels_strings"); !strings.empty()) {
    Tensor t(DType::string, {static_cast<int64_t>(strings.size())});
    t.strings() = std::move(strings);
    names = c.graph.add_constant(std::move(t));
  }
  become(c, "Gather", {names, best}, {{"axis", int64_t{0}}});
  return ok();
}

}  // namespace ge::ops
