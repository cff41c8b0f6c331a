// Tasks on text: text.concat, text.split, text.normalize, text.matches, text.cast, text.tokens.
#include <algorithm>
#include <array>
#include <unordered_set>

#include "base/text.h"
#include "kernels/reference/access.h"
#include "kernels/reference/regex.h"
#include "kernels/reference/text.h"
#include "runtime/frame.h"

namespace ge::runtime {
namespace {

namespace ref = kernels::reference;
using Strings = std::vector<std::string_view>;

struct Text {
  Strings strings;
  std::vector<int64_t> dims;
};

Result<Text> text_in(TaskRun& t, size_t i) {
  if (!t.texts()) return t.fail("this run has no strings");
  GE_TRY(Value v, t.in(i));
  if (!v.is_tensor() || v.dtype != DType::string) return t.fail(format("input {} is no tensor of strings", i));
  GE_TRY(Strings s, t.texts()->strings(v));
  return Text{std::move(s), v.dims};
}

Status give_text(TaskRun& t, size_t i, std::span<const int64_t> dims, const Strings& strings) {
  GE_TRY(Value v, t.texts()->tensor(dims, strings));
  return t.give(i, std::move(v));
}

// in: two, repeated to one shape
Status run_concat(TaskRun& t) {
  GE_TRY(Text a, text_in(t, 0));
  GE_TRY(Text b, text_in(t, 1));
  size_t rank = std::max(a.dims.size(), b.dims.size());
  auto size = [&](const Text& x, size_t axis) { return axis + x.dims.size() < rank ? 1 : x.dims[axis + x.dims.size() - rank]; };
  std::vector<int64_t> dims(rank);
  int64_t count = 1;
  for (size_t k = 0; k < rank; ++k) {
    int64_t p = size(a, k), q = size(b, k);
    if (p != q && p != 1 && q != 1) return t.fail(format("{} and {} do not broadcast", shape_text(a.dims), shape_text(b.dims)));
    count *= dims[k] = p == 1 ? q : p;
  }
  auto place = [&](const Text& x, int64_t linear) {
    int64_t at = 0, step = 1;
    for (size_t k = rank; k-- > 0; linear /= dims[k]) {
      if (size(x, k) > 1) at += linear % dims[k] * step;
      step *= size(x, k);
    }
    return static_cast<size_t>(at);
  };
  std::vector<std::string> made;
  for (int64_t i = 0; i < count; ++i) made.push_back(std::string(a.strings[place(a, i)]) + std::string(b.strings[place(b, i)]));
  return give_text(t, 0, dims, Strings(made.begin(), made.end()));
}

// ints [cuts at most, or -1], text: the delimiter. out: [dims, pieces of the longest], [dims] how many pieces
Status run_split(TaskRun& t) {
  GE_TRY(Text x, text_in(t, 0));
  if (t.ints().size() != 1) return t.fail("wrong parameters");
  std::vector<std::vector<std::string>> pieces;
  std::vector<int64_t> counts;
  size_t most = 0;
  for (auto s : x.strings) {
    pieces.push_back(ref::split_text(s, t.text(), t.ints()[0]));
    counts.push_back(static_cast<int64_t>(pieces.back().size()));
    most = std::max(most, pieces.back().size());
  }
  if (most && pieces.size() > (size_t{1} << 40) / most) return t.fail("too many pieces");
  if (t.wants(0)) {
    Strings flat;
    for (auto& p : pieces) {
      flat.insert(flat.end(), p.begin(), p.end());
      flat.resize(flat.size() + most - p.size());
    }
    auto dims = x.dims;
    dims.push_back(static_cast<int64_t>(most));
    GE_RETURN_IF_ERROR(give_text(t, 0, dims, flat));
  }
  return t.wants(1) ? t.give(1, Value::tensor(DType::i64, x.dims, counts.data())) : ok();
}

// ints [case, whether stop words must be written alike], text: the stop words, each with a 0 behind it
Status run_normalize(TaskRun& t) {
  GE_TRY(Text x, text_in(t, 0));
  if (t.ints().size() != 2 || t.ints()[0] < 0 || t.ints()[0] > 2) return t.fail("wrong parameters");
  if (x.dims.empty() || x.dims.size() > 2 || (x.dims.size() == 2 && x.dims[0] != 1)) return t.fail(format("{} is not [C] or [1, C]", shape_text(x.dims)));
  auto to = static_cast<ref::Case>(t.ints()[0]);
  bool alike = t.ints()[1] != 0;
  auto key = [&](std::string_view s) { return alike ? std::string(s) : ref::change_case(s, ref::Case::lower); };
  std::unordered_set<std::string> stop;
  for (std::string_view words = t.text(); !words.empty();) {
    size_t end = std::min(words.find('\0'), words.size());
    stop.insert(key(words.substr(0, end)));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  std::vector<std::string> kept;
  for (auto s : x.strings)
    if (!stop.count(key(s))) kept.push_back(ref::change_case(s, to));
  if (kept.empty()) kept.emplace_back();
  auto dims = x.dims;
  dims.back() = static_cast<int64_t>(kept.size());
  return give_text(t, 0, dims, Strings(kept.begin(), kept.end()));
}

// text: the pattern. out: bool
Status run_matches(TaskRun& t) {
  GE_TRY(Text x, text_in(t, 0));
  GE_TRY(ref::Regex pattern, ref::Regex::parse(t.text()));
  std::vector<uint8_t> matches;
  for (auto s : x.strings) matches.push_back(pattern.full_match(s));
  return t.give(0, Value::tensor(DType::boolean, x.dims, matches.data()));
}

std::string text_of(const View& v, int64_t i) {
  if (v.dtype == DType::u64) return std::to_string(v.as<uint64_t>()[i]);
  if (!ref::plain_float(v.dtype)) return std::to_string(ref::load_int(v, i));
  double x = ref::load(v, i);
  return v.dtype == DType::f64 ? ref::cast_text(x) : ref::cast_text(static_cast<float>(x));
}

// Strings to numbers or numbers to strings, as the types say.
Status run_cast(TaskRun& t) {
  GE_TRY(Value v, t.in(0));
  if (!v.is_tensor()) return t.fail("input 0 is no tensor");
  if (t.out_type(0) == DType::string) {
    if (!ref::plain_numeric(v.dtype) || !t.texts()) return t.fail(format("{} cannot be written as text", name(v.dtype)));
    View view{const_cast<std::byte*>(v.data), v.dtype, 0, nullptr, nullptr};
    std::vector<std::string> made;
    for (int64_t i = 0; i < v.count(); ++i) made.push_back(text_of(view, i));
    return give_text(t, 0, v.dims, Strings(made.begin(), made.end()));
  }
  GE_TRY(Text x, text_in(t, 0));
  DType to = t.out_type(0);
  if (!ref::plain_numeric(to)) return t.fail(format("text cannot become {}", name(to)));
  GE_TRY(std::byte* memory, t.out(0, to, x.dims));
  View out{memory, to, 0, nullptr, nullptr};
  for (size_t i = 0; i < x.strings.size(); ++i) {
    auto at = static_cast<int64_t>(i);
    if (auto whole = ref::plain_float(to) ? std::nullopt : ref::text_integer(x.strings[i])) {
      ref::store_int(out, at, *whole);
      continue;
    }
    auto number = ref::text_number(x.strings[i]);
    if (!number) return t.fail(format("\"{}\" is no number", x.strings[i]));
    ref::store(out, at, *number);
  }
  return ok();
}

enum : int64_t { kLetters = 0, kSeparators = 1, kTokens = 2 };

// The first match from `begin` on that holds a letter, the longest there; one that ends at the end of the text if there is none.
std::pair<size_t, size_t> find(const ref::Regex& pattern, std::string_view s, size_t begin) {
  for (size_t at = begin; at < s.size(); at += ref::letter_at(s, at).bytes)
    if (auto end = pattern.longest_match(s, at); end && *end > at) return {at, *end};
  return {s.size(), s.size()};
}

// Adds the parts of s that match, or those between matches.
void cut(std::string_view s, const ref::Regex& pattern, bool matches, Strings& to) {
  for (size_t at = 0; at < s.size();) {
    auto [begin, end] = find(pattern, s, at);
    if (matches ? end > begin : begin > at) to.push_back(matches ? s.substr(begin, end - begin) : s.substr(at, begin - at));
    at = end;
  }
}

int64_t letters(std::string_view s) {
  int64_t n = 0;
  for (size_t at = 0; at < s.size(); at += ref::letter_at(s, at).bytes) ++n;
  return n;
}

// ints [how, whether tokens are marked, least letters of a token, whether there is an axis of the tokens], text: what fills up the rows, then the patterns, each
// with a 0 behind it. out: [dims, tokens of the longest]; without any token there are no marks
Status run_tokens(TaskRun& t) {
  GE_TRY(Text x, text_in(t, 0));
  if (t.ints().size() != 4 || t.ints()[0] < kLetters || t.ints()[0] > kTokens) return t.fail("wrong parameters");
  const int64_t how = t.ints()[0], least = t.ints()[2];
  Strings words;
  for (std::string_view rest = t.text(); !rest.empty();) {
    size_t end = std::min(rest.find('\0'), rest.size());
    words.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (words.empty() || (how == kTokens && words.size() != 2)) return t.fail("wrong parameters");
  std::vector<ref::Regex> patterns;
  for (size_t i = 1; how != kLetters && i < words.size(); ++i) {
    GE_TRY(ref::Regex pattern, ref::Regex::parse(words[i]));
    patterns.push_back(std::move(pattern));
  }
  std::vector<Strings> rows;
  size_t most = 0;
  for (auto s : x.strings) {
    Strings row;
    if (how == kLetters) {
      for (size_t at = 0; at < s.size(); at += ref::letter_at(s, at).bytes) row.push_back(s.substr(at, ref::letter_at(s, at).bytes));
    } else {
      row = {s};
      for (auto& p : patterns) {
        Strings parts;
        for (auto part : row) cut(part, p, how == kTokens, parts);
        row = std::move(parts);
      }
    }
    std::erase_if(row, [&](std::string_view token) { return letters(token) < least; });
    most = std::max(most, row.size());
    rows.push_back(std::move(row));
  }
  // Marks go around tokens, and what fills up outside of them.
  const bool marked = t.ints()[1] != 0 && most > 0;
  if (marked) most += 2;
  if (most && rows.size() > (size_t{1} << 40) / most) return t.fail("too many tokens");
  Strings flat;
  for (auto& row : rows) {
    size_t end = flat.size() + most;
    if (marked) flat.push_back("\x02");
    flat.insert(flat.end(), row.begin(), row.end());
    if (marked) flat.push_back("\x03");
    flat.resize(end, words[0]);
  }
  auto dims = x.dims;
  if (t.ints()[3]) dims.push_back(static_cast<int64_t>(most));
  return give_text(t, 0, dims, flat);
}

const RegisterHost registered[] = {{"text.concat", run_concat}, {"text.split", run_split}, {"text.normalize", run_normalize},
                                   {"text.matches", run_matches}, {"text.cast", run_cast}, {"text.tokens", run_tokens}};

}  // namespace
}  // namespace ge::runtime
