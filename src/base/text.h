// Text formatting: fmt's light header; its body is compiled once, in text.cc.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

namespace ge {

template <class... A>
std::string format(fmt::format_string<A...> f, A&&... a) {
  return fmt::vformat(f, fmt::make_format_args(a...));
}

std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
// Levenshtein distance; the nearest of names within a third of the word's length, or "".
size_t edit_distance(std::string_view a, std::string_view b);
std::string nearest(std::string_view word, const std::vector<std::string>& names);
// 12345678 -> "11.8 MiB".
std::string bytes_text(double bytes);
std::string quote(std::string_view s);  // JSON-like, ASCII escapes

}  // namespace ge
