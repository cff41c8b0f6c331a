// Reads the text form that print.h describes. Errors name the line.
#pragma once

#include <string_view>

#include "ir/graph.h"

namespace ge::ir {

Result<Graph> parse(std::string_view text);

}  // namespace ge::ir
