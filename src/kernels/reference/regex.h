// Regular expressions in RE2's notation, matched in time that is linear in the length of the text. Not here:
// captures, as no operator asks for them, and \C, a byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ge::kernels::reference {

class Regex {
 public:
  static Result<Regex> parse(std::string_view pattern);
  // Whether the pattern matches all of the text, UTF-8; a byte that is none matches nothing.
  bool full_match(std::string_view text) const { return longest_match(text, 0) == text.size(); }
  // Where the longest match that begins at byte `begin` ends; none if there is none. What is before it counts for \b and ^.
  std::optional<size_t> longest_match(std::string_view text, size_t begin) const;

  using Ranges = std::vector<std::pair<char32_t, char32_t>>;
  // Letters: those in `ranges` and those that one of `outside` has not. `fold`: in either case.
  struct Set {
    Ranges ranges;
    std::vector<Ranges> outside;
    bool negated = false, fold = false;
    bool holds(char32_t c) const;
  };
  enum class Op : uint8_t { set, fork, assert_, match };
  enum class Assert : uint8_t { text_begin, text_end, line_begin, line_end, word_edge, no_word_edge };
  struct Step {
    Op op = Op::match;
    Assert what = Assert::text_begin;
    int set = -1;
    int next = -1, other = -1;   // `other` of a fork only
  };

 private:
  struct Threads;
  void follow(Threads& to, int step, char32_t before, char32_t after) const;
  std::vector<Set> sets_;
  std::vector<Step> steps_;
  int start_ = 0;
};

}  // namespace ge::kernels::reference
