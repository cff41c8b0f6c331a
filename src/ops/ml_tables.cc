// ai.onnx.ml's look-ups and layouts of numbers: LabelEncoder, OneHotEncoder, ArrayFeatureExtractor, FeatureVectorizer,
// Imputer. Strings are looked up by the numbers that stand for them.
#include <numeric>

#include "base/text.h"
#include "ops/rewrite.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

Tensor floats(const std::vector<double>& v) {
  std::vector<float> f(v.begin(), v.end());
  return Tensor::of<float>(DType::f32, {static_cast<int64_t>(f.size())}, std::span<const float>(f));
}

// ---- LabelEncoder

Tensor strings_of(const std::vector<std::string>& v) {
  Tensor t(DType::string, {static_cast<int64_t>(v.size())});
  t.strings() = v;
  return t;
}

// keys_* or values_*.
std::optional<Tensor> table(const Node& n, const std::string& what) {
  if (ir::has_attr(n, what + "_int64s")) return Tensor::vector_i64(attr_ints(n, what + "_int64s"));
  if (ir::has_attr(n, what + "_floats")) return floats(ir::attr_floats(n, what + "_floats"));
  if (ir::has_attr(n, what + "_strings")) return strings_of(ir::attr_strings(n, what + "_strings"));
  if (auto* t = ir::attr_tensor(n, what + "_tensor"); t && t->rank() == 1) return *t;
  return std::nullopt;
}
Tensor default_of(const Node& n, DType t) {
  if (auto* d = ir::attr_tensor(n, "default_tensor"); d && d->dtype() == t && d->count() == 1) return *d;
  if (t == DType::i64) return Tensor::scalar_i64(attr_int(n, "default_int64", -1));
  if (t == DType::f32) return Tensor::scalar_f32(static_cast<float>(ir::attr_float(n, "default_float", -0.0)));
  Tensor d(t, {});
  if (t == DType::string) d.strings()[0] = ir::attr_string(n, "default_string", "_Unused");
  return d;
}

Status infer_label(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  auto keys = table(c.node, "keys"), values = table(c.node, "values");
  if (!keys || !values) return c.fail("it has no keys or no values");
  if ((c.dtype(0) == DType::string) != (keys->dtype() == DType::string)) return c.fail(format("its keys are {}, but its input is {}", name(keys->dtype()), name(c.dtype(0))));
  if (keys->count() != values->count()) return c.fail(format("it has {} keys for {} values; one for each value is needed", keys->count(), values->count()));
  c.out[0] = c.type(0);
  c.out[0].dtype = values->dtype();
  return ok();
}
Status reference_label(LowerContext& c) {
  auto keys = table(c.node, "keys"), values = table(c.node, "values");
  DType t = values->dtype();
  auto number = [](Arg a, DType type) {
    if (type == DType::string) a.as = DType::u32;
    return a;
  };
  DType k = keys->dtype();
  c.call("ref.LabelEncoder", {number(c.in(0), k), number(c.weight(std::move(*keys)), k), number(c.weight(std::move(*values)), t), number(c.weight(default_of(c.node, t)), t)},
         {number(c.out(), t)});
  return ok();
}

// ---- OneHotEncoder: categories that are strings by way of their places.

Status upgrade_hot(UpgradeContext& c) {
  auto cats = ir::attr_strings(c.node(), "cats_strings");
  if (cats.empty()) return ok();
  std::vector<int64_t> places(cats.size());
  std::iota(places.begin(), places.end(), 0);
  ir::Attrs label{{"keys_strings", cats}, {"values_int64s", places}, {"default_int64", int64_t{-1}}};
  ValueId at = make_node(c, "ai.onnx.ml.LabelEncoder", {input_of(c, 0)}, std::move(label));
  become(c, "ai.onnx.ml.OneHotEncoder", {at}, {{"cats_int64s", places}, {"zeros", ir::attr_int(c.node(), "zeros", 1)}});
  return ok();
}

Status infer_hot(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  if (!ir::has_attr(c.node, "cats_int64s")) return c.fail("it has no categories");
  if (c.dtype(0) == DType::string) return c.fail("its categories are numbers, but its input holds strings");
  if (!c.ranked(0)) {
    c.set_unranked(0, DType::f32);
    return ok();
  }
  auto dims = c.dims(0);
  dims.push_back(Dim(static_cast<int64_t>(attr_ints(c.node, "cats_int64s").size())));
  if (dims.size() > static_cast<size_t>(kMaxRank)) return c.fail(format("its output would have {} axes; at most {} are possible", dims.size(), kMaxRank));
  c.set(0, DType::f32, std::move(dims));
  return ok();
}
Status reference_hot(LowerContext& c) {
  c.call("ref.OneHotEncoder", {c.in(0), c.weight(Tensor::vector_i64(attr_ints(c.node, "cats_int64s")))}, {c.out()},
         {attr_int(c.node, "zeros", 1) != 0});
  return ok();
}

// ---- ArrayFeatureExtractor

