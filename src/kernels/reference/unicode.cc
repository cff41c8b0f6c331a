#include "kernels/reference/unicode.h"

#include <algorithm>

namespace ge::kernels::reference {
namespace {

struct Run {
  char32_t first;
  uint8_t kind;
};
constexpr Run kRuns[] = {
#include "kernels/reference/unicode_categories.inc"
};
constexpr std::string_view kNames[] = {"Cc", "Cf", "Cn", "Co", "Cs", "Ll", "Lm", "Lo", "Lt", "Lu", "Mc", "Me", "Mn", "Nd", "Nl",
                                       "No", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So", "Zl", "Zp", "Zs"};
#include "kernels/reference/unicode_scripts.inc"
constexpr char32_t kLast = 0x10FFFF;

}  // namespace

std::vector<std::pair<char32_t, char32_t>> letters_of_category(std::string_view name) {
  std::vector<std::pair<char32_t, char32_t>> out;
  if (name == "Any") return {{0, kLast}};
  if (name.empty() || name.size() > 2) return out;
  for (size_t i = 0; i < std::size(kRuns); ++i) {
    std::string_view category = kNames[kRuns[i].kind];
    // What no letter is assigned to belongs to no category.
    if (category == "Cn" || !category.starts_with(name)) continue;
    char32_t last = i + 1 < std::size(kRuns) ? kRuns[i + 1].first - 1 : kLast;
    if (!out.empty() && out.back().second + 1 == kRuns[i].first) out.back().second = last;
    else out.push_back({kRuns[i].first, last});
  }
  return out;
}

std::vector<std::pair<char32_t, char32_t>> letters_of_script(std::string_view name) {
  std::vector<std::pair<char32_t, char32_t>> out;
  // Number 0 is "Unknown", which is no script.
  size_t script = std::find(std::begin(kScripts) + 1, std::end(kScripts), name) - std::begin(kScripts);
  for (size_t i = 0; script < std::size(kScripts) && i < std::size(kScriptRuns); ++i)
    if (kScriptRuns[i].kind == script) out.push_back({kScriptRuns[i].first, i + 1 < std::size(kScriptRuns) ? kScriptRuns[i + 1].first - 1 : kLast});
  return out;
}

}  // namespace ge::kernels::reference
