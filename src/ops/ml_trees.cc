// ai.onnx.ml's TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier: on import the tables of ge.TreeEnsemble, and
// what follows it.
#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "ops/ml_common.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

// The tables as ref.TreeEnsemble has them.
struct Trees {
  std::vector<int64_t> nodes, leaves, targets, roots;
  std::vector<double> splits, weights, members, base;
  int64_t aggregate = 1;
};

ValueId constant(UpgradeContext& c, const std::vector<int64_t>& v, int64_t width) {
  auto n = static_cast<int64_t>(v.size());
  return c.graph.add_constant(Tensor::of<int64_t>(DType::i64, width > 1 ? std::vector<int64_t>{n / width, width} : std::vector<int64_t>{n},
                                                  std::span<const int64_t>(v)));
}
ValueId constant(UpgradeContext& c, const std::vector<double>& v) {
  return c.graph.add_constant(Tensor::of<double>(DType::f64, {static_cast<int64_t>(v.size())}, std::span<const double>(v)));
}

std::vector<ValueId> inputs(UpgradeContext& c, const Trees& t) {
  return {input_of(c, 0), constant(c, t.nodes, 7), constant(c, t.splits), constant(c, t.leaves, 2), constant(c, t.targets, 1),
          constant(c, t.weights), constant(c, t.roots, 1), constant(c, t.members)};
}
ir::Attrs attrs_of(const Trees& t, int64_t targets, DType type) {
  ir::Attrs a{{"targets", targets}, {"aggregate", t.aggregate}, {"type", static_cast<int64_t>(type)}};
  if (!t.base.empty()) a["base_values"] = t.base;
  return a;
}

// name, or name_as_tensor.
std::vector<double> numbers(const Node& n, const std::string& name) {
  if (auto* t = ir::attr_tensor(n, name + "_as_tensor")) {
    std::vector<double> out;
    for (int64_t i = 0; i < t->count(); ++i) out.push_back(t->at(i));
    return out;
  }
  return ir::attr_floats(n, name);
}
std::vector<double> tensor_numbers(const Node& n, const char* name) {
  std::vector<double> out;
  if (auto* t = ir::attr_tensor(n, name))
    for (int64_t i = 0; i < t->count(); ++i) out.push_back(t->at(i));
  return out;
}

// The form of opsets 1 to 4: nodes by (tree, id), leaves among them; `what` is "target" or "class".
Result<Trees> read_listed(const UpgradeContext& c, const std::string& what) {
  const Node& n = c.node();
  auto tree = ir::attr_ints(n, "nodes_treeids"), id = ir::attr_ints(n, "nodes_nodeids"), feature = ir::attr_ints(n, "nodes_featureids");
  auto yes = ir::attr_ints(n, "nodes_truenodeids"), no = ir::attr_ints(n, "nodes_falsenodeids"), missing = ir::attr_ints(n, "nodes_missing_value_tracks_true");
  auto mode = ir::attr_strings(n, "nodes_modes");
  auto w_tree = ir::attr_ints(n, what + "_treeids"), w_node = ir::attr_ints(n, what + "_nodeids"), w_target = ir::attr_ints(n, what + "_ids");
  auto weight = numbers(n, what + "_weights");
  Trees t;
  t.splits = numbers(n, "nodes_values");
  t.base = numbers(n, "base_values");
  size_t count = tree.size();
  missing.resize(count, 0);
  for (size_t have : {id.size(), feature.size(), yes.size(), no.size(), mode.size(), t.splits.size()})
    if (have != count) return upgrade_error(c, "its lists of nodes differ in length");
  if (w_node.size() != w_tree.size() || w_target.size() != w_tree.size() || weight.size() != w_tree.size()) return upgrade_error(c, "its lists of weights differ in length");
  using Key = std::pair<int64_t, int64_t>;
  std::map<Key, size_t> at;
  std::map<Key, std::vector<size_t>> weights;
  std::map<int64_t, size_t> root;
  for (size_t i = 0; i < count; ++i) at.emplace(Key{tree[i], id[i]}, i), root.emplace(tree[i], i);
  for (size_t i = 0; i < w_tree.size(); ++i) weights[{w_tree[i], w_node[i]}].push_back(i);
  // How the tables name node i: itself, or its leaf.
  std::vector<int64_t> names(count);
  for (size_t i = 0; i < count; ++i) {
    names[i] = static_cast<int64_t>(i);
    if (mode[i] != "LEAF") continue;
    auto& own = weights[{tree[i], id[i]}];
    t.leaves.insert(t.leaves.end(), {static_cast<int64_t>(t.weights.size()), static_cast<int64_t>(own.size())});
    for (size_t k : own) t.weights.push_back(weight[k]), t.targets.push_back(w_target[k]);
    names[i] = -static_cast<int64_t>(t.leaves.size() / 2);
  }
  static const char* const kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"};
  for (size_t i = 0; i < count; ++i) {
    auto m = std::find(std::begin(kModes), std::end(kModes), mode[i]);
    auto y = at.find({tree[i], yes[i]}), f = at.find({tree[i], no[i]});
    if (mode[i] == "LEAF") {
      t.nodes.insert(t.nodes.end(), {0, 0, names[i], names[i], 0, 0, 0});
      continue;
    }
    if (m == std::end(kModes)) return upgrade_error(c, format("mode '{}' is not known", mode[i]));
    if (y == at.end() || f == at.end()) return upgrade_error(c, format("node {} of tree {} names a node that is not there", id[i], tree[i]));
    t.nodes.insert(t.nodes.end(), {feature[i], m - std::begin(kModes), names[y->second], names[f->second], missing[i], 0, 0});
  }
  for (auto& [k, i] : root) t.roots.push_back(names[i]);
  std::string aggregate = ir::attr_string(n, "aggregate_function", "SUM");
  t.aggregate = aggregate == "AVERAGE" ? 0 : aggregate == "MIN" ? 2 : aggregate == "MAX" ? 3 : 1;
  return t;
}

