// Patterns beside RE2, whose notation and meaning they have: which are patterns at all, what they match.
#include "kernels/reference/regex.h"

#include <gtest/gtest.h>
#include <re2/re2.h>

#include <random>

#include "kernels/reference/text.h"

namespace ge::kernels::reference {
namespace {

re2::RE2::Options options() {
  re2::RE2::Options o;
  o.set_log_errors(false);
  o.set_longest_match(true);
  return o;
}

std::optional<size_t> theirs(const re2::RE2& pattern, std::string_view text, size_t begin) {
  re2::StringPiece all(text.data(), text.size()), match;
  if (!pattern.Match(all, begin, text.size(), re2::RE2::ANCHOR_START, &match, 1)) return std::nullopt;
  return begin + match.size();
}

class Words {
 public:
  explicit Words(uint32_t seed) : random_(seed) {}
  size_t below(size_t n) { return random_() % n; }
  template <size_t N>
  std::string one_of(const char* const (&words)[N]) {
    return words[below(N)];
  }
  std::string letter() { return one_of({"a", "b", "B", "c", "1", " ", "_", "-", "\n", "\xc3\xa9", "\xce\xbb", "\xce\x9b", "\xe4\xb8\xad"}); }
  std::string text() {
    std::string out;
    for (size_t n = below(7); n > 0; --n) out += below(40) ? letter() : one_of({"\xff", "\xc3", "\xe4\xb8", "k", "\xe2\x84\xaa", "\xc5\xbf", "s"});
    return out;
  }
  std::string pattern(int depth = 0) {
    std::string out;
    for (size_t n = below(4); n > 0; --n) out += repeated(depth);
    if (depth < 3 && below(4) == 0) out += "|" + pattern(depth + 1);
    return out;
  }

 private:
  std::string set() {
    std::string out = below(3) ? "[" : "[^";
    for (size_t n = 1 + below(3); n > 0; --n)
      out += one_of({"a", "a-c", "B-_", "\\d", "\\W", "\\s", "[:alpha:]", "[:^digit:]", "\\pL", "\\p{Greek}", "\xce\xb1-\xcf\x89", "\\n", "\\]", "-", "]", "k", "\\x{3bb}", "\\P{Lu}"});
    return out + "]";
  }
  std::string atom(int depth) {
    switch (below(depth < 3 ? 9 : 7)) {
      case 0: case 1: case 2: return below(12) ? letter() : "\\" + letter();
      case 3: return set();
      case 4: return one_of({".", "\\w", "\\D", "\\S", "\\pN", "\\p{^L}", "\\x{3bb}", "\\x61", "\\060", "\\Qa.\\E", "(?i)k", "(?s)."});
      case 5: return one_of({"^", "$", "\\b", "\\B", "\\A", "\\z"});
      case 6: return one_of({"\\1", "\\z", "{", "}", "a{,2}", "]", "(?m)", "(?i)", "(?-i)", "(?s)", "(?x)", "\\k", "\\p{Xx}"});
      default: return one_of({"(", "(?:", "(?P<n>", "(?i:", "(?s:", "(?m:", "(?i-s:", "(?U:"}) + pattern(depth + 1) + (below(30) ? ")" : "");
    }
  }
  std::string repeated(int depth) {
    std::string a = atom(depth);
    if (below(3) == 0) a += one_of({"*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}", "*?", "+?", "{1,2}?", "**", "{0}"});
    return a;
  }
  std::mt19937 random_;
};

TEST(Regex, SamePatternsAndMatchesAsRe2) {
  int patterns = 0, matches = 0;
  for (uint32_t seed = 0; seed < 20000; ++seed) {
    Words words(seed);
    std::string p = words.pattern();
    SCOPED_TRACE(testing::Message() << "seed " << seed << " pattern " << testing::PrintToString(p));
    re2::RE2 want(p, options());
    auto got = Regex::parse(p);
    ASSERT_EQ(got.ok(), want.ok()) << want.error();
    if (!got.ok()) continue;
    ++patterns;
    for (int i = 0; i < 8; ++i) {
      std::string text = words.text();
      for (size_t begin = 0; begin <= text.size(); ++begin) {
        auto end = theirs(want, text, begin);
        ASSERT_EQ(got->longest_match(text, begin), end) << testing::PrintToString(text) << " from " << begin;
        matches += end && *end > begin;
      }
      ASSERT_EQ(got->full_match(text), re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), want)) << testing::PrintToString(text);
    }
  }
  EXPECT_GT(patterns, 10000);
  EXPECT_GT(matches, 10000);
}

std::string letter_text(char32_t c) {
  std::string out;
  if (c < 0x80) return {static_cast<char>(c)};
  if (c >= 0x10000) out += {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63))};
  else if (c >= 0x800) out += static_cast<char>(0xE0 | c >> 12);
  else out += static_cast<char>(0xC0 | c >> 6);
  if (c >= 0x800) out += static_cast<char>(0x80 | (c >> 6 & 63));
  return out + static_cast<char>(0x80 | (c & 63));
}

// Each letter against those that follow it and those that its cases are.
TEST(Regex, SameCasesAsRe2) {
  int matches = 0;
  for (char32_t c = 'A'; c < 0x1F000; ++c) {
    if ((c >= 0xD800 && c < 0xE000) || c == '[' || c == '\\' || c == '^' || (c >= '{' && c <= '}')) continue;
    char32_t lower = letter_in_case(c, Case::lower), upper = letter_in_case(c, Case::upper);
    if (lower == c && upper == c && c % 16) continue;
    const std::string p = "(?i)" + letter_text(c);
    re2::RE2 want(p, options());
    auto got = Regex::parse(p);
    ASSERT_TRUE(got.ok() && want.ok());
    for (char32_t other : std::vector<char32_t>{lower, upper, letter_in_case(lower, Case::upper), letter_in_case(upper, Case::lower), c + 1, char32_t{'k'}, char32_t{0x212A}, char32_t{'I'}, char32_t{0x130}}) {
      const std::string text = letter_text(other);
      ASSERT_EQ(got->full_match(text), re2::RE2::FullMatch(text, want)) << p << " " << text;
      matches += c != other && got->full_match(text);
    }
  }
  EXPECT_GT(matches, 2000);
}

}  // namespace
}  // namespace ge::kernels::reference
