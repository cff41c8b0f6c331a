// Branch and bound over canonical plans of one part. Private to the folder.
#pragma once

#include <cstdint>

#include "arena/portfolio.h"

namespace ge::arena {

enum class Outcome : uint8_t {
  reached,  // the arena is at most the target
  optimal,  // no plan of this part is smaller than the one kept
  gave_up,  // the budget is spent, or the part is too large for the method
};

// Shrinks the part's plan. Counts a step for each neighbour looked at. Where the target is wanted,
// an arena above it is of little use: nearly all of the budget goes into reaching it.
Outcome search_part(Part& part, int64_t target, bool wanted, int64_t budget, int64_t& steps);

}  // namespace ge::arena
