// Verdict: "yes", or "not here" with a sentence. A non-match is not an error; never a bare bool.
#pragma once

#include <string>
#include <utility>

namespace ge {

struct [[nodiscard]] Verdict {
  bool holds = true;
  std::string why;   // a sentence, when it does not hold
  std::string help;  // what would help, or empty
  std::string node;  // the node that stands in the way, where it is another one than the place that was tried
  explicit operator bool() const { return holds; }
};

inline Verdict yes() { return {}; }
inline Verdict no(std::string why, std::string help = "", std::string node = "") {
  return {false, std::move(why), std::move(help), std::move(node)};
}

}  // namespace ge
