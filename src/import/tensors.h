// TensorProto -> Tensor, for every element type that GE has.
//
// The sizes are checked against the data before memory is taken. Raw data are shared with the
// mapped file where their alignment allows it, else copied.
#pragma once

#include <memory>
#include <string_view>

#include "import/external_data.h"
#include "import/onnx_proto.h"
#include "tensor/tensor.h"

namespace ge::onnx {

class TensorReader {
 public:
  // `model` holds the bytes that the structs' spans point into.
  TensorReader(std::shared_ptr<const MappedFile> model, ExternalData external)
      : model_(std::move(model)), external_(std::move(external)) {}

  Result<Tensor> read(const TensorProto& proto);
  // Made dense; refused above a size that no sparse constant is meant for.
  Result<Tensor> read(const SparseTensorProto& proto);
  std::vector<std::string> external_files() const { return external_.paths(); }

 private:
  Result<Tensor> from_raw(const TensorProto& proto, DType dtype, Bytes raw,
                          const std::shared_ptr<const MappedFile>& file);

  std::shared_ptr<const MappedFile> model_;
  ExternalData external_;
};

// The element type of a number in the file; the error says whether it is missing or not known.
Result<DType> element_type(int32_t data_type, std::string_view what);

}  // namespace ge::onnx
