// StringConcat, StringSplit, StringNormalizer, RegexFullMatch: operators on text. They run as executor tasks, since
// tensors of strings hold numbers that the run knows the texts of.
#include "base/text.h"
#include "kernels/reference/regex.h"
#include "ops/elementwise.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

Status require_strings(InferContext& c, int n) {
  GE_RETURN_IF_ERROR(require_inputs(c, n));
  for (int i = 0; i < n; ++i)
    if (c.dtype(i) != DType::string) return c.fail(format("{} is not a type of input {}", name(c.dtype(i)), i));
  return ok();
}

void like_input(InferContext& c, int output, DType t) {
  if (c.ranked(0)) c.set(output, t, c.dims(0));
  else c.set_unranked(output, t);
}

std::vector<std::byte> bytes_of(std::string_view s) {
  auto* p = reinterpret_cast<const std::byte*>(s.data());
  return {p, p + s.size()};
}

// ---- StringConcat

Status infer_concat(InferContext& c) {
  GE_RETURN_IF_ERROR(require_strings(c, 2));
  return infer_broadcast(c, DType::string);
}
Status lower_concat(LowerContext& c) {
  c.call("text.concat", {c.in(0), c.in(1)}, {c.out()});
  return ok();
}

// ---- StringSplit

Status infer_split(InferContext& c) {
  GE_RETURN_IF_ERROR(require_strings(c, 1));
  like_input(c, 1, DType::i64);
  if (!c.ranked(0)) {
    c.set_unranked(0, DType::string);
    return ok();
  }
  auto dims = c.dims(0);
  if (dims.size() >= static_cast<size_t>(kMaxRank)) return c.fail(format("its output would have {} axes; at most {} are possible", dims.size() + 1, kMaxRank));
  dims.push_back(c.fresh("pieces"));
  c.set(0, DType::string, std::move(dims));
  return ok();
}
Status lower_split(LowerContext& c) {
  c.call("text.split", {c.in(0)}, {c.out(0), c.out(1)}, {attr_int(c.node, "maxsplit", -1)}, {}, bytes_of(attr_string(c.node, "delimiter", "")));
  return ok();
}

// ---- StringNormalizer

std::optional<int64_t> case_of(const Node& n) {
  std::string action = attr_string(n, "case_change_action", "NONE");
  for (int64_t i = 0; auto* word : {"NONE", "LOWER", "UPPER"}) {
    if (action == word) return i;
    ++i;
  }
  return std::nullopt;
}
Status infer_normalizer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_strings(c, 1));
  if (!case_of(c.node)) return c.fail(format("case_change_action '{}' is not NONE, LOWER or UPPER", attr_string(c.node, "case_change_action", "")));
  if (!c.ranked(0)) {
    c.set_unranked(0, DType::string);
    return ok();
  }
  auto dims = c.dims(0);
  if (dims.empty() || dims.size() > 2 || (dims.size() == 2 && dims[0].known() && !dims[0].is(1))) return c.fail(format("{} is not [C] or [1, C]", text(dims)));
  if (dims.size() == 2) dims[0] = 1;
  dims.back() = c.fresh("kept");
  c.set(0, DType::string, std::move(dims));
  return ok();
}
Status lower_normalizer(LowerContext& c) {
  std::string words;
  for (auto& w : ir::attr_strings(c.node, "stopwords")) words += w + '\0';
  c.call("text.normalize", {c.in(0)}, {c.out()}, {*case_of(c.node), attr_int(c.node, "is_case_sensitive", 0) != 0}, {}, bytes_of(words));
  return ok();
}

// ---- RegexFullMatch

Status infer_matches(InferContext& c) {
  GE_RETURN_IF_ERROR(require_strings(c, 1));
  if (auto pattern = kernels::reference::Regex::parse(attr_string(c.node, "pattern", "")); !pattern.ok()) return c.fail(pattern.error().message);
  like_input(c, 0, DType::boolean);
  return ok();
}
Status lower_matches(LowerContext& c) {
  c.call("text.matches", {c.in(0)}, {c.out()}, {}, {}, bytes_of(attr_string(c.node, "pattern", "")));
  return ok();
}

OpDef define(const char* op, int inputs, int outputs, int since, const char* doc, Status (*infer)(InferContext&), Status (*lower)(LowerContext&)) {
  OpDef d = executor_op(op, inputs, inputs, since, doc, infer, lower);
  d.max_outputs = outputs;
  d.types = types::text;
  return d;
}
template <class... A>
OpDef with(OpDef d, A... attrs) {
  d.attrs = {attrs...};
  return d;
}

const Register registered[] = {
    Register(define("StringConcat", 2, 1, 20, "One string behind the other, with broadcasting.", infer_concat, lower_concat)),
    Register(with(define("StringSplit", 1, 2, 20, "The pieces between delimiters.", infer_split, lower_split),
                  AttrDef{"delimiter", "Absent or empty: white space."}, AttrDef{"maxsplit", "At most so many cuts."})),
    Register(with(define("StringNormalizer", 1, 1, 10, "Without stop words, in one case.", infer_normalizer, lower_normalizer),
                  AttrDef{"case_change_action", "NONE, LOWER or UPPER."}, AttrDef{"is_case_sensitive", "Whether stop words have to be written alike."},
                  AttrDef{"stopwords", "Left out."}, AttrDef{"locale", "Not used: letters of all scripts are known."})),
    Register(with(define("RegexFullMatch", 1, 1, 20, "Whether a pattern matches the whole string.", infer_matches, lower_matches),
                  AttrDef{"pattern", "In RE2's notation."})),
};

}  // namespace
}  // namespace ge::ops
