// Where the elements of a value lie when it has storage of its own.
#pragma once

#include "ops/op.h"

namespace ge::ops {

// Dense storage whose axes lie in the order of the value's layout.
Strided storage_view(const ir::Value& v);
// The physical order of a view's axes (outermost first), for a guess of the symbols' values; empty for
// row-major. Layout is about speed only, so a guess will do.
std::vector<int> physical_order(const Strided& v);

}  // namespace ge::ops
