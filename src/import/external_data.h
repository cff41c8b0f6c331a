// External data: the files beside a model that hold its large tensors.
//
// A location comes from the model, so it is not trusted: only files that really lie beneath one of
// the given folders are opened. Each is mapped once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "import/onnx_proto.h"

namespace ge::onnx {

class ExternalData {
 public:
  // Without folders (a model given as bytes) every location is refused. Locations are relative to
  // the first; a link may lead into any of them.
  explicit ExternalData(std::vector<std::string> folders = {}) : folders_(std::move(folders)) {}

  struct Range {
    std::shared_ptr<const MappedFile> file;
    Bytes bytes;
  };
  // The `expected` bytes that the tensor's external_data entries name.
  Result<Range> read(const TensorProto& tensor, size_t expected);
  // Of all files that were opened.
  std::vector<std::string> paths() const;

 private:
  Result<std::shared_ptr<const MappedFile>> open(const std::string& location,
                                                 const std::string& checksum);

  std::vector<std::string> folders_;
  struct Entry {
    std::shared_ptr<const MappedFile> file;
    std::string checked;  // the checksum that was compared, or empty
  };
  std::map<std::string, Entry> files_;  // by location
};

}  // namespace ge::onnx
