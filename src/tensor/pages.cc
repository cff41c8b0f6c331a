#include "tensor/pages.h"

#include <algorithm>

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
  constexpr size_t kBlock = size_t{4} << 20;
  auto h = static_cast<uint64_t>(t.dtype());
  for (auto left = t.raw(); !left.empty();) {
    auto block = left.first(std::min(kBlock, left.size()));
    h = hash64(block, h);
    if (block.size() == kBlock) let_go_of_pages(block);
    left = left.subspan(block.size());
  }
  return h;
}

Tensor without_data(const Tensor& t) { return Tensor::borrow(t.dtype(), t.dims(), nullptr, nullptr); }

}  // namespace ge
