#include "tensor/pages.h"

#include "base/file.h"

namespace ge {
namespace {

constexpr size_t kWorthwhile = 65536;

}  // namespace

void rest(const Tensor& t) {
  if (t.dtype() != DType::string && t.bytes() >= kWorthwhile) let_go_of_pages(t.raw());
}

Tensor without_data(const Tensor& t) { return Tensor::borrow(t.dtype(), t.dims(), nullptr, nullptr); }

}  // namespace ge
