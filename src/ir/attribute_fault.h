// Attributes of another kind than their operator takes.
#pragma once

#include "base/result.h"

namespace ge::ir {

// The first attribute, since the last call in this thread, that attr_int() and its kin were asked for as another kind
// than it is: they give the default then.
Status take_attribute_fault();

}  // namespace ge::ir
