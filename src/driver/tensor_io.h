// Tensors in files: NumPy's .npy and .npz (format 1.0 to 3.0; stored or deflated), ONNX TensorProto .pb.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/tensor.h"

namespace ge {

struct NamedTensor {
  std::string name;   // empty for a .npy
  Tensor tensor;
};

// By the ending of the path. A .pb's and a .npz entry's name comes with it.
Result<std::vector<NamedTensor>> read_tensors(const std::string& path);
Status write_npy(const std::string& path, const Tensor& t);

}  // namespace ge
