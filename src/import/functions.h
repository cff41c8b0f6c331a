// Model-local functions: every call is replaced by the function's body, so that what follows sees
// operators only. Also settles which opset version each node is written against, because a function
// brings its own.
#pragma once

#include "import/onnx_proto.h"

namespace ge::onnx {

// Sets NodeProto::opset everywhere and empties model.functions. A function that reaches itself is
// an error that names the cycle; so is a body that grows beyond all measure.
Status inline_functions(ModelProto& model);

}  // namespace ge::onnx
