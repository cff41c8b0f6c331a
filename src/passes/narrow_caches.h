// States that are stored in another type than they are computed in (narrow_caches.cc).
#pragma once

#include "passes/pass.h"

namespace ge::passes {

Result<bool> narrow_caches(ir::Graph& g, PassContext& c);

}  // namespace ge::passes
