// The importer: an ONNX model becomes the compiler's graph, every op in its newest form.
//
// What it settles: functions are inlined, Constant nodes and initializers become constants, nested
// graphs get what they capture as inputs, dimension names become symbols. Types are inferred later.
// All operators that GE lacks are reported in one error.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "ir/graph.h"

namespace ge {

inline constexpr int kOldestOpset = 6;
inline constexpr int kNewestOpset = 28;  // of ai.onnx

struct ImportOptions {
  // An initializer that is also a graph input is taken as a constant, so that weights of models
  // that list them all can be folded and packed. Those named here stay inputs, without a default.
  std::vector<std::string> feed;
};

// `folder` is where external data are looked for; empty: the model has to hold all its data.
Result<ir::Graph> import_onnx(std::shared_ptr<const MappedFile> file, const std::string& folder,
                              const ImportOptions& options = {});
// External data may also lie beside the file that `path` is a link to.
Result<ir::Graph> import_onnx_file(const std::string& path, const ImportOptions& options = {});
// The same where the file at `path` is open already.
Result<ir::Graph> import_onnx_file(std::shared_ptr<const MappedFile> file, const std::string& path, const ImportOptions& options);

// Each node of the model (functions inlined, nested graphs included) and why it cannot be compiled, or "".
struct NodeCheck {
  std::string name, type, why;
};
Result<std::vector<NodeCheck>> check_onnx_file(const std::string& path);

}  // namespace ge
