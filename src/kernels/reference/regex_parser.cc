#include "kernels/reference/regex_parser.h"

#include <algorithm>

#include "base/text.h"
#include "kernels/reference/text.h"
#include "kernels/reference/unicode.h"

namespace ge::kernels::reference {
namespace {

using Node = RegexNode;
using Made = Result<std::unique_ptr<Node>>;
using Ranges = Regex::Ranges;
constexpr char32_t kLast = 0x10FFFF;
constexpr int kDepth = 500, kRepeats = 1000;

Ranges complement(Ranges r) {
  std::sort(r.begin(), r.end());
  Ranges out;
  char32_t next = 0;
  for (auto& [low, high] : r) {
    if (low > next) out.push_back({next, low - 1});
    next = std::max<char32_t>(next, high + 1);
  }
  if (next <= kLast) out.push_back({next, kLast});
  return out;
}

const Ranges kDigit{{'0', '9'}}, kSpace{{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}, kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};

const Ranges* posix_class(std::string_view name) {
  static const std::pair<std::string_view, Ranges> table[] = {
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}}, {"alpha", {{'A', 'Z'}, {'a', 'z'}}}, {"ascii", {{0, 0x7F}}},
      {"blank", {{'\t', '\t'}, {' ', ' '}}}, {"cntrl", {{0, 0x1F}, {0x7F, 0x7F}}}, {"digit", kDigit}, {"graph", {{'!', '~'}}},
      {"lower", {{'a', 'z'}}}, {"print", {{' ', '~'}}}, {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}}, {"upper", {{'A', 'Z'}}}, {"word", kWord},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}}};
  for (auto& [key, ranges] : table)
    if (key == name) return &ranges;
  return nullptr;
}

// \d, [:^alpha:], \P{Lu} ...
struct Class {
  Ranges ranges;
  bool negated = false;
};

// \d, \W ...; nullopt for another letter.
std::optional<Class> perl_class(char c) {
  char low = static_cast<char>(c | 0x20);
  const Ranges* r = low == 'd' ? &kDigit : low == 's' ? &kSpace : low == 'w' ? &kWord : nullptr;
  if (!r) return std::nullopt;
  return Class{*r, c != low};
}

struct Flags {
  bool fold = false, dot_all = false, lines = false;
};

class Parser {
 public:
  explicit Parser(std::string_view s) : s_(s) {}
  Made all() {
    GE_TRY(auto node, choice(0));
    if (at_ < s_.size()) return bad("a ')' without '('");
    return node;
  }

