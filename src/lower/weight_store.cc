#include "lower/weight_store.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/file.h"
#include "base/mappings.h"
#include "om/program.h"

namespace ge::lower {
namespace {

std::byte* mapped(size_t bytes, const NamelessFile* file) {
  void* p = file ? mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file->descriptor(), static_cast<off_t>(om::kPage))
                 : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  if (file) remember_mapping(static_cast<std::byte*>(p), bytes);
  else madvise(p, bytes, MADV_HUGEPAGE);   // written once from end to end: few pages cost less than many
  return static_cast<std::byte*>(p);
}

}  // namespace

size_t WeightStore::append(std::span<const std::byte> bytes, size_t align) {
  const size_t at = (size_ + align - 1) / align * align;
  grow(at + bytes.size());
  size_ = at;
  by_blocks(bytes, [&](std::span<const std::byte> block) {
    if (file_ && !file_->put(om::kPage + size_, block)) leave_file();
    if (!file_) std::memcpy(data_ + size_, block.data(), block.size());
    size_ += block.size();
  });
  return at;
}

// Room doubles: what nothing is written to is addresses alone.
void WeightStore::grow(size_t bytes) {
  if (bytes <= room_) return;
  constexpr size_t kFirst = size_t(16) << 20;
  const size_t room = std::max({bytes, 2 * room_, kFirst});
  if (file_ || !data_) {
    auto* larger = mapped(room, file_.get());
    unmap();
    data_ = larger;
  } else {
    void* larger = mremap(data_, room_, room, MREMAP_MAYMOVE);
    if (larger == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<std::byte*>(larger);
  }
  room_ = room;
}

void WeightStore::leave_file() {
  auto* memory = mapped(room_, nullptr);
  auto* to = memory;
  by_blocks({data_, size_}, [&](std::span<const std::byte> block) { to = std::copy(block.begin(), block.end(), to); });
  unmap();
  data_ = memory;
  file_ = nullptr;
}

void WeightStore::unmap() {
  if (!data_) return;
  if (file_) forget_mapping(data_);
  munmap(data_, room_);
}

std::shared_ptr<const std::byte> WeightStore::take() {
  const bool in_file = file_ != nullptr;
  return {std::exchange(data_, nullptr), [bytes = room_, in_file](std::byte* p) {
            if (!p) return;
            if (in_file) forget_mapping(p);
            munmap(p, bytes);
          }};
}

}  // namespace ge::lower
