// Large tensors while compiling: weights that lie in a mapped file, and such as are not read again.
#pragma once

#include <span>

#include "tensor/tensor.h"

namespace ge {

inline constexpr size_t kLargeTensor = 65536;   // bytes; of fewer, pages are not worth a call

// Of a large tensor in a mapped file: its pages leave memory until they are read again. Of others nothing.
void rest(const Tensor& t);
// The same of what views of dense tensors see.
void rest(std::span<const View> views);
// Of its bytes and type; read by blocks whose pages leave memory likewise. Not for strings.
uint64_t content_hash(const Tensor& t);
// Type and shape alone, for a tensor that is not read again.
Tensor without_data(const Tensor& t);

}  // namespace ge
