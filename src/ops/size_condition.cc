#include "ops/size_condition.h"

#include <algorithm>

#include "base/text.h"

namespace ge::ops {
namespace {

DimRange range_in(const ir::Graph& g, std::string_view symbol) {
  auto it = g.symbols.find(symbol);
  return it == g.symbols.end() ? DimRange{} : DimRange{it->second.min, it->second.max};
}

// For each gear whether it holds; none when gears do not give all of its sizes.
std::optional<std::vector<bool>> by_gear(const ir::Graph& g, const Dim& condition) {
  auto& names = g.gears.symbols;
  for (auto& s : symbols_of(condition))
    if (std::find(names.begin(), names.end(), s) == names.end()) return std::nullopt;
  std::vector<bool> out;
  for (auto& gear : g.gears.sizes) {
    auto value = condition.eval([&](std::string_view s) -> std::optional<int64_t> {
      auto it = std::find(names.begin(), names.end(), s);
      return it == names.end() ? std::nullopt : std::optional(gear[static_cast<size_t>(it - names.begin())]);
    });
    if (!value.ok()) return std::nullopt;
    out.push_back(*value != 0);
  }
  if (out.empty()) return std::nullopt;
  return out;
}

std::optional<std::vector<Piece>> by_range(const ir::Graph& g, const Dim& condition) {
  auto names = symbols_of(condition);
  if (names.size() != 1) return std::nullopt;
  return pieces_of(condition, range_in(g, names[0]));
}

}  // namespace

std::optional<bool> decided(const ir::Graph& g, const Dim& condition) {
  if (condition.known()) return condition.value() != 0;
  if (auto gears = by_gear(g, condition)) {
    if (std::adjacent_find(gears->begin(), gears->end(), std::not_equal_to<>()) == gears->end()) return gears->front();
    return std::nullopt;
  }
  auto range = range_of(condition, [&](std::string_view s) { return range_in(g, s); });
  if (range.min > 0 || range.max < 0) return true;
  if (range.min == 0 && range.max == 0) return false;
  auto pieces = by_range(g, condition);
  if (pieces && pieces->size() == 1) return pieces->front().holds;
  return std::nullopt;
}

Sides sides_of(const ir::Graph& g, const Dim& condition) {
  if (auto gears = by_gear(g, condition)) {
    std::vector<std::string> yes, no;
    for (size_t i = 0; i < gears->size(); ++i) {
      std::vector<std::string> sizes;
      for (auto n : g.gears.sizes[i]) sizes.push_back(format("{}", n));
      ((*gears)[i] ? yes : no).push_back(join(sizes, ","));
    }
    auto said = [&](auto& list) { return list.empty() ? std::string("none") : format("gears ({}) {}", join(g.gears.symbols, ","), join(list, "; ")); };
    return {said(yes), said(no)};
  }
  if (auto pieces = by_range(g, condition)) {
    auto symbol = symbols_of(condition)[0];
    return {text(*pieces, true, symbol), text(*pieces, false, symbol)};
  }
  return {condition_text(condition, true), condition_text(condition, false)};
}

std::optional<Narrowed> narrowed(const ir::Graph& g, const Dim& condition, bool holds) {
  auto pieces = by_range(g, condition);
  if (!pieces) return std::nullopt;
  std::optional<DimRange> hull;
  for (auto& p : *pieces)
    if (p.holds == holds) hull = hull ? DimRange{hull->min, p.range.max} : p.range;
  if (!hull) return std::nullopt;
  return Narrowed{symbols_of(condition)[0], *hull};
}

}  // namespace ge::ops
