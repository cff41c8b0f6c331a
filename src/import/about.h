// What an ONNX file says of itself, as JSON: for programs that ask a model for its description, its
// properties and its signature as its author wrote it.
//
//   ir_version, producer, producer_version, domain, version, doc, graph, graph_doc, metadata{},
//   inputs[], overridable[] (inputs that have a default), outputs[]
//
// Each of the ports: name; type in ONNX's notation, "tensor(float)"; shape, null where the rank is
// open, else numbers, names, and null for sizes that have neither; denotations if there are any.
#pragma once

#include <string>

#include "base/file.h"
#include "import/onnx_proto.h"

namespace ge {

std::string about(const onnx::ModelProto& model);
Result<std::string> about_onnx(const MappedFile& file);

}  // namespace ge
