// Outputs that are made with others, asked for or not.
#pragma once

#include "ops/op.h"

namespace ge::ops {

// Gives output 0 a value where the model wants only later ones: an upgrade hook of operators that always make it.
Status with_first_output(UpgradeContext& c);

}  // namespace ge::ops
