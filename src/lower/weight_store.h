// The weights of a package while they are laid out: one after another, in memory whose pages may leave it meanwhile.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "base/file.h"
#include "base/spill.h"
#include "om/program.h"

namespace ge::lower {

class WeightStore {
 public:
  size_t size() const { return size_; }
  const std::byte* data() const { return block_.get(); }
  // Room for so many bytes in all.
  void reserve(size_t bytes) {
    if (bytes <= room_) return;
    auto larger = large_block(bytes);
    if (!larger) larger = {static_cast<std::byte*>(::operator new(bytes, std::align_val_t(om::kWeightAlign))), [](std::byte* p) { ::operator delete(p, std::align_val_t(om::kWeightAlign)); }};
    if (size_) std::memcpy(larger.get(), block_.get(), size_);
    block_ = std::move(larger);
    room_ = bytes;
  }
  // Zeros up to the next multiple of `align`, then the bytes; where they begin.
  size_t append(std::span<const std::byte> bytes, size_t align) {
    const size_t at = (size_ + align - 1) / align * align;
    if (at + bytes.size() > room_) reserve(std::max(at + bytes.size(), 2 * room_));
    constexpr size_t kBlock = size_t{4} << 20;
    for (size_t i = 0; i < bytes.size(); i += kBlock) {
      auto from = bytes.subspan(i, std::min(kBlock, bytes.size() - i));
      std::memcpy(block_.get() + at + i, from.data(), from.size());
      let_go_of_pages(from);
      let_go_of_pages({block_.get() + at + i, from.size()});
    }
    size_ = at + bytes.size();
    return at;
  }
  std::shared_ptr<const std::byte> take() { return std::move(block_); }

 private:
  std::shared_ptr<std::byte> block_;
  size_t size_ = 0, room_ = 0;
};

}  // namespace ge::lower
