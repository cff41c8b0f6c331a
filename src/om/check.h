// Proves what can be proved of a Package before sizes are known: every index names something, kernels
// are known, expressions read earlier ones only, tables are not null. What depends on sizes (each view
// inside its buffer, parameters that kernels accept) is proved again for each Binding.
#pragma once

#include "om/program.h"

namespace ge::om {

Status check(const Package& p);

}  // namespace ge::om
