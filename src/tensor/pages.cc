#include "tensor/pages.h"

#include "base/file.h"

namespace ge {

void rest(const Tensor& t) {
  if (t.dtype() != DType::string && t.bytes() >= kLargeTensor) let_go_of_pages(t.raw());
}

Tensor without_data(const Tensor& t) { return Tensor::borrow(t.dtype(), t.dims(), nullptr, nullptr); }

}  // namespace ge
