#include "runtime/value.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "base/text.h"
#include "tensor/limits.h"

namespace ge::runtime {
namespace {

constexpr int64_t kStale = 64;  // blocks given back since; a run of some segments gives back fewer

// Sizes in eighths of powers of two, so that a size a little larger than the last one fits into its block.
size_t size_class(size_t bytes) {
  bytes = std::max<size_t>(bytes, 64);
  size_t step = std::max<size_t>(std::bit_floor(bytes) / 8, 64);
  return (bytes + step - 1) / step * step;
}

}  // namespace

int64_t Value::count() const {
  uint64_t n = 1;   // modulo 2^64, as View's
  for (int64_t d : dims) n *= static_cast<uint64_t>(d);
  return static_cast<int64_t>(n);
}

Value Value::tensor(DType t, std::span<const int64_t> dims, const void* data, std::shared_ptr<const void> keep) {
  Value v;
  v.dtype = t;
  v.dims.assign(dims.begin(), dims.end());
  v.data = static_cast<const std::byte*>(data);
  v.keep = std::move(keep);
  return v;
}

std::string shape_text(std::span<const int64_t> dims) {
  std::string s = "[";
  for (size_t i = 0; i < dims.size(); ++i) s += format("{}{}", i ? "," : "", dims[i]);
  return s + "]";
}

Result<int64_t> checked_bytes(DType t, std::span<const int64_t> dims, const std::string& name) {
  for (int64_t d : dims)
    if (d < 0) return error(code::kRunFailed, format("'{}' would have the shape {}: a size is negative.", name, shape_text(dims)));
  const int64_t bytes = dense_bytes(size_of(t), dims);
  if (bytes < 0) return error(code::kTooLarge, format("'{}' would be too large: {}.", name, shape_text(dims)));
  return bytes;
}

Result<std::shared_ptr<std::byte>> Blocks::take(int64_t bytes) {
  if (bytes < 0 || bytes > kMaxTensorBytes) return error(code::kTooLarge, format("A block of {} bytes is too large.", bytes));
  size_t size = size_class(static_cast<size_t>(bytes));
  std::byte* p = nullptr;
  auto it = free_.lower_bound(size);
  if (it != free_.end() && it->first <= size + size / 4) {
    size = it->first;
    p = it->second.data;
    free_.erase(it);
    idle_ -= static_cast<int64_t>(size);
  } else {
    p = static_cast<std::byte*>(::operator new(size, std::align_val_t(64), std::nothrow));
    if (!p) return error(code::kOutOfMemory, format("{} for a value of data-dependent size cannot be had.", bytes_text(static_cast<double>(size))));
  }
  used_ += static_cast<int64_t>(size);
  most_ = std::max(most_, used_);
  return std::shared_ptr<std::byte>(p, [this, size](std::byte* q) { give_back(q, size); });
}

void Blocks::give_back(std::byte* p, size_t size) {
  used_ -= static_cast<int64_t>(size);
  idle_ += static_cast<int64_t>(size);
  auto latest = free_.emplace(size, Idle{p, given_back_++});
  // Where there is no room, a size that is no longer asked for goes: else it would stay, and this block go in every run.
  while (used_ + idle_ > most_) {
    auto oldest = std::min_element(free_.begin(), free_.end(), [](auto& a, auto& b) { return a.second.since < b.second.since; });
    const bool stale = given_back_ - oldest->second.since > kStale;
    drop(stale ? oldest : latest);
    if (!stale) break;
  }
}

void Blocks::drop(std::multimap<size_t, Idle>::iterator block) {
  ::operator delete(block->second.data, std::align_val_t(64));
  idle_ -= static_cast<int64_t>(block->first);
  free_.erase(block);
}

void Blocks::trim() {
  while (!free_.empty()) drop(free_.begin());
  most_ = used_;
}

Result<Value> Blocks::own(const Value& v) {
  Value out = v;
  for (auto& item : out.items) {
    GE_TRY(item, own(item));
  }
  if (!v.is_tensor() || v.keep) return out;
  GE_TRY(auto block, take(v.bytes()));
  if (v.bytes()) std::memcpy(block.get(), v.data, static_cast<size_t>(v.bytes()));
  out.data = block.get();
  out.keep = block;
  return out;
}

}  // namespace ge::runtime
