// The weights of a package while they are laid out, one after another: in memory, or in a file without a name, from
// which what is made of them need not be copied again.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/nameless.h"

namespace ge::lower {

class WeightStore {
 public:
  // They begin at byte om::kPage of the file. Without a file, or where it has no room, they lie in memory.
  explicit WeightStore(std::shared_ptr<NamelessFile> file = nullptr) : file_(std::move(file)) {}
  ~WeightStore() { unmap(); }
  WeightStore(const WeightStore&) = delete;
  WeightStore& operator=(const WeightStore&) = delete;

  size_t size() const { return size_; }
  const std::byte* data() const { return data_; }
  // Zeros up to the next multiple of `align`, then the bytes; where they begin.
  size_t append(std::span<const std::byte> bytes, size_t align);
  // The file, if they all lie there.
  const std::shared_ptr<NamelessFile>& file() const { return file_; }
  std::shared_ptr<const std::byte> take();

 private:
  void grow(size_t bytes);
  void leave_file();
  void unmap();

  std::shared_ptr<NamelessFile> file_;
  std::byte* data_ = nullptr;          // mapped, `room_` bytes; of the file, those past its end are not there yet
  size_t size_ = 0, room_ = 0;
};

}  // namespace ge::lower
