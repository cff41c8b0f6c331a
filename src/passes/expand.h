// The part of the pass "expand" that the reference path needs too.
#pragma once

#include "ir/graph.h"

namespace ge::passes {

// Writes operators that have no kernel of their own as those that say the same, until none is left whose types are
// known. Infers types before and after.
Status spell_out(ir::Graph& g);

}  // namespace ge::passes
