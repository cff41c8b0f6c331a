#include "base/result.h"

#include <cstdio>

namespace ge {

std::string Error::text() const {
  std::string t = code + ": " + message;
  if (!node.empty()) t += " [node " + node + "]";
  if (!cause.empty()) t += "\n  Possible Cause: " + cause;
  if (!fix.empty()) t += "\n  Solution: " + fix;
  for (auto& c : context) t += "\n  in " + c;
  return t;
}

Error error(std::string_view code, std::string message, std::string cause, std::string fix) {
  return {std::string(code), std::move(message), "", std::move(cause), std::move(fix), {}};
}

Error node_error(std::string_view code, std::string_view node, std::string message, std::string cause,
                 std::string fix) {
  return {std::string(code), std::move(message), std::string(node), std::move(cause), std::move(fix), {}};
}

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "%s:%d: internal check failed: %s: %s\n", file, line, condition, message.c_str());
  std::abort();
}

}  // namespace ge