// The form of opset 5: nodes and leaves apart, named by place.
Result<Trees> read_placed(const UpgradeContext& c) {
  const Node& n = c.node();
  auto feature = ir::attr_ints(n, "nodes_featureids"), yes = ir::attr_ints(n, "nodes_truenodeids"), no = ir::attr_ints(n, "nodes_falsenodeids");
  auto yes_leaf = ir::attr_ints(n, "nodes_trueleafs"), no_leaf = ir::attr_ints(n, "nodes_falseleafs"), missing = ir::attr_ints(n, "nodes_missing_value_tracks_true");
  auto mode = tensor_numbers(n, "nodes_modes"), sets = tensor_numbers(n, "membership_values");
  Trees t;
  t.splits = tensor_numbers(n, "nodes_splits"), t.weights = tensor_numbers(n, "leaf_weights"), t.targets = ir::attr_ints(n, "leaf_targetids");
  t.aggregate = ir::attr_int(n, "aggregate_function", 1);
  size_t count = feature.size(), set = 0;
  missing.resize(count, 0);
  for (size_t have : {yes.size(), no.size(), yes_leaf.size(), no_leaf.size(), mode.size(), t.splits.size()})
    if (have != count) return upgrade_error(c, "its lists of nodes differ in length");
  if (t.weights.size() != t.targets.size() || t.aggregate < 0 || t.aggregate > 3) return upgrade_error(c, "its leaves or its aggregate are wrong");
  for (size_t i = 0; i < t.weights.size(); ++i) t.leaves.insert(t.leaves.end(), {static_cast<int64_t>(i), 1});
  auto inside = [&](int64_t i, bool leaf) { return i >= 0 && i < static_cast<int64_t>(leaf ? t.weights.size() : count); };
  for (size_t i = 0; i < count; ++i) {
    if (!inside(yes[i], yes_leaf[i] != 0) || !inside(no[i], no_leaf[i] != 0)) return upgrade_error(c, format("node {} names a node that is not there", i));
    auto first = static_cast<int64_t>(t.members.size());
    if (!(mode[i] >= 0 && mode[i] <= 6)) return upgrade_error(c, format("mode {} is not known", mode[i]));
    if (mode[i] == 6) {
      // The sets follow one another, each ended by a NaN.
      for (; set < sets.size() && sets[set] == sets[set]; ++set) t.members.push_back(sets[set]);
      ++set;
    }
    t.nodes.insert(t.nodes.end(), {feature[i], static_cast<int64_t>(mode[i]), yes_leaf[i] ? -1 - yes[i] : yes[i],
                                   no_leaf[i] ? -1 - no[i] : no[i], missing[i], first, static_cast<int64_t>(t.members.size()) - first});
  }
  t.roots = ir::attr_ints(n, "tree_roots");
  for (int64_t r : t.roots)
    if (!inside(r, false)) return upgrade_error(c, format("root {} is not there", r));
  return t;
}

