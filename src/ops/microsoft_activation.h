// Activations that com.microsoft's fused operators name.
#pragma once

#include "ops/rewrite.h"

namespace ge::ops {

// c's node becomes the activation of x; none for an empty name. An error where the name is not known.
Status become_activation(UpgradeContext& c, const std::string& name, const std::vector<double>& parameters, ValueId x);

}  // namespace ge::ops
