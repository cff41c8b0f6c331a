// Conditions over sizes: what their ranges, or gears, say of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "tensor/dim_range.h"

namespace ge::ops {

// What the condition is for all sizes that the graph allows, when it is the same for all.
std::optional<bool> decided(const ir::Graph& g, const Dim& condition);

// The sizes for which it holds, and those for which it does not, in words.
struct Sides {
  std::string holds, fails;
};
Sides sides_of(const ir::Graph& g, const Dim& condition);

// The range of its only symbol where it holds, or where it does not: the smallest that has all of it.
struct Narrowed {
  std::string symbol;
  DimRange range;
};
std::optional<Narrowed> narrowed(const ir::Graph& g, const Dim& condition, bool holds);

}  // namespace ge::ops
