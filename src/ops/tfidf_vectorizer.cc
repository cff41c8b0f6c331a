// TfIdfVectorizer: how often the n-grams of a pool stand in each row. Of strings the places in the pool are counted.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "ops/rewrite.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

std::optional<int64_t> mode_of(const Node& n) {
  auto mode = ir::attr_string(n, "mode", "");
  for (int64_t i = 0; auto* word : {"TF", "IDF", "TFIDF"}) {
    if (mode == word) return i;
    ++i;
  }
  return std::nullopt;
}

Status upgrade(UpgradeContext& c) {
  auto strings = ir::attr_strings(c.node(), "pool_strings");
  if (strings.empty()) return ok();
  std::map<std::string, int64_t> places;
  std::vector<std::string> keys;
  std::vector<int64_t> pool, values;
  for (auto& s : strings) {
    auto [it, fresh] = places.emplace(s, static_cast<int64_t>(keys.size()));
    if (fresh) keys.push_back(s), values.push_back(it->second);
    pool.push_back(it->second);
  }
  ir::Attrs label{{"keys_strings", keys}, {"values_int64s", values}, {"default_int64", int64_t{-1}}};
  ValueId at = make_node(c, "ai.onnx.ml.LabelEncoder", {input_of(c, 0)}, std::move(label));
  c.graph.set_input(c.id, 0, at);
  c.node().attrs.erase("pool_strings");
  c.node().attrs["pool_int64s"] = pool;
  return ok();
}

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  if (!mode_of(c.node)) return c.fail(format("attribute mode is '{}'; it must be TF, IDF or TFIDF", attr_string(c.node, "mode", "")));
  if (c.dtype(0) != DType::i32 && c.dtype(0) != DType::i64) return c.fail(format("{} is not a type of input 0", name(c.dtype(0))));
  for (auto* needed : {"ngram_counts", "ngram_indexes", "pool_int64s"})
    if (!ir::has_attr(c.node, needed)) return c.fail(format("attribute {} is missing", needed));
  auto places = attr_ints(c.node, "ngram_indexes");
  int64_t shortest = attr_int(c.node, "min_gram_length", 1), longest = attr_int(c.node, "max_gram_length", 1);
  if (places.empty() || *std::min_element(places.begin(), places.end()) < 0) return c.fail("attribute ngram_indexes must hold places in the output, 0 or more");
  if (shortest < 1 || longest < shortest || attr_int(c.node, "max_skip_count", 0) < 0)
    return c.fail(format("min_gram_length {}, max_gram_length {} and max_skip_count {} are not possible together", shortest, longest, attr_int(c.node, "max_skip_count", 0)));
  Dim size = *std::max_element(places.begin(), places.end()) + 1;
  if (!c.ranked(0)) {
    c.set_unranked(0, DType::f32);
    return ok();
  }
  if (c.rank(0) < 1 || c.rank(0) > 2) return c.fail(format("{} has {} axes, not 1 or 2", text(c.dims(0)), c.rank(0)));
  auto dims = c.dims(0);
  dims.back() = size;
  c.set(0, DType::f32, std::move(dims));
  return ok();
}

Status reference(LowerContext& c) {
  auto& n = c.node;
  std::vector<int64_t> ints{mode_of(n).value_or(0), attr_int(n, "min_gram_length", 1), attr_int(n, "max_gram_length", 1),
                            attr_int(n, "max_skip_count", 0)};
  for (auto* list : {"ngram_counts", "pool_int64s"}) {
    auto values = attr_ints(n, list);
    ints.push_back(static_cast<int64_t>(values.size()));
    ints.insert(ints.end(), values.begin(), values.end());
  }
  auto places = attr_ints(n, "ngram_indexes");
  ints.insert(ints.end(), places.begin(), places.end());
  c.call("ref.TfIdfVectorizer", {c.in(0)}, {c.out()}, as_dims(ints), ir::attr_floats(n, "weights"));
  return ok();
}

const Register registered(OpDef{
    .name = "TfIdfVectorizer", .min_inputs = 1, .max_inputs = 1, .since = 9,
    .attrs = {{"mode", "TF, IDF or TFIDF."}, {"min_gram_length", "Shortest n-gram."}, {"max_gram_length", "Longest n-gram."},
              {"max_skip_count", "Most items between two of an n-gram."}, {"ngram_counts", "Where the n-grams of each length begin in the pool."},
              {"ngram_indexes", "The place of each n-gram in the output."}, {"pool_int64s", "The n-grams."}, {"pool_strings", "The n-grams."}, {"weights", "Of each n-gram."}},
    .doc = "Counts the n-grams of a pool.", .types = types::indices | types::text, .infer = infer, .upgrade = upgrade, .reference = reference});

}  // namespace
}  // namespace ge::ops
