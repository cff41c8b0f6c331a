// com.microsoft.Tokenizer: each string as a row of its letters, of what lies between separators, or of what matches a pattern.
#include "base/text.h"
#include "kernels/reference/regex.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

enum : int64_t { kLetters = 0, kSeparators = 1, kTokens = 2 };

struct Cutting {
  int64_t how = kSeparators;
  std::vector<std::string> patterns;
};
Cutting cutting(const Node& n) {
  Cutting c{kSeparators, ir::attr_strings(n, "separators")};
  if (std::string token = attr_string(n, "tokenexp", ""); !token.empty()) c = {kTokens, {token}};
  if (c.patterns == std::vector<std::string>{c.how == kTokens ? "." : ""}) c = {kLetters, {}};
  return c;
}

// Of what is known to be no strings the result has no axis more.
bool more_axes(const Type& t) { return !t.ranked || !product(t.dims).is(0); }

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  if (has_attr(c.node, "separators") == has_attr(c.node, "tokenexp")) return c.fail("one of separators and tokenexp must be given");
  auto how = cutting(c.node);
  if (how.how != kLetters && how.patterns.empty()) return c.fail("there are no separators");
  for (auto& p : how.patterns) {
    if (p.find('\0') != std::string::npos) return c.fail("a pattern holds a letter 0");
    if (auto pattern = kernels::reference::Regex::parse(p); !pattern.ok()) return c.fail(pattern.error().message);
  }
  if (int64_t least = attr_int(c.node, "mincharnum", 1); least < 1 || (least > 1 && how.how == kLetters)) return c.fail(format("attribute mincharnum is {}; it must be 1 or more, and 1 for single letters", least));
  if (!c.ranked(0)) {
    c.set_unranked(0, DType::string);
    return ok();
  }
  auto dims = c.dims(0);
  if (dims.empty() || dims.size() > 2) return c.fail(format("{} has not 1 or 2 axes", text(dims)));
  dims.push_back(c.fresh("tokens"));
  if (!more_axes(c.type(0))) dims.pop_back();
  c.set(0, DType::string, std::move(dims));
  return ok();
}

Status lower(LowerContext& c) {
  auto how = cutting(c.node);
  std::string words = attr_string(c.node, "pad_value", "") + '\0';
  for (auto& p : how.patterns) words += p + '\0';
  auto* bytes = reinterpret_cast<const std::byte*>(words.data());
  c.call("text.tokens", {c.in(0)}, {c.out()}, {how.how, attr_int(c.node, "mark", 0) != 0, attr_int(c.node, "mincharnum", 1), more_axes(c.type(0))}, {}, {bytes, bytes + words.size()});
  return ok();
}

const Register r([] {
  OpDef d = executor_op("com.microsoft.Tokenizer", 1, 1, 1, "Each string as a row of its letters or tokens.", infer, lower);
  d.types = types::text;
  d.attrs = {{"separators", "Patterns of what is between tokens; one empty one: letters."}, {"tokenexp", "The pattern of a token."},
             {"mark", "1: 0x02 before, 0x03 behind the tokens."}, {"mincharnum", "Least letters of a token."}, {"pad_value", "Fills up the rows."}};
  return d;
}());

}  // namespace
}  // namespace ge::ops