 private:
  Error bad(std::string what) const { return error(code::kBadOp, format("The pattern \"{}\" has {} at {}.", s_, what, at_)); }
  bool more() const { return at_ < s_.size(); }
  bool take(std::string_view word) {
    if (!s_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  static std::unique_ptr<Node> make(Node::Kind kind) {
    auto n = std::make_unique<Node>();
    n->kind = kind;
    return n;
  }
  std::unique_ptr<Node> set_of(Ranges r) const {
    auto n = make(Node::Kind::set);
    n->set = {.ranges = std::move(r), .fold = flags_.fold};
    return n;
  }
  std::unique_ptr<Node> set_of(Class c) const {
    auto n = set_of(Ranges());
    add(n->set, std::move(c));
    return n;
  }
  // In either case a negated class has the letters of which neither case is in it.
  static void add(Regex::Set& set, Class c) {
    if (c.negated && set.fold) {
      set.outside.push_back(std::move(c.ranges));
      return;
    }
    if (c.negated) c.ranges = complement(std::move(c.ranges));
    set.ranges.insert(set.ranges.end(), c.ranges.begin(), c.ranges.end());
  }
  static std::unique_ptr<Node> assertion(Regex::Assert what) {
    auto n = make(Node::Kind::assert_);
    n->what = what;
    return n;
  }

  Made choice(int depth) {
    if (depth > kDepth) return bad("too many levels");
    Flags before = flags_;
    auto n = make(Node::Kind::choice);
    do {
      GE_TRY(auto part, sequence(depth));
      n->parts.push_back(std::move(part));
    } while (take("|"));
    flags_ = before;  // they end with their group
    return n->parts.size() == 1 ? std::move(n->parts[0]) : std::move(n);
  }

  Made sequence(int depth) {
    auto n = make(Node::Kind::sequence);
    for (bool repeated = false; more() && s_[at_] != '|' && s_[at_] != ')';) {
      int least, most;
      if (repetition(least, most)) {
        if (n->parts.empty() || repeated) return bad("nothing to repeat");
        if (least > kRepeats || most > kRepeats || (most >= 0 && most < least)) return bad("a wrong number of repetitions");
        auto r = make(Node::Kind::repeat);
        r->least = least, r->most = most;
        r->parts.push_back(std::move(n->parts.back()));
        n->parts.back() = std::move(r);
        repeated = true;
        continue;
      }
      repeated = false;
      if (take("\\Q")) {
        while (more() && !take("\\E")) n->parts.push_back(set_of(one(letter())));
        continue;
      }
      GE_TRY(auto atom, this->atom(depth));
      if (atom) n->parts.push_back(std::move(atom));
    }
    return n;
  }

  bool repetition(int& least, int& most) {
    if (take("*")) least = 0, most = -1;
    else if (take("+")) least = 1, most = -1;
    else if (take("?")) least = 0, most = 1;
    else if (!counts(least, most)) return false;
    take("?");  // what it would prefer is nothing to a match of all
    return true;
  }
  // {2}, {2,}, {2,3}; anything else is text.
  bool counts(int& least, int& most) {
    size_t before = at_;
    auto number = [&](int& v) {
      size_t begin = at_;
      for (v = 0; more() && s_[at_] >= '0' && s_[at_] <= '9'; ++at_) v = std::min(v * 10 + (s_[at_] - '0'), kRepeats + 1);
      return at_ > begin;
    };
    if (take("{") && number(least)) {
      most = least;
      if (take(",") && !number(most)) most = -1;
      if (take("}")) return true;
    }
    at_ = before;
    return false;
  }

  // Null where there are flags alone.
  Made atom(int depth) {
    if (take("(")) return group(depth);
    if (take("[")) return brackets();
    if (take(".")) return flags_.dot_all ? set_of({{0, kLast}}) : set_of({{0, '\n' - 1}, {'\n' + 1, kLast}});
    if (take("^")) return assertion(flags_.lines ? Regex::Assert::line_begin : Regex::Assert::text_begin);
    if (take("$")) return assertion(flags_.lines ? Regex::Assert::line_end : Regex::Assert::text_end);
    if (!take("\\")) return set_of(one(letter()));
    if (!more()) return bad("a '\\' at its end");
    if (take("b")) return assertion(Regex::Assert::word_edge);
    if (take("B")) return assertion(Regex::Assert::no_word_edge);
    if (take("A")) return assertion(Regex::Assert::text_begin);
    if (take("z")) return assertion(Regex::Assert::text_end);
    if (auto r = perl_class(s_[at_])) {
      ++at_;
      return set_of(*std::move(r));
    }
    if (s_[at_] == 'p' || s_[at_] == 'P') {
      GE_TRY(Class c, category());
      return set_of(std::move(c));
    }
    GE_TRY(char32_t c, escape());
    return set_of(one(c));
  }

  // After '('.
  Made group(int depth) {
    Flags before = flags_;
    if (take("?P<") || take("?<")) {
      while (more() && s_[at_] != '>') ++at_;
      if (!take(">")) return bad("a name without end");
    } else if (take("?")) {
      bool on = true;
      for (; more() && s_[at_] != ':' && s_[at_] != ')'; ++at_) switch (s_[at_]) {
          case '-': on = false; break;
          case 'i': flags_.fold = on; break;
          case 's': flags_.dot_all = on; break;
          case 'm': flags_.lines = on; break;
          case 'U': break;  // which match is preferred
          default: return bad("an unknown flag");
        }
      if (take(")")) return std::unique_ptr<Node>();  // for the rest of the enclosing group
      take(":");
    }
    GE_TRY(auto n, choice(depth + 1));
    if (!take(")")) return bad("a '(' without ')'");
    flags_ = before;
    return n;
  }

  // At the 'p' of \pL, \p{Lu}, \p{^Lu}, \PL, \p{Greek}.
  Result<Class> category() {
    bool negated = s_[at_++] == 'P';
    std::string_view name = s_.substr(std::min(at_, s_.size()), 1);
    if (take("{")) {
      size_t end = s_.find('}', at_);
      if (end == std::string_view::npos) return bad("a '{' without '}'");
      name = s_.substr(at_, end - at_);
      at_ = end + 1;
    } else {
      at_ += name.size();
    }
    if (name.starts_with("^")) negated = !negated, name.remove_prefix(1);
    Ranges r = letters_of_category(name);
    if (r.empty()) r = letters_of_script(name);
    if (r.empty()) return bad(format("the class \"{}\" (general categories and scripts of Unicode are known)", name));
    return Class{std::move(r), negated};
  }

  // After '['.
  Made brackets() {
    bool negated = take("^");
    auto n = set_of(Ranges());
    for (bool first = true; first || !take("]"); first = false) {
      if (!more()) return bad("a '[' without ']'");
      if (take("[:")) {
        bool other = take("^");
        size_t end = s_.find(":]", at_);
        auto* named = end == std::string_view::npos ? nullptr : posix_class(s_.substr(at_, end - at_));
        if (!named) return bad("an unknown class");
        at_ = end + 2;
        add(n->set, {*named, other});
        continue;
      }
      if (s_[at_] == '\\' && at_ + 1 < s_.size())
        if (auto named = perl_class(s_[at_ + 1])) {
          at_ += 2;
          add(n->set, *std::move(named));
          continue;
        }
      if (s_[at_] == '\\' && at_ + 1 < s_.size() && (s_[at_ + 1] == 'p' || s_[at_ + 1] == 'P')) {
        ++at_;
        GE_TRY(Class named, category());
        add(n->set, std::move(named));
        continue;
      }
      GE_TRY(char32_t low, in_brackets());
      char32_t high = low;
      if (at_ + 1 < s_.size() && s_[at_] == '-' && s_[at_ + 1] != ']') {
        ++at_;
        GE_TRY(high, in_brackets());
      }
      if (high < low) return bad("a range that ends before it begins");
      n->set.ranges.push_back({low, high});
    }
    n->set.negated = negated;
    return n;
  }
  Result<char32_t> in_brackets() {
    if (take("\\")) return escape();
    return letter();
  }

  // After '\'.
  Result<char32_t> escape() {
    if (!more()) return bad("a '\\' at its end");
    char c = s_[at_];
    for (auto [name, value] : {std::pair{'a', 7}, {'f', 12}, {'t', 9}, {'n', 10}, {'r', 13}, {'v', 11}})
      if (c == name) return ++at_, static_cast<char32_t>(value);
    if (c == 'x') return ++at_, hexadecimal();
    if (c == '0' || (c >= '1' && c <= '7' && at_ + 1 < s_.size() && s_[at_ + 1] >= '0' && s_[at_ + 1] <= '7')) {
      char32_t v = 0;
      for (int i = 0; i < 3 && more() && s_[at_] >= '0' && s_[at_] <= '7'; ++i) v = v * 8 + static_cast<char32_t>(s_[at_++] - '0');
      return v;
    }
    bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (word || static_cast<unsigned char>(c) >= 128) return bad("an unknown escape");
    return letter();
  }
  Result<char32_t> hexadecimal() {
    bool braces = take("{");
    char32_t v = 0;
    int digits = 0;
    for (; more() && digits < (braces ? 8 : 2); ++digits, ++at_) {
      char c = s_[at_], low = static_cast<char>(c | 0x20);
      if (c >= '0' && c <= '9') v = v * 16 + static_cast<char32_t>(c - '0');
      else if (low >= 'a' && low <= 'f') v = v * 16 + static_cast<char32_t>(low - 'a' + 10);
      else break;
    }
    if (!digits || (!braces && digits != 2) || (braces && !take("}")) || v > kLast) return bad("a wrong number of a letter");
    return v;
  }

  // The next letter; a byte that is no UTF-8 stands for none.
  char32_t letter() {
    Letter l = letter_at(s_, at_);
    bool none = !l.code && s_[at_] != 0;
    at_ += l.bytes;
    return none ? kLast + 1 : l.code;
  }
  static Ranges one(char32_t c) { return {{c, c}}; }

  std::string_view s_;
  size_t at_ = 0;
  Flags flags_;
};

}  // namespace

Result<std::unique_ptr<RegexNode>> parse_regex(std::string_view pattern) { return Parser(pattern).all(); }

}  // namespace ge::kernels::reference