Status upgrade_ensemble(UpgradeContext& c) {
  GE_TRY(Trees t, read_placed(c));
  constexpr const char* kPost[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  int64_t post = ir::attr_int(c.node(), "post_transform", 0);
  if (post < 0 || post > 4) return upgrade_error(c, format("post_transform {} is not known", post));
  c.node().attrs["post_transform"] = std::string(kPost[post]);
  // The result has the type of x.
  ValueId s = make_node(c, "ge.TreeEnsemble", inputs(c, t), attrs_of(t, ir::attr_int(c.node(), "n_targets", 1), DType::none));
  GE_TRY(s, post_transform(c, s));
  become(c, "Identity", {s});
  return ok();
}

Status upgrade_regressor(UpgradeContext& c) {
  GE_TRY(Trees t, read_listed(c, "target"));
  ValueId s = make_node(c, "ge.TreeEnsemble", inputs(c, t), attrs_of(t, ir::attr_int(c.node(), "n_targets", 1), DType::f32));
  GE_TRY(s, post_transform(c, s));
  become(c, "Identity", {s});
  return ok();
}

// All weights for one class of two: the other one's score follows from it.
Status upgrade_classifier(UpgradeContext& c) {
  GE_TRY(Trees t, read_listed(c, "class"));
  auto labels = class_labels(c, "classlabels_int64s");
  if (labels.empty()) return upgrade_error(c, "it has no labels");
  bool binary = labels.size() == 2 && std::set<int64_t>(t.targets.begin(), t.targets.end()).size() == 1;
  auto classes = static_cast<int64_t>(binary ? 1 : labels.size());
  if (binary) {
    auto k = static_cast<size_t>(t.targets[0]);
    if (t.base.size() > 1) t.base = {k < t.base.size() ? t.base[k] : 0.0};
    std::fill(t.targets.begin(), t.targets.end(), 0);
  }
  ValueId s = make_node(c, "ge.TreeEnsemble", inputs(c, t), attrs_of(t, classes, DType::f32));
  if (binary) {
    std::string post = ir::attr_string(c.node(), "post_transform", "NONE");
    bool rest = post == "NONE" || post == "PROBIT";
    ValueId other = rest ? make_node(c, "Sub", {c.constant_float(1), s}) : make_node(c, "Neg", {s});
    s = make_node(c, "Concat", {other, s}, {{"axis", int64_t{1}}});
  }
  GE_TRY(s, post_transform(c, s));
  return become_labels(c, labels, s);
}

// ---- ge.TreeEnsemble

Status infer(InferContext& c) {
  int64_t t = attr_int(c.node, "type", 0);
  DType type = t ? static_cast<DType>(t) : c.dtype(0);
  if (!is_float(type)) return c.fail(format("{} is not a float type", name(type)));
  if (c.ranked(0) && c.rank(0) != 2) return c.fail(format("{} is not a matrix of features", text(c.dims(0))));
  int64_t targets = attr_int(c.node, "targets", 1);
  auto base = ir::attr_floats(c.node, "base_values");
  if (targets < 1 || (!base.empty() && static_cast<int64_t>(base.size()) != targets)) return c.fail(format("it has {} base values for {} targets; none or one for each target is possible", base.size(), targets));
  c.set(0, type, {c.ranked(0) ? c.dims(0)[0] : c.fresh("n"), Dim(targets)});
  return ok();
}

Status reference(LowerContext& c) {
  std::vector<Arg> in;
  for (int i = 0; i < 8; ++i) in.push_back(c.in(i));
  c.call("ref.TreeEnsemble", std::move(in), {c.out()}, {attr_int(c.node, "aggregate", 1)}, ir::attr_floats(c.node, "base_values"));
  return ok();
}

const Register registered[] = {
    Register(rewritten("ai.onnx.ml.TreeEnsemble", 1, 1, types::floats, upgrade_ensemble)),
    Register(rewritten("ai.onnx.ml.TreeEnsembleRegressor", 1, 1, types::numbers | types::boolean, upgrade_regressor)),
    Register([] {
      OpDef d = rewritten("ai.onnx.ml.TreeEnsembleClassifier", 1, 1, types::numbers | types::boolean, upgrade_classifier);
      d.max_outputs = 2;
      return d;
    }()),
    Register(OpDef{.name = "ge.TreeEnsemble", .min_inputs = 8, .max_inputs = 8,
                   .attrs = {{"targets", "How many."}, {"aggregate", "0 average, 1 sum, 2 least, 3 largest."}, {"type", "Of the output."},
                             {"base_values", "Added to each target."}},
                   .doc = "Decision trees as tables.", .infer = infer, .reference = reference}),
};

}  // namespace
}  // namespace ge::ops
