// What operators on text do with one string of UTF-8.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ge::kernels::reference {

struct Letter {
  char32_t code = 0;   // 0 with another byte than 0: there is no UTF-8, and this is one byte
  size_t bytes = 1;
};
Letter letter_at(std::string_view s, size_t at);

// The pieces between the delimiters, or with none between runs of white space. At most `most` cuts, from the left;
// negative: any number.
std::vector<std::string> split_text(std::string_view s, std::string_view delimiter, int64_t most);

enum class Case : uint8_t { keep, lower, upper };
char32_t letter_in_case(char32_t c, Case to);
// Letter by letter; bytes that are no UTF-8 stay.
std::string change_case(std::string_view s, Case to);

// A number in decimal, as short as it can be told from its neighbours: 1e-05, 0.25, 3, inf, nan.
std::string number_text(float x);
std::string number_text(double x);
// The same as Cast writes it: INF, -INF and NaN.
template <class T>
std::string cast_text(T x) {
  if (std::isnan(x)) return "NaN";
  return std::isinf(x) ? x < 0 ? "-INF" : "INF" : number_text(x);
}
// The number that the whole text writes in decimal, "inf" and "nan" in any case included.
std::optional<double> text_number(std::string_view s);
std::optional<int64_t> text_integer(std::string_view s);

}  // namespace ge::kernels::reference
