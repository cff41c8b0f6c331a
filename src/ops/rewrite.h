// Small steps for upgrade hooks that write a node as other nodes. Types are not known yet.
#pragma once

#include "ops/op.h"

namespace ge::ops {

// A new node before c's; gives its only output.
ValueId make_node(UpgradeContext& c, std::string op, std::vector<ValueId> inputs, ir::Attrs attrs = {});
// c's own node becomes another operator with these inputs (its outputs stay).
void become(UpgradeContext& c, std::string op, std::vector<ValueId> inputs, ir::Attrs attrs = {});
ValueId input_of(const UpgradeContext& c, size_t i);  // none when absent
// The constant behind input i, or null.
const Tensor* constant_of(const UpgradeContext& c, size_t i);
Error upgrade_error(const UpgradeContext& c, std::string why);

}  // namespace ge::ops
