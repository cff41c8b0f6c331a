// Verdict: "yes", or "not here" with a sentence. A non-match is not an error; never a bare bool.
#pragma once

#include <string>
#include <utility>

namespace ge {

struct [[nodiscard]] Verdict {
  bool holds = true;
  std::string why;   // a sentence, when it does not hold
  std::string help;  // what would help, or empty
  explicit operator bool() const { return holds; }
};

inline Verdict yes() { return {}; }
inline Verdict no(std::string why, std::string help = "") { return {false, std::move(why), std::move(help)}; }

}  // namespace ge
