// What an arena is full of: for the error when it exceeds the limit.
#pragma once

#include <string>
#include <vector>

#include "runtime/binding.h"

namespace ge {

// The arena of `b` is larger than `limit` bytes. names: of the program's buffers. searched: with the allocator's
// strategy 2.
Error over_limit(const runtime::Binding& b, const std::vector<std::string>& names, int64_t limit, bool searched);

}  // namespace ge
