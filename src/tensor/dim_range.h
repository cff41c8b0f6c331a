// What an expression over sizes can be, given what its symbols can be; and where a condition over sizes holds.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dim.h"

namespace ge {

// From min to max; INT64_MIN and INT64_MAX stand for no limit.
struct DimRange {
  int64_t min = 0, max = INT64_MAX;
  bool operator==(const DimRange&) const = default;
};
using RangeLookup = std::function<DimRange(std::string_view symbol)>;

// Every value that d takes lies in it.
DimRange range_of(const Dim& d, const RangeLookup& ranges);
// The symbols of d, each once.
std::vector<std::string> symbols_of(const Dim& d);

// Ranges of the one symbol of `condition` (0 or 1) in ascending order, and whether it holds there; neighbours differ.
// None where there are more than one symbol, or where it changes too often to say.
struct Piece {
  DimRange range;
  bool holds = false;
};
std::optional<std::vector<Piece>> pieces_of(const Dim& condition, const DimRange& range);

// "n >= 11", "n <= 3 or n = 7 to 9"; of the pieces that hold, or of those that do not.
std::string text(const std::vector<Piece>& pieces, bool holds, std::string_view symbol);
// A condition as people write it: "10 < n", "n <= 2*m"; its opposite.
std::string condition_text(const Dim& condition, bool holds);

}  // namespace ge
