// Reads planning problems. Every line is answered for: a damaged one is named by its number.
#include <algorithm>
#include <charconv>
#include <limits>

#include "arena/arena.h"
#include "base/text.h"

namespace ge::arena {
namespace {

constexpr const char* kColumns[] = {"id", "lower", "upper", "size"};

Error bad_line(size_t line, std::string why) {
  return error(code::kParse, format("the problem cannot be read: line {}: {}", line, why), "",
               "give lines of id,lower,upper,size under a line with these names");
}

bool number(std::string_view text, int64_t& out) {
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failed == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<Problem> read_csv(std::string_view text) {
  Problem out;
  int column[4] = {-1, -1, -1, -1};
  size_t line = 0;
  bool headed = false;
  constexpr int64_t kMaxTotal = int64_t{1} << 60;  // whatever the planner adds up stays in 64 bits
  int64_t total = 0;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view row = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line;
    if (row.empty()) continue;
    std::vector<std::string> cells = split(row, ',');
    for (std::string& cell : cells) cell = std::string(trim(cell));
    if (!headed) {
      headed = true;
      for (int c = 0; c < 4; ++c) {
        auto at = std::find(cells.begin(), cells.end(), kColumns[c]);
        if (at == cells.end()) return bad_line(line, format("no column '{}'", kColumns[c]));
        column[c] = static_cast<int>(at - cells.begin());
      }
      continue;
    }
    int64_t value[4] = {0, 0, 0, 0};
    for (int c = 0; c < 4; ++c) {
      if (column[c] >= static_cast<int>(cells.size()))
        return bad_line(line, format("no '{}'", kColumns[c]));
      if (c > 0 && !number(cells[column[c]], value[c]))
        return bad_line(line,
                        format("'{}' is not an integer: '{}'", kColumns[c], cells[column[c]]));
    }
    constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
    if (value[1] < 0 || value[1] >= value[2] || value[2] > kMax)
      return bad_line(line,
                      format("the lifetime [{}, {}) is empty or out of range", value[1], value[2]));
    if (value[3] < 0 || value[3] > kMaxTotal - total)
      return bad_line(
          line,
          format("the size {} is negative or makes the sum of all sizes too large", value[3]));
    total += value[3];
    out.ids.push_back(cells[column[0]]);
    out.intervals.push_back(
        {static_cast<int32_t>(value[1]), static_cast<int32_t>(value[2] - 1), value[3], 1, -1});
  }
  if (!headed) return bad_line(line, "the file is empty");
  return out;
}

}  // namespace ge::arena
