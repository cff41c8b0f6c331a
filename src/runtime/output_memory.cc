#include "runtime/output_memory.h"

#include <algorithm>
#include <new>

#include "base/text.h"

namespace ge::runtime {
namespace {

constexpr size_t kLarge = 128 << 10;   // what malloc gives back to the system by itself
constexpr std::align_val_t kAlign{64};

void release(std::byte* p) { ::operator delete(p, kAlign); }

}  // namespace

Result<std::shared_ptr<std::byte>> OutputMemory::take(int64_t bytes) {
  const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  std::byte* p = nullptr;
  if (size >= kLarge) {
    std::lock_guard lock(mutex_);
    if (auto it = free_.find(size); it != free_.end()) {
      p = it->second;
      free_.erase(it);
      idle_ -= static_cast<int64_t>(size);
    }
  }
  if (!p) p = static_cast<std::byte*>(::operator new(size, kAlign, std::nothrow));
  if (!p) return error(code::kOutOfMemory, format("{} for an output cannot be had.", bytes_text(static_cast<double>(bytes))));
  if (size < kLarge) return std::shared_ptr<std::byte>(p, release);
  return std::shared_ptr<std::byte>(p, [pool = shared_from_this(), size](std::byte* q) { pool->give_back(q, size); });
}

void OutputMemory::give_back(std::byte* p, size_t size) {
  {
    std::lock_guard lock(mutex_);
    if (idle_ + static_cast<int64_t>(size) <= most_) {
      free_.emplace(size, p);
      idle_ += static_cast<int64_t>(size);
      return;
    }
  }
  release(p);
}

void OutputMemory::keep_up_to(int64_t bytes) {
  std::lock_guard lock(mutex_);
  most_ = std::max(most_, bytes);
}

int64_t OutputMemory::idle_bytes() const {
  std::lock_guard lock(mutex_);
  return idle_;
}

void OutputMemory::trim() {
  std::lock_guard lock(mutex_);
  for (auto& [size, p] : free_) release(p);
  free_.clear();
  idle_ = 0, most_ = 0;
}

}  // namespace ge::runtime
