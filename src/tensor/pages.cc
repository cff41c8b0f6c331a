#include "tensor/pages.h"

#include "base/file.h"
#include "base/hash.h"

namespace ge {

void rest(const Tensor& t) {
  if (t.dtype() != DType::string && t.bytes() >= kLargeTensor) let_go_of_pages(t.raw());
}

void rest(std::span<const View> views) {
  for (auto& v : views) {
    const size_t bytes = v.data && v.dense() ? static_cast<size_t>(v.count()) * static_cast<size_t>(size_of(v.dtype)) : 0;
    if (bytes >= kLargeTensor) let_go_of_pages({v.data, bytes});
  }
}

uint64_t content_hash(const Tensor& t) {
  auto h = static_cast<uint64_t>(t.dtype());
  by_blocks(t.raw(), [&](std::span<const std::byte> block) { h = hash64(block, h); });
  return h;
}

Tensor without_data(const Tensor& t) { return Tensor::borrow(t.dtype(), t.dims(), nullptr, nullptr); }

}  // namespace ge
