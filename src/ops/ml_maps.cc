// ai.onnx.ml's operators on maps: ZipMap, CastMap, DictVectorizer; CategoryMapper, which is a look-up in a table.
#include "base/text.h"
#include "ops/rewrite.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

// attr_strings or attr_int64s as a tensor; none when there is neither.
std::optional<Tensor> list_of(const Node& n, const std::string& strings, const std::string& ints) {
  if (ir::has_attr(n, strings)) {
    auto v = ir::attr_strings(n, strings);
    Tensor t(DType::string, {static_cast<int64_t>(v.size())});
    t.strings() = std::move(v);
    return t;
  }
  if (ir::has_attr(n, ints)) return Tensor::vector_i64(ir::attr_ints(n, ints));
  return std::nullopt;
}

// ---- ZipMap

Status infer_zip(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  auto labels = list_of(c.node, "classlabels_strings", "classlabels_int64s");
  if (!labels) return c.fail("it has no class labels");
  if (c.ranked(0) && c.rank(0) != 1 && c.rank(0) != 2) return c.fail(format("its input has {} axes, not 1 or 2", c.rank(0)));
  if (c.ranked(0) && c.dims(0).back().known() && !c.dims(0).back().is(labels->count()))
    return c.fail(format("{} values for {} class labels", c.dims(0).back().value(), labels->count()));
  c.out[0] = Type{DType::f32, false, {}, labels->dtype() == DType::string ? ir::TypeKind::maps_from_text : ir::TypeKind::maps_from_i64};
  return ok();
}
Status lower_zip(LowerContext& c) {
  c.call("map.zip", {c.in(0), c.weight(*list_of(c.node, "classlabels_strings", "classlabels_int64s"))}, {c.out()});
  return ok();
}

// ---- CastMap: of a map from integers, in the order of the keys.

DType target(const Node& n) {
  auto to = ir::attr_string(n, "cast_to", "TO_FLOAT");
  return to == "TO_FLOAT" ? DType::f32 : to == "TO_INT64" ? DType::i64 : to == "TO_STRING" ? DType::string : DType::none;
}

Status require_map(const InferContext& c) {
  if (!c.has(0) || !ir::is_map(c.type(0))) return c.fail("its input is no map");
  return ok();
}

Status infer_cast(InferContext& c) {
  GE_RETURN_IF_ERROR(require_map(c));
  if (ir::key_of(c.type(0)) != DType::i64 || (c.dtype(0) != DType::f32 && c.dtype(0) != DType::string))
    return c.fail(format("it takes a map from i64 to f32 or strings, not {}", text(c.type(0))));
  DType to = target(c.node);
  if (to == DType::none) return c.fail(format("cast_to '{}' is not known", ir::attr_string(c.node, "cast_to", "")));
  auto form = ir::attr_string(c.node, "map_form", "DENSE");
  if (form != "DENSE" && form != "SPARSE") return c.fail(format("map_form '{}' is not known", form));
  int64_t most = ir::attr_int(c.node, "max_map", 1);
  if (form == "SPARSE" && (most < 1 || most > (int64_t{1} << 30))) return c.fail(format("attribute max_map is {}; it must be 1 or more", most));
  c.set(0, to, {Dim(1), form == "SPARSE" ? Dim(most) : c.fresh("entries")});
  return ok();
}
Status lower_cast(LowerContext& c) {
  bool sparse = ir::attr_string(c.node, "map_form", "DENSE") == "SPARSE";
  c.call("map.cast", {c.in(0)}, {c.out()}, {sparse ? ir::attr_int(c.node, "max_map", 1) : -1});
  return ok();
}

// ---- DictVectorizer: a row with the value of each word of the vocabulary, 0 or "" for what the map has not.

Status infer_vectorizer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_map(c));
  auto words = list_of(c.node, "string_vocabulary", "int64_vocabulary");
  if (!words) return c.fail("it has no vocabulary");
  if (words->dtype() != ir::key_of(c.type(0))) return c.fail(format("a vocabulary of {} for {}", name(words->dtype()), text(c.type(0))));
  c.set(0, c.dtype(0), {Dim(1), Dim(words->count())});
  return ok();
}
Status lower_vectorizer(LowerContext& c) {
  c.call("map.vectorize", {c.in(0), c.weight(*list_of(c.node, "string_vocabulary", "int64_vocabulary"))}, {c.out()});
  return ok();
}

OpDef on_maps(const char* op, const char* doc, Types types, std::vector<AttrDef> attrs, Status (*infer)(InferContext&), Status (*lower)(LowerContext&)) {
  OpDef d = executor_op(op, 1, 1, 1, doc, infer, lower);
  d.newest = 5;
  d.types = types;
  d.attrs = std::move(attrs);
  d.lower = lower;
  return d;
}

const Register zip(on_maps("ai.onnx.ml.ZipMap", "A map from class labels for each row.", {DType::f32},
                           {{"classlabels_strings", "The keys."}, {"classlabels_int64s", "The keys."}}, infer_zip, lower_zip));
const Register cast(on_maps("ai.onnx.ml.CastMap", "The values of a map in the order of its keys.", types::all,
                            {{"cast_to", "TO_FLOAT, TO_INT64 or TO_STRING."}, {"map_form", "SPARSE: a key is a place."}, {"max_map", "Places of a sparse one."}},
                            infer_cast, lower_cast));
const Register vectorizer(on_maps("ai.onnx.ml.DictVectorizer", "The values that a map has for the words of a vocabulary.", types::all,
                                  {{"string_vocabulary", "The words."}, {"int64_vocabulary", "The words."}}, infer_vectorizer, lower_vectorizer));

// ---- CategoryMapper: strings to integers or back.

Status infer_category(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  if (c.dtype(0) != DType::string && c.dtype(0) != DType::i64) return c.fail(format("it takes strings or i64, not {}", name(c.dtype(0))));
  if (ir::attr_strings(c.node, "cats_strings").size() != ir::attr_ints(c.node, "cats_int64s").size()) return c.fail("its two lists differ in length");
  c.out[0] = c.type(0);
  c.out[0].dtype = c.dtype(0) == DType::string ? DType::i64 : DType::string;
  return ok();
}

Result<bool> expand_category(UpgradeContext& c) {
  const Node& n = c.node();
  auto strings = ir::attr_strings(n, "cats_strings");
  auto ints = ir::attr_ints(n, "cats_int64s");
  bool from_text = c.graph.value(n.inputs[0]).type.dtype == DType::string;
  ir::Attrs attrs;
  if (from_text) attrs = {{"keys_strings", strings}, {"values_int64s", ints}, {"default_int64", ir::attr_int(n, "default_int64", -1)}};
  else attrs = {{"keys_int64s", ints}, {"values_strings", strings}, {"default_string", ir::attr_string(n, "default_string", "_Unused")}};
  become(c, "ai.onnx.ml.LabelEncoder", {n.inputs[0]}, std::move(attrs));
  return true;
}

const Register category(OpDef{.name = "ai.onnx.ml.CategoryMapper",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .newest = 5,
                              .attrs = {{"cats_strings", "One side of the table."}, {"cats_int64s", "The other."},
                                        {"default_int64", "For a string that is not there."}, {"default_string", "For a number that is not there."}},
                              .doc = "Strings to integers or back.",
                              .types = {DType::i64, DType::string},
                              .infer = infer_category,
                              .expand = expand_category});

}  // namespace
}  // namespace ge::ops
