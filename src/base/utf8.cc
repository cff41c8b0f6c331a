#include "base/utf8.h"

#include <cstdint>

namespace ge {

bool is_utf8(std::string_view s) {
  for (size_t i = 0; i < s.size();) {
    auto c = static_cast<uint8_t>(s[i]);
    size_t n = c < 0x80                ? 1
               : c >= 0xc2 && c < 0xe0 ? 2
               : (c & 0xf0) == 0xe0    ? 3
               : c >= 0xf0 && c < 0xf5 ? 4
                                       : 0;
    if (n == 0 || i + n > s.size()) return false;
    for (size_t k = 1; k < n; ++k)
      if ((static_cast<uint8_t>(s[i + k]) & 0xc0) != 0x80) return false;
    if (n > 2) {
      auto d = static_cast<uint8_t>(s[i + 1]);
      if ((c == 0xe0 && d < 0xa0) || (c == 0xed && d > 0x9f) || (c == 0xf0 && d < 0x90) ||
          (c == 0xf4 && d > 0x8f))
        return false;
    }
    i += n;
  }
  return true;
}

}  // namespace ge
