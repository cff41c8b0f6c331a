#include "kernels/reference/text.h"

#include <clocale>
#include <cwctype>
#include <locale.h>

#include <charconv>

namespace ge::kernels::reference {
namespace {

void append(std::string& s, char32_t c) {
  if (c < 0x80) {
    s += static_cast<char>(c);
    return;
  }
  int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  s += static_cast<char>((0xF0u << (3 - more) & 0xFFu) | c >> (6 * more));
  while (more--) s += static_cast<char>(0x80u | (c >> (6 * more) & 0x3Fu));
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// The C library's letters of all scripts; the program's own locale stays as it is.
locale_t letters() {
  static locale_t l = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return l;
}

std::vector<std::string> split_at_space(std::string_view s, int64_t most) {
  std::vector<std::string> out;
  size_t at = 0;
  auto skip = [&](bool space) {
    while (at < s.size()) {
      Letter l = letter_at(s, at);
      if (is_space(l.code) != space) return;
      at += l.bytes;
    }
  };
  for (skip(true); at < s.size(); skip(true)) {
    if (most >= 0 && static_cast<int64_t>(out.size()) == most) {
      out.emplace_back(s.substr(at));
      break;
    }
    size_t begin = at;
    skip(false);
    out.emplace_back(s.substr(begin, at - begin));
  }
  return out;
}

template <typename T>
std::string shortest(T x) {
  char text[64];
  auto end = std::to_chars(text, text + sizeof text, x).ptr;
  return {text, end};
}

}  // namespace

Letter letter_at(std::string_view s, size_t at) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(s[at + i]); };
  unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  size_t n = first >= 0xF0 && first < 0xF8 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (!n || first >= 0xF8 || at + n > s.size()) return {};
  char32_t code = first & (0x7Fu >> n);
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  bool valid = code <= 0x10FFFF && (n < 3 || code >= 0x800) && (n < 4 || code >= 0x10000) && (code < 0xD800 || code > 0xDFFF);
  return valid ? Letter{code, n} : Letter{};
}

std::vector<std::string> split_text(std::string_view s, std::string_view delimiter, int64_t most) {
  if (delimiter.empty()) return split_at_space(s, most);
  std::vector<std::string> out;
  while (most < 0 || static_cast<int64_t>(out.size()) < most) {
    size_t at = s.find(delimiter);
    if (at == std::string_view::npos) break;
    out.emplace_back(s.substr(0, at));
    s.remove_prefix(at + delimiter.size());
  }
  out.emplace_back(s);
  return out;
}

char32_t letter_in_case(char32_t c, Case to) {
  if (to == Case::keep || c > 0x10FFFF) return c;
  if (c >= 0x80) {
    auto l = letters();
    auto w = static_cast<wint_t>(c);
    return l ? static_cast<char32_t>(to == Case::lower ? towlower_l(w, l) : towupper_l(w, l)) : c;
  }
  bool change = to == Case::lower ? c >= 'A' && c <= 'Z' : c >= 'a' && c <= 'z';
  return change ? c ^ 0x20 : c;
}

std::string change_case(std::string_view s, Case to) {
  std::string out;
  out.reserve(s.size());
  for (size_t at = 0; at < s.size();) {
    Letter l = letter_at(s, at);
    if (l.code) append(out, letter_in_case(l.code, to));
    else out += s[at];
    at += l.bytes;
  }
  return out;
}

std::string number_text(float x) { return shortest(x); }
std::string number_text(double x) { return shortest(x); }

std::optional<double> text_number(std::string_view s) {
  if (!s.empty() && s[0] == '+') s.remove_prefix(1);
  if (!s.empty() && s[0] == '+') return std::nullopt;
  double x = 0;
  auto [end, e] = std::from_chars(s.data(), s.data() + s.size(), x);
  if (end != s.data() + s.size() || s.empty()) return std::nullopt;
  if (e == std::errc::result_out_of_range) return std::strtod(std::string(s).c_str(), nullptr);  // 0 or infinity
  return e == std::errc() ? std::optional(x) : std::nullopt;
}

std::optional<int64_t> text_integer(std::string_view s) {
  if (s.size() > 1 && s[0] == '+' && s[1] != '-') s.remove_prefix(1);
  int64_t x = 0;
  auto [end, e] = std::from_chars(s.data(), s.data() + s.size(), x);
  return e == std::errc() && end == s.data() + s.size() && !s.empty() ? std::optional(x) : std::nullopt;
}

}  // namespace ge::kernels::reference
