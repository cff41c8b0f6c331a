// Reads planning problems. Every line is answered for: a damaged one is named by its number.
#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_map>

#include "arena/arena.h"
#include "base/text.h"
#include "base/utf8.h"

namespace ge::arena {
namespace {

enum Column { kId, kLower, kUpper, kSize, kAlignment, kColumns };
constexpr const char* kNames[kColumns] = {"id", "lower", "upper", "size", "alignment"};
constexpr int64_t kMaxAlignment = int64_t{1} << 30;
constexpr int64_t kMaxTotal = int64_t{1} << 60;  // whatever the planner adds up stays in 64 bits

struct Row {
  std::string id;
  int64_t lower, upper, size, alignment;
};

Error bad_line(size_t line, std::string why) {
  return error(code::kParse, format("the problem cannot be read: line {}: {}", line, why), "",
               "give lines of id,lower,upper,size under a line with these names");
}

bool number(std::string_view text, int64_t& out) {
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failed == std::errc() && end == text.data() + text.size();
}

class Reader {
 public:
  Status read(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    while (!text.empty()) {
      size_t end = std::min(text.find('\n'), text.size());
      std::string_view row = trim(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      ++line_;
      if (row.empty()) continue;
      cells_ = split(row, ',');
      for (std::string& cell : cells_) cell = std::string(trim(cell));
      GE_RETURN_IF_ERROR(headed_ ? read_row() : read_header());
    }
    if (!headed_) return bad_line(std::max<size_t>(line_, 1), "the file is empty");
    return ok();
  }
  std::vector<Row> rows;

 private:
  Status read_header() {
    headed_ = true;
    for (int c = 0; c < kColumns; ++c) {
      auto at = std::find(cells_.begin(), cells_.end(), kNames[c]);
      if (at == cells_.end() && c != kAlignment)
        return bad_line(line_, format("no column '{}'", kNames[c]));
      if (at != cells_.end() && std::find(at + 1, cells_.end(), kNames[c]) != cells_.end())
        return bad_line(line_, format("two columns '{}'", kNames[c]));
      column_[c] = at == cells_.end() ? -1 : static_cast<int>(at - cells_.begin());
    }
    return ok();
  }

  Status read_row() {
    int64_t value[kColumns] = {0, 0, 0, 0, 1};
    for (int c = 0; c < kColumns; ++c) {
      if (column_[c] < 0) continue;
      if (column_[c] >= static_cast<int>(cells_.size()))
        return bad_line(line_, format("no '{}'", kNames[c]));
      const std::string& cell = cells_[static_cast<size_t>(column_[c])];
      if (c != kId && !number(cell, value[c]))
        return bad_line(line_, format("'{}' is not an integer of 64 bits: '{}'", kNames[c], cell));
    }
    if (value[kLower] < 0)
      return bad_line(line_, format("the lifetime begins before 0: {}", value[kLower]));
    if (value[kLower] >= value[kUpper])
      return bad_line(line_,
                      format("the lifetime [{}, {}) is empty: 'lower' has to be below 'upper'",
                             value[kLower], value[kUpper]));
    if (value[kSize] < 0) return bad_line(line_, format("the size is negative: {}", value[kSize]));
    if (value[kSize] > kMaxTotal - total_)
      return bad_line(line_, format("the size {} takes the sum of all above 2^60", value[kSize]));
    if (value[kAlignment] < 1 || value[kAlignment] > kMaxAlignment)
      return bad_line(line_, format("the alignment {} is not from 1 to {}", value[kAlignment],
                                    kMaxAlignment));
    if (!is_utf8(cells_[static_cast<size_t>(column_[kId])])) return bad_line(line_, "the id is not UTF-8");
    total_ += value[kSize];
    auto [first, fresh] = seen_.emplace(cells_[static_cast<size_t>(column_[kId])], line_);
    if (!fresh)
      return bad_line(
          line_, format("the id '{}' is that of line {} too", first->first, first->second));
    rows.push_back(
        {first->first, value[kLower], value[kUpper], value[kSize], value[kAlignment]});
    return ok();
  }

  int column_[kColumns] = {-1, -1, -1, -1, -1};
  std::vector<std::string> cells_;
  std::unordered_map<std::string, size_t> seen_;  // line of each id
  size_t line_ = 0;
  bool headed_ = false;
  int64_t total_ = 0;
};

// Times in any unit: only their order matters, so those that pass 32 bits are numbered.
std::vector<int64_t> numbered_times(const std::vector<Row>& rows) {
  std::vector<int64_t> times;
  for (const Row& r : rows) times.insert(times.end(), {r.lower, r.upper});
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  if (times.empty() || times.back() <= std::numeric_limits<int32_t>::max()) return {};
  return times;
}

}  // namespace

Result<Problem> read_csv(std::string_view text) {
  Reader reader;
  GE_RETURN_IF_ERROR(reader.read(text));
  std::vector<int64_t> times = numbered_times(reader.rows);
  auto time = [&](int64_t t) {
    if (!times.empty()) t = std::lower_bound(times.begin(), times.end(), t) - times.begin();
    return static_cast<int32_t>(t);
  };
  Problem out;
  for (Row& r : reader.rows) {
    out.intervals.push_back({time(r.lower), time(r.upper) - 1, r.size, r.alignment, -1});
    out.ids.push_back(std::move(r.id));
  }
  return out;
}

}  // namespace ge::arena
