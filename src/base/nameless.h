// A file without a name: it is gone when nobody has it open any more, unless it is given a name at the end.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ge {

class NamelessFile {
 public:
  // In the first of the folders that can be written and lies on a disk; null: none. Files in a folder that lies in
  // memory itself (tmpfs, ramfs) would be memory, which is what they are to spare.
  static std::shared_ptr<NamelessFile> make(std::span<const std::string> folders);
  // In memory, for want of a disk; null: there is none.
  static std::shared_ptr<NamelessFile> in_memory();
  ~NamelessFile();
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;

  int descriptor() const { return descriptor_; }
  // All of the bytes at that offset; false: errno says why.
  bool put(size_t at, std::span<const std::byte> bytes) const;
  // Room for so many bytes, zeros as yet. Without it a write to a mapping of the file may end the process.
  bool reserve(size_t bytes) const;
  // Cuts or lengthens it; false: errno says why.
  bool resize(size_t bytes) const;
  // Gives it a name, once, where no file has that name; false: not on this system, or the folder lies elsewhere.
  bool link(const std::string& path);
  bool linked() const { return linked_; }

 private:
  explicit NamelessFile(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
  bool linked_ = false;
};

// Writes all of the bytes at that offset of an open file: 0, or errno's reason.
int write_at(int descriptor, size_t at, std::span<const std::byte> bytes);

// Folders for files that are gone in the end: those given that are not empty, TMPDIR or /tmp, then what is on a disk where
// that is not.
std::vector<std::string> temporary_folders(std::vector<std::string> before = {});

}  // namespace ge
