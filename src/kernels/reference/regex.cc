#include "kernels/reference/regex.h"

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "kernels/reference/regex_parser.h"
#include "kernels/reference/text.h"

namespace ge::kernels::reference {
namespace {

constexpr size_t kSteps = 100000;
constexpr char32_t kNone = 0xFFFFFFFF;   // before the first letter, after the last, and for bytes that are no UTF-8

using Step = Regex::Step;

// Steps from the end of the pattern to its beginning: each part is told what comes after it.
class Compiler {
 public:
  Compiler(std::vector<Regex::Set>& sets, std::vector<Step>& steps) : sets_(sets), steps_(steps) {}
  int compile(RegexNode& n, int next) {
    using Kind = RegexNode::Kind;
    if (steps_.size() > kSteps) return next;
    switch (n.kind) {
      case Kind::set:
        sets_.push_back(n.set);
        return add({.op = Regex::Op::set, .set = static_cast<int>(sets_.size()) - 1, .next = next});
      case Kind::assert_:
        return add({.op = Regex::Op::assert_, .what = n.what, .next = next});
      case Kind::sequence:
        for (auto it = n.parts.rbegin(); it != n.parts.rend(); ++it) next = compile(**it, next);
        return next;
      case Kind::choice: {
        int first = compile(*n.parts.back(), next);
        for (size_t i = n.parts.size() - 1; i-- > 0;) first = add({.op = Regex::Op::fork, .next = compile(*n.parts[i], next), .other = first});
        return first;
      }
      case Kind::repeat:
        return repeat(n, next);
    }
    return next;
  }

 private:
  int add(Step s) {
    steps_.push_back(s);
    return static_cast<int>(steps_.size()) - 1;
  }
  int repeat(RegexNode& n, int next) {
    RegexNode& part = *n.parts[0];
    int first = next;
    if (n.most < 0) {
      first = add({.op = Regex::Op::fork, .other = next});
      int body = compile(part, first);
      steps_[static_cast<size_t>(first)].next = body;
    }
    for (int i = n.least; i < n.most; ++i) first = add({.op = Regex::Op::fork, .next = compile(part, first), .other = next});
    for (int i = 0; i < n.least; ++i) first = compile(part, first);
    return first;
  }
  std::vector<Regex::Set>& sets_;
  std::vector<Step>& steps_;
};

bool is_word(char32_t c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z'); }

// The letters that differ from c in case alone (Unicode's simple case folding; the dotted I and the dotless i have none), c among
// them; null: c is alone.
const std::vector<char32_t>* other_cases(char32_t c) {
  using Cases = std::vector<char32_t>;
  static const auto all = [] {
    constexpr char32_t kLastCased = 0x1E943, kDottedI = 0x130, kDotlessI = 0x131;
    std::unordered_map<char32_t, Cases> folded, out;
    for (char32_t x = 0; x <= kLastCased; ++x) {
      const char32_t key = letter_in_case(letter_in_case(x, Case::upper), Case::lower);
      if (key != x && x != kDottedI && x != kDotlessI) folded[key].push_back(x);
    }
    for (auto& [key, cases] : folded) {
      cases.push_back(key);
      for (char32_t x : cases) out[x] = cases;
    }
    return out;
  }();
  auto it = all.find(c);
  return it == all.end() ? nullptr : &it->second;
}

bool holds(Regex::Assert what, char32_t before, bool first, char32_t after, bool last) {
  switch (what) {
    case Regex::Assert::text_begin: return first;
    case Regex::Assert::text_end: return last;
    case Regex::Assert::line_begin: return first || before == '\n';
    case Regex::Assert::line_end: return last || after == '\n';
    case Regex::Assert::word_edge: return is_word(before) != is_word(after);
    case Regex::Assert::no_word_edge: return is_word(before) == is_word(after);
  }
  return false;
}

}  // namespace

// The steps where a match may stand, each once.
struct Regex::Threads {
  explicit Threads(size_t n) : seen(n, 0) {}
  std::vector<int> at, stack;
  std::vector<uint32_t> seen;
  uint32_t round = 0;
  bool first = false, last = false, matched = false;
  void begin() {
    at.clear();
    ++round;
    matched = false;
  }
};

bool Regex::Set::holds(char32_t c) const {
  if (c == kNone) return false;
  const std::vector<char32_t>* cases = fold ? other_cases(c) : nullptr;
  auto has = [](const Ranges& ranges, char32_t x) { return std::any_of(ranges.begin(), ranges.end(), [&](auto& r) { return x >= r.first && x <= r.second; }); };
  auto in = [&](const Ranges& ranges) {
    return has(ranges, c) || (cases && std::any_of(cases->begin(), cases->end(), [&](char32_t x) { return has(ranges, x); }));
  };
  return negated != (in(ranges) || std::any_of(outside.begin(), outside.end(), [&](auto& r) { return !in(r); }));
}

Result<Regex> Regex::parse(std::string_view pattern) {
  GE_TRY(auto tree, parse_regex(pattern));
  Regex r;
  r.steps_.push_back({.op = Op::match});
  r.start_ = Compiler(r.sets_, r.steps_).compile(*tree, 0);
  if (r.steps_.size() > kSteps) return error(code::kBadOp, format("The pattern \"{}\" is too large.", pattern));
  return r;
}

// What is reached from `step` without a letter.
void Regex::follow(Threads& to, int step, char32_t before, char32_t after) const {
  to.stack.push_back(step);
  while (!to.stack.empty()) {
    int at = to.stack.back();
    to.stack.pop_back();
    auto& seen = to.seen[static_cast<size_t>(at)];
    if (seen == to.round) continue;
    seen = to.round;
    auto& s = steps_[static_cast<size_t>(at)];
    if (s.op == Op::match) to.matched = true;
    if (s.op == Op::set) to.at.push_back(at);
    if (s.op == Op::fork) to.stack.push_back(s.other), to.stack.push_back(s.next);
    if (s.op == Op::assert_ && reference::holds(s.what, before, to.first, after, to.last)) to.stack.push_back(s.next);
  }
}

std::optional<size_t> Regex::longest_match(std::string_view text, size_t begin) const {
  auto letter = [&](size_t at, size_t& bytes) {
    if (at >= text.size()) return kNone;
    Letter l = letter_at(text, at);
    bytes = l.bytes;
    return l.code || !text[at] ? l.code : kNone;
  };
  Threads now(steps_.size()), next(steps_.size());
  size_t bytes = 0, at = begin;
  // Only letters of one byte decide about words and lines.
  char32_t before = begin > 0 && static_cast<unsigned char>(text[begin - 1]) < 128 ? static_cast<char32_t>(text[begin - 1]) : kNone;
  char32_t c = letter(at, bytes);
  now.first = begin == 0, now.last = at >= text.size();
  now.begin();
  follow(now, start_, before, c);
  std::optional<size_t> longest;
  if (now.matched) longest = at;
  while (at < text.size() && !now.at.empty()) {
    at += bytes;
    before = c;
    c = letter(at, bytes);
    next.last = at >= text.size();
    next.begin();
    for (int step : now.at) {
      auto& s = steps_[static_cast<size_t>(step)];
      if (sets_[static_cast<size_t>(s.set)].holds(before)) follow(next, s.next, before, c);
    }
    if (next.matched) longest = at;
    std::swap(now, next);
    next.first = now.first = false;
  }
  return longest;
}

}  // namespace ge::kernels::reference
