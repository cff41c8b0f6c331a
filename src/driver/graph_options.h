// The article's block of options: ge graph_options { key: value # comment }, on one line or on many.
#pragma once

#include <string>

#include "base/result.h"
#include "driver/options.h"

namespace ge {

Status read_graph_options(Options& o, const std::string& text);

}  // namespace ge
