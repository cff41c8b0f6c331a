// ai.onnx.ml's SVMClassifier: on import the scores of each pair of classes (or of each class, without vectors) as
// products, votes as products of their signs, and ge.PairProbabilities.
#include "base/text.h"
#include "ops/ml_common.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

struct Machine {
  std::vector<double> vectors, coefficients, rho;
  std::vector<int64_t> per_class, labels;
  int64_t classes = 1, count = 0;      // count: of the vectors
};

Result<Machine> read(const UpgradeContext& c) {
  Machine m{ir::attr_floats(c.node(), "support_vectors"), ir::attr_floats(c.node(), "coefficients"), ir::attr_floats(c.node(), "rho"),
            ir::attr_ints(c.node(), "vectors_per_class"), class_labels(c, "classlabels_ints")};
  m.classes = static_cast<int64_t>(m.labels.size());
  if (m.labels.empty()) return upgrade_error(c, "it has no labels");
  if (m.coefficients.empty() || m.rho.empty()) return upgrade_error(c, "it has no coefficients or no rho");
  const auto most = static_cast<int64_t>(m.coefficients.size());
  for (int64_t n : m.per_class) {
    if (n < 0 || n > most - m.count) return upgrade_error(c, "vectors_per_class does not fit its coefficients");
    m.count += n;
  }
  if (m.count == 0) {
    if (most % m.classes) return upgrade_error(c, format("{} coefficients for {} classes", most, m.classes));
    return m;
  }
  if (m.classes < 2 || static_cast<int64_t>(m.per_class.size()) != m.classes || most != m.count * (m.classes - 1) ||
      static_cast<int64_t>(m.vectors.size()) % m.count || m.vectors.empty())
    return upgrade_error(c, format("{} numbers and {} coefficients for {} vectors of {} classes", m.vectors.size(), most, m.count, m.classes));
  if (static_cast<int64_t>(m.rho.size()) != m.classes * (m.classes - 1) / 2) return upgrade_error(c, format("{} numbers in rho for {} classes", m.rho.size(), m.classes));
  return m;
}

struct Pairs {
  ValueId scores, votes;               // [N, pairs], [N, classes]
};

// Pair (i, j) is won by i where its score is over 0. Of the vectors of i it takes row j - 1 of the coefficients, of
// those of j row i.
Result<Pairs> pairs(UpgradeContext& c, const Machine& m, ValueId x) {
  GE_TRY(ValueId k, svm_kernel(c, x, m.vectors, m.count));
  const auto count = static_cast<int64_t>(m.rho.size());
  std::vector<int64_t> start{0};
  for (int64_t n : m.per_class) start.push_back(start.back() + n);
  std::vector<double> weights(static_cast<size_t>(m.count * count)), first(static_cast<size_t>(count * m.classes)), second = first;
  int64_t pair = 0;
  for (int64_t i = 0; i < m.classes; ++i)
    for (int64_t j = i + 1; j < m.classes; ++j, ++pair) {
      auto take = [&](int64_t cls, int64_t row) {
        for (int64_t v = start[static_cast<size_t>(cls)]; v < start[static_cast<size_t>(cls) + 1]; ++v)
          weights[static_cast<size_t>(v * count + pair)] = m.coefficients[static_cast<size_t>(row * m.count + v)];
      };
      take(i, j - 1), take(j, i);
      first[static_cast<size_t>(pair * m.classes + i)] = second[static_cast<size_t>(pair * m.classes + j)] = 1;
    }
  ValueId s = make_node(c, "Add", {make_node(c, "MatMul", {k, constant_floats(c, weights, {m.count, count})}), constant_floats(c, m.rho, {count})});
  ValueId won = make_node(c, "Greater", {s, c.constant_float(0)});
  auto counted = [&](ValueId v, const std::vector<double>& to) { return make_node(c, "MatMul", {cast_f32(c, v), constant_floats(c, to, {count, m.classes})}); };
  return Pairs{s, make_node(c, "Add", {counted(won, first), counted(make_node(c, "Not", {won}), second)})};
}

// [-s, s], each transformed; PROBIT is of s alone.
Result<ValueId> both_sides(UpgradeContext& c, ValueId s) {
  if (ir::attr_string(c.node(), "post_transform", "NONE") != "PROBIT") s = make_node(c, "Concat", {make_node(c, "Neg", {s}), s}, {{"axis", int64_t{1}}});
  return post_transform(c, s);
}

