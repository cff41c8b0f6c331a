// Matrices of two values, one up to a diagonal, the other beyond it: what causal masks are, however they are
// computed (Trilu, comparisons, Where, arithmetic with numbers, slices of a constant).
#pragma once

#include <optional>

#include "ir/graph.h"

namespace ge::passes {

// Element (i, j) of the last two axes is `in` where j <= i + offset, else `out`; other axes repeat it.
// in == out: one value everywhere, of any shape.
struct Banded {
  double in = 0, out = 0;
  Dim offset;
  bool uniform() const { return in == out; }
};

std::optional<Banded> banded(const ir::Graph& g, ir::ValueId v);

}  // namespace ge::passes
