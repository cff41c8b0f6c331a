// TypeProto -> ir::Type: element types and shapes of the model's inputs, dimension names as
// symbols.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "import/onnx_proto.h"
#include "ir/graph.h"

namespace ge::onnx {

class TypeReader {
 public:
  // Symbols are registered in the graph. The same dim_param is the same symbol everywhere; a
  // dimension without one gets a symbol of its own, which the names of `declare` are kept clear of.
  explicit TypeReader(ir::Graph& graph) : graph_(graph) {}
  void declare(const TypeProto& type);
  // The type of a value called `name`. With `shapes` off only the element type is taken.
  Result<ir::Type> read(const TypeProto& type, std::string_view name, bool shapes);

 private:
  Dim dimension(const DimensionProto& d, std::string_view name, size_t axis);
  Dim symbol(const std::string& param);

  ir::Graph& graph_;
  std::map<std::string, std::string> symbols_;  // dim_param -> symbol
};

}  // namespace ge::onnx