Status upgrade(UpgradeContext& c) {
  GE_TRY(Machine m, read(c));
  auto a = ir::attr_floats(c.node(), "prob_a"), b = ir::attr_floats(c.node(), "prob_b");
  ValueId x = cast_f32(c, input_of(c, 0)), scores, ranked;  // ranked: the largest of a row decides
  if (m.count > 0) {
    GE_TRY(Pairs p, pairs(c, m, x));
    scores = p.scores, ranked = p.votes;
    if (!a.empty()) {
      if (a.size() != m.rho.size() || b.size() != a.size()) return upgrade_error(c, "prob_a, prob_b and rho differ in length");
      scores = make_node(c, "ge.PairProbabilities", {scores}, {{"prob_a", a}, {"prob_b", b}, {"classes", m.classes}});
    }
  } else {
    auto features = static_cast<int64_t>(m.coefficients.size()) / m.classes;
    ValueId columns = make_node(c, "Transpose", {constant_floats(c, m.coefficients, {m.classes, features})}, {{"perm", std::vector<int64_t>{1, 0}}});
    scores = ranked = make_node(c, "Add", {make_node(c, "MatMul", {x, columns}), c.constant_float(static_cast<float>(m.rho[0]))});
    a.clear();
  }
  if (m.count > 0 && m.classes == 2 && a.empty()) {
    GE_TRY(scores, both_sides(c, scores));
  } else {
    GE_TRY(scores, post_transform(c, scores));
  }
  if (c.node().outputs.size() > 1 && c.node().outputs[1]) hand_over(c, 1, make_node(c, "Identity", {scores}));
  c.node().outputs.resize(1);
  return become_labels(c, m.labels, ranked);
}

// ---- ge.PairProbabilities: in [pair scores [N, pairs]], out [N, classes]

Status infer(InferContext& c) {
  const int64_t classes = attr_int(c.node, "classes", 0);
  const auto count = static_cast<int64_t>(ir::attr_floats(c.node, "prob_a").size());
  if (classes < 2 || classes > 4096 || count != classes * (classes - 1) / 2 || static_cast<int64_t>(ir::attr_floats(c.node, "prob_b").size()) != count)
    return c.fail("its coefficients are not one for each pair of classes");
  if (c.dtype(0) != DType::f32 || (c.ranked(0) && (c.rank(0) != 2 || (c.dims(0)[1].known() && c.dims(0)[1].value() != count))))
    return c.fail("its scores are not one for each pair of classes");
  c.set(0, DType::f32, {c.ranked(0) ? c.dims(0)[0] : c.fresh("n"), Dim(classes)});
  return ok();
}

Status reference(LowerContext& c) {
  auto floats = ir::attr_floats(c.node, "prob_a"), b = ir::attr_floats(c.node, "prob_b");
  floats.insert(floats.end(), b.begin(), b.end());
  c.call("ref.PairProbabilities", {c.in(0)}, {c.out()}, {}, std::move(floats));
  return ok();
}

const Register registered[] = {
    Register([] {
      OpDef d = rewritten("ai.onnx.ml.SVMClassifier", 1, 1, types::all - types::complex, upgrade);
      d.max_outputs = 2;
      d.attrs = {{"kernel_type", "LINEAR, POLY, RBF or SIGMOID."}, {"kernel_params", "Gamma, coef0, degree."}, {"support_vectors", "[vectors, features]; none: linear."},
                 {"vectors_per_class", "How many of them are each class's."}, {"coefficients", "[classes - 1, vectors], or [classes, features]."},
                 {"rho", "Added, for each pair of classes."}, {"prob_a", "Slope of each pair's probability."}, {"prob_b", "Its offset."},
                 {"classlabels_ints", "Labels."}, {"post_transform", "Of the scores."}};
      return d;
    }()),
    Register(OpDef{.name = "ge.PairProbabilities", .min_inputs = 1, .max_inputs = 1,
                   .attrs = {{"prob_a", "Slope of each pair."}, {"prob_b", "Offset of each pair."}, {"classes", "How many."}},
                   .doc = "Probabilities of classes from scores of pairs.", .infer = infer, .reference = reference}),
};

}  // namespace
}  // namespace ge::ops
