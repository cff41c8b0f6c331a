// Whether bytes are text.
#pragma once

#include <string_view>

namespace ge {

bool is_utf8(std::string_view s);

}  // namespace ge
