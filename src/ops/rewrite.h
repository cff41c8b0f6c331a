// Small steps for upgrade hooks that write a node as other nodes. Types are not known yet.
#pragma once

#include "ops/op.h"

namespace ge::ops {

// A new node before c's; gives its only output.
ValueId make_node(UpgradeContext& c, std::string op, std::vector<ValueId> inputs, ir::Attrs attrs = {});
// c's own node becomes another operator with these inputs (its outputs stay).
void become(UpgradeContext& c, std::string op, std::vector<ValueId> inputs, ir::Attrs attrs = {});
ValueId number(UpgradeContext& c, int64_t v);          // a scalar i64
ValueId size_of(UpgradeContext& c, ValueId v, int64_t axis);  // of v's axis, a scalar i64
ValueId input_of(const UpgradeContext& c, size_t i);  // none when absent
// The constant behind input i, or null.
const Tensor* constant_of(const UpgradeContext& c, size_t i);
// Output `index` of c's node, if it is wanted, is made by v's producer from now on; gives v under its new name.
ValueId hand_over(UpgradeContext& c, size_t index, ValueId v);
// An operator that upgrade always writes as others.
OpDef rewritten(std::string name, int min_inputs, int max_inputs, Types types, Status (*upgrade)(UpgradeContext&));
Error upgrade_error(const UpgradeContext& c, std::string why);

}  // namespace ge::ops
