#include "base/text.h"

#include <fmt/format-inl.h>

#include <algorithm>

FMT_BEGIN_NAMESPACE
template FMT_API auto detail::locale_ref::get<std::locale>() const -> std::locale;
template FMT_API auto detail::thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto detail::decimal_point_impl(locale_ref) -> char;
template FMT_API void detail::buffer<char>::append(const char*, const char*);
template FMT_API void detail::vformat_to(detail::buffer<char>&, string_view,
                                         basic_format_args<FMT_BUFFER_CONTEXT(char)>, detail::locale_ref);
FMT_END_NAMESPACE

namespace ge {

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i) out += separator;
    out += parts[i];
  }
  return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || text[i] == separator) {
      out.emplace_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  return out;
}

std::string_view trim(std::string_view s) {
  const char* space = " \t\r\n";
  size_t a = s.find_first_not_of(space);
  if (a == std::string_view::npos) return {};
  return s.substr(a, s.find_last_not_of(space) - a + 1);
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t up = row[j];
      row[j] = std::min({up + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = up;
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  std::string best;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (auto& n : names) {
    size_t d = edit_distance(word, n);
    if (d < best_distance) best = n, best_distance = d;
  }
  return best;
}

std::string bytes_text(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int u = 0;
  while (bytes >= 1024 && u < 4) bytes /= 1024, ++u;
  return u == 0 ? format("{} B", static_cast<int64_t>(bytes)) : format("{:.1f} {}", bytes, units[u]);
}

std::string quote(std::string_view s) {
  std::string out = "\"";
  for (char ch : s) {
    unsigned char c = static_cast<unsigned char>(ch);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += ch;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c < 32 || c == 127) {
      out += format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += ch;
    }
  }
  return out + "\"";
}

}  // namespace ge
