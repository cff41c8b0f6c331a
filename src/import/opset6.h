// Opset 6 of ai.onnx, raised to 7: the last step in which broadcasting had an axis of its own. The
// op files raise what comes after; this step needs ranks, which they do not have. Older nodes are taken
// where their operator's first version was still the one of opset 6.
#pragma once

#include "import/onnx_proto.h"

namespace ge::onnx {

// Changes the nodes of opset 6 and of such older ones, and nothing else, so that they mean the same at opset 7.
Status raise_opset6(GraphProto& graph);

}  // namespace ge::onnx