Status infer_extract(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  GE_RETURN_IF_ERROR(require_index(c, 1));
  if (!c.ranked(0)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  if (c.rank(0) < 1) return c.fail("a scalar has no features");
  auto dims = c.dims(0);
  if (dims.size() == 1) dims.insert(dims.begin(), Dim(1));
  dims.back() = c.ranked(1) ? product(c.dims(1)) : c.fresh("features");
  c.set(0, c.dtype(0), std::move(dims));
  return ok();
}
Status reference_extract(LowerContext& c) {
  Arg from = c.in(0), to = c.out();
  if (c.type(0).dtype == DType::string) from.as = to.as = DType::u32;
  c.call("ref.ArrayFeatureExtractor", {from, c.in(1)}, {to});
  return ok();
}

// ---- FeatureVectorizer

Status infer_vector(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, c.inputs()));
  auto widths = attr_ints(c.node, "inputdimensions");
  if (static_cast<int>(widths.size()) != c.inputs()) return c.fail(format("attribute inputdimensions has {} widths for {} inputs; one for each input is needed", widths.size(), c.inputs()));
  Dim rows, sum;
  for (int i = 0; i < c.inputs(); ++i) {
    if (widths[static_cast<size_t>(i)] < 0) return c.fail("a width is negative");
    sum = sum + Dim(widths[static_cast<size_t>(i)]);
    if (!c.ranked(i)) continue;
    if (c.rank(i) < 1 || c.rank(i) > 2) return c.fail(format("input {} has {} axes, not 1 or 2", i, c.rank(i)));
    GE_TRY(rows, unify(c, c.dims(i)[0], i && c.ranked(0) ? rows : c.dims(i)[0], "the rows"));
  }
  if (!c.ranked(0)) rows = c.fresh("n");
  c.set(0, DType::f32, {rows, sum});
  return ok();
}
Status reference_vector(LowerContext& c) {
  std::vector<Arg> in;
  for (int i = 0; i < c.inputs(); ++i) in.push_back(c.in(i));
  c.call("ref.FeatureVectorizer", std::move(in), {c.out()}, as_dims(attr_ints(c.node, "inputdimensions")));
  return ok();
}

// ---- Imputer: the imputed value where x is the one to be replaced.

Status upgrade_imputer(UpgradeContext& c) {
  ValueId x = input_of(c, 0), missing, fill;
  if (auto ints = attr_ints(c.node(), "imputed_value_int64s"); !ints.empty()) {
    fill = c.constant_ints(ints);
    missing = make_node(c, "Equal", {x, c.graph.add_constant(Tensor::scalar_i64(attr_int(c.node(), "replaced_value_int64", 0)))});
  } else if (auto real = ir::attr_floats(c.node(), "imputed_value_floats"); !real.empty()) {
    auto replaced = static_cast<float>(ir::attr_float(c.node(), "replaced_value_float", 0));
    fill = make_node(c, "CastLike", {c.graph.add_constant(floats(real)), x});
    missing = replaced != replaced ? make_node(c, "IsNaN", {x})
                                   : make_node(c, "Equal", {x, make_node(c, "CastLike", {c.constant_float(replaced), x})});
  } else {
    return upgrade_error(c, "there is no imputed value");
  }
  become(c, "Where", {missing, fill, x});
  return ok();
}

const Register registered[] = {
    Register(OpDef{.name = "ai.onnx.ml.LabelEncoder", .min_inputs = 1, .max_inputs = 1, .since = 2,
                   .attrs = {{"keys_strings", "Keys."}, {"values_strings", "Their values."}, {"default_string", "Without a key."}, {"keys_int64s", "Keys."}, {"keys_floats", "Keys."}, {"keys_tensor", "Keys."}, {"values_int64s", "Their values."},
                             {"values_floats", "Their values."}, {"values_tensor", "Their values."}, {"default_int64", "Without a key."},
                             {"default_float", "Without a key."}, {"default_tensor", "Without a key."}},
                   .doc = "The value of each key.", .types = types::numbers | types::boolean | types::text, .infer = infer_label, .reference = reference_label}),
    Register(OpDef{.name = "ai.onnx.ml.OneHotEncoder", .min_inputs = 1, .max_inputs = 1,
                   .attrs = {{"cats_int64s", "Categories."}, {"cats_strings", "Categories."}, {"zeros", "Unknown ones give zeros (1) or an error (0)."}},
                   .doc = "One of the categories, along a new last axis.", .types = types::numbers | types::boolean | types::text, .infer = infer_hot, .upgrade = upgrade_hot, .reference = reference_hot}),
    Register(OpDef{.name = "ai.onnx.ml.ArrayFeatureExtractor", .min_inputs = 2, .max_inputs = 2,
                   .doc = "Features of the last axis by index.", .types = types::numbers | types::boolean | types::text, .infer = infer_extract, .reference = reference_extract}),
    Register(OpDef{.name = "ai.onnx.ml.FeatureVectorizer", .min_inputs = 1, .max_inputs = -1,
                   .attrs = {{"inputdimensions", "Features of each input."}},
                   .doc = "Features side by side.", .types = types::numbers | types::boolean, .infer = infer_vector, .reference = reference_vector}),
};
const Register imputer([] {
  OpDef d = rewritten("ai.onnx.ml.Imputer", 1, 1, types::numbers | types::boolean | types::text, upgrade_imputer);
  d.attrs = {{"imputed_value_floats", "Put in."}, {"imputed_value_int64s", "Put in."}, {"replaced_value_float", "Replaced."},
             {"replaced_value_int64", "Replaced."}};
  return d;
}());

}  // namespace
}  // namespace ge::ops
