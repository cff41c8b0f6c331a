// Unicode's general categories and scripts.
#pragma once

#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

namespace ge::kernels::reference {

// The letters of a category ("Lu"), of a group of them ("L") or "Any", as ranges; none for another name.
std::vector<std::pair<char32_t, char32_t>> letters_of_category(std::string_view name);
// The letters of a script ("Greek"), as ranges; none for another name.
std::vector<std::pair<char32_t, char32_t>> letters_of_script(std::string_view name);

}  // namespace ge::kernels::reference
