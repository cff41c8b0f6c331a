#include "tensor/dim_range.h"

#include <algorithm>

#include "base/text.h"

namespace ge {
namespace {

constexpr int64_t kLow = INT64_MIN, kHigh = INT64_MAX;
constexpr size_t kMostPieces = 16;
constexpr int kMostSteps = 4096;

int64_t clamped(__int128 v) { return v <= kLow ? kLow : v >= kHigh ? kHigh : static_cast<int64_t>(v); }
// The end of a range: what has no limit keeps none.
int64_t sum(int64_t a, int64_t b) { return a == kLow || b == kLow ? kLow : a == kHigh || b == kHigh ? kHigh : clamped(__int128(a) + b); }
int64_t times(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  bool open = a == kLow || a == kHigh || b == kLow || b == kHigh;
  return open ? ((a < 0) == (b < 0) ? kHigh : kLow) : clamped(__int128(a) * b);
}
DimRange operator+(const DimRange& a, const DimRange& b) {
  bool low = a.min == kLow || b.min == kLow, high = a.max == kHigh || b.max == kHigh;
  return {low ? kLow : sum(a.min, b.min), high ? kHigh : sum(a.max, b.max)};
}
DimRange operator*(const DimRange& a, const DimRange& b) {
  auto [low, high] = std::minmax({times(a.min, b.min), times(a.min, b.max), times(a.max, b.min), times(a.max, b.max)});
  return {low, high};
}
int64_t quotient(int64_t a, int64_t b) {
  if (a == kLow || a == kHigh) return a;
  if (b == kHigh) return a < 0 ? -1 : 0;
  return a / b - (a % b != 0 && a < 0);
}

DimRange range_of_call(const Dim::Atom& atom, const RangeLookup& ranges) {
  auto arg = [&](size_t i) { return range_of(atom.args[i], ranges); };
  // Differences first: what both sides share falls out.
  auto difference = [&] { return range_of(atom.args[1] - atom.args[0], ranges); };
  switch (atom.call) {
    case DimCall::less: {
      auto d = difference();
      return {d.min > 0, d.max > 0};
    }
    case DimCall::equal: {
      auto d = difference();
      return {d.min == 0 && d.max == 0, d.min <= 0 && d.max >= 0};
    }
    case DimCall::floordiv: {
      auto a = arg(0), b = arg(1);
      if (b.min <= 0) return {kLow, kHigh};
      return {quotient(a.min, a.min < 0 ? b.min : b.max), quotient(a.max, a.max < 0 ? b.max : b.min)};
    }
    case DimCall::mod: {
      auto a = arg(0), b = arg(1);
      if (b.min <= 0) return {kLow, kHigh};
      if (a.min >= 0 && a.max < b.min) return a;
      return {0, std::min(a.min >= 0 ? a.max : kHigh, b.max == kHigh ? kHigh : b.max - 1)};
    }
    case DimCall::max: {
      auto a = arg(0), b = arg(1);
      return {std::max(a.min, b.min), std::max(a.max, b.max)};
    }
    case DimCall::min: {
      auto a = arg(0), b = arg(1);
      return {std::min(a.min, b.min), std::min(a.max, b.max)};
    }
    case DimCall::broadcast: {
      auto a = arg(0), b = arg(1);
      return {std::min(a.min, b.min), std::max(a.max, b.max)};
    }
    case DimCall::select: {
      auto c = arg(0), a = arg(1), b = arg(2);
      if (c.min > 0 || c.max < 0) return a;
      if (c.min == 0 && c.max == 0) return b;
      return {std::min(a.min, b.min), std::max(a.max, b.max)};
    }
    case DimCall::scaled: {
      auto a = arg(0), scale = arg(1);
      auto bound = [&](int64_t size, int64_t open) { return size == kLow || size == kHigh ? open : scaled_size(size, scale.min).value_or(open); };
      return {bound(a.min, kLow), bound(a.max, kHigh)};
    }
    case DimCall::overflow: break;
  }
  return {kLow, kHigh};
}

// Splits the range until each part is decided; false when there would be too many.
bool split(const Dim& condition, DimRange range, std::vector<Piece>& out, int& steps) {
  if (++steps > kMostSteps) return false;
  auto is = range_of(condition, [&](std::string_view) { return range; });
  if (range.min == range.max) {
    auto value = condition.eval([&](std::string_view) { return range.min; });
    if (!value.ok()) return false;
    is = {*value, *value};
  }
  if (is.min > 0 || is.max <= 0) {
    bool holds = is.min > 0;
    if (!out.empty() && out.back().holds == holds) out.back().range.max = range.max;
    else out.push_back({range, holds});
    return out.size() <= kMostPieces;
  }
  if (range.min >= range.max) return false;
  int64_t middle = range.max == kHigh ? (range.min < (int64_t(1) << 40) ? 2 * range.min + 16 : kHigh) : range.min + (range.max - range.min) / 2;
  if (middle == kHigh) return false;
  return split(condition, {range.min, middle}, out, steps) && split(condition, {middle + 1, range.max}, out, steps);
}

std::string text_of(const DimRange& r, std::string_view symbol, bool first, bool last) {
  if (r.min == r.max) return format("{} = {}", symbol, r.min);
  if (last) return first ? format("every {}", symbol) : format("{} >= {}", symbol, r.min);
  if (first) return format("{} <= {}", symbol, r.max);
  return format("{} = {} to {}", symbol, r.min, r.max);
}

}  // namespace

DimRange range_of(const Dim& d, const RangeLookup& ranges) {
  DimRange all{0, 0};
  for (auto& term : d.terms()) {
    DimRange one{1, 1};
    for (auto& atom : term.atoms) one = one * (atom->symbol.empty() ? range_of_call(*atom, ranges) : ranges(atom->symbol));
    all = all + one * DimRange{term.coefficient, term.coefficient};
  }
  return all;
}

std::vector<std::string> symbols_of(const Dim& d) {
  std::vector<std::string> names;
  d.symbols(names);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::optional<std::vector<Piece>> pieces_of(const Dim& condition, const DimRange& range) {
  if (symbols_of(condition).size() != 1 || range.min > range.max) return std::nullopt;
  std::vector<Piece> out;
  int steps = 0;
  if (!split(condition, range, out, steps)) return std::nullopt;
  return out;
}

std::string text(const std::vector<Piece>& pieces, bool holds, std::string_view symbol) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < pieces.size(); ++i)
    if (pieces[i].holds == holds) parts.push_back(text_of(pieces[i].range, symbol, i == 0, i + 1 == pieces.size()));
  return parts.empty() ? "none" : join(parts, " or ");
}

std::string condition_text(const Dim& condition, bool holds) {
  const Dim complement = Dim(1) - condition;
  auto* atom = condition.as_call();
  if (!atom && (atom = complement.as_call())) holds = !holds;
  if (atom && (atom->call == DimCall::less || atom->call == DimCall::equal)) {
    bool less = atom->call == DimCall::less;
    return format("{} {} {}", atom->args[0].text(), less ? (holds ? "<" : ">=") : (holds ? "=" : "!="), atom->args[1].text());
  }
  return format("{} is {}", condition.text(), holds ? "true" : "false");
}

}  // namespace ge
