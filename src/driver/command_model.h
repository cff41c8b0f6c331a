// What the commands of `ge` share: the model that is named, compiled or opened, and inputs for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "driver/commands.h"
#include "driver/compile.h"
#include "driver/run.h"
#include "runtime/model.h"
#include "tensor/tensor.h"

namespace ge {

Result<Options> options_of(const CompileCommand& c);
// An ONNX model or an .ir file.
Result<ir::Graph> read_graph(const std::string& path);
Result<Compiled> compile_model(const CompileCommand& c);
// An .om file, or a model that is compiled with these options.
Result<std::shared_ptr<runtime::Model>> open_model(const CompileCommand& c, int threads);
// The inputs that are named, seeded numbers for the others.
Result<std::vector<Tensor>> inputs_of(const runtime::Model& m, const RunCommand& c);

}  // namespace ge
