// SwiGLU: on import Swish of the first input times the second.
#include "ops/rewrite.h"

namespace ge::ops {
namespace {

Status upgrade(UpgradeContext& c) {
  ValueId gate = make_node(c, "Swish", {input_of(c, 0)}, {{"alpha", ir::attr_float(c.node(), "alpha", 1)}});
  become(c, "Mul", {gate, input_of(c, 1)});
  return ok();
}

const Register r([] {
  OpDef d = rewritten("SwiGLU", 2, 2, types::floats, upgrade);
  d.since = 28, d.attrs = {{"alpha", "scales the gate inside its sigmoid"}};
  return d;
}());

}  // namespace
}  // namespace ge::ops
