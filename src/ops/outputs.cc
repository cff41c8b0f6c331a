#include "ops/outputs.h"

namespace ge::ops {

Status with_first_output(UpgradeContext& c) {
  auto& outputs = c.node().outputs;
  if (!outputs.empty() && !outputs[0]) c.graph.set_output(c.id, 0, c.graph.add_value("", {}));
  return ok();
}

}  // namespace ge::ops
