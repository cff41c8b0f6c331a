#include "ops/infer.h"

#include "passes/pass.h"

namespace ge::passes {

Status infer(ir::Graph& g) { return ops::infer(g); }

}  // namespace ge::passes
