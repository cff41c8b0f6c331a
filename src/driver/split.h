// Compiling a model in parts: each in a process of its own, cached by its content, and linked into one program.
#pragma once

#include "driver/build.h"

namespace ge {

// graph: edited as options ask.
Result<Compiled> compile_split(ir::Graph graph, const Options& o, const Source& source);

}  // namespace ge
