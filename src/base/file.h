// Files: a read-only mapping, and writing aside followed by a rename so that no partial file is left.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace ge {

struct FilePart {
  std::string path;
  size_t size;
};

class MappedFile {
 public:
  // Maps a regular file read-only; an empty file gives an empty span.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  // Takes the descriptor over, also when it fails; the path is for messages.
  static Result<std::shared_ptr<const MappedFile>> from_descriptor(int fd, const std::string& path);
  // Maps files one after another into one range, each from a multiple of `align`, which the machine's page
  // size divides; zeros lie between them. A file of another size than given is an error.
  static Result<std::shared_ptr<const MappedFile>> open_row(std::span<const FilePart> files, size_t align);
  // Owns a copy of the bytes, for callers that hold a model in memory (64-byte aligned).
  static std::shared_ptr<const MappedFile> from_bytes(std::span<const std::byte> bytes);
  // Stands for bytes that outlive it and all that borrows from it.
  static std::shared_ptr<const MappedFile> over(std::span<const std::byte> bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile() = default;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false, owned_ = false;
};

// Bytes of an open MappedFile leave this process's memory until they are read again; other memory stays as it is.
void let_go_of_pages(std::span<const std::byte> bytes);

struct FileContent {
  std::string path;
  std::vector<std::span<const std::byte>> parts;  // one after another
};

// Writes each to a temporary file beside its path, then renames them in order. Where that fails, files that
// were not there before are removed again. durable: they are on the disk when this returns; what is checked before it
// is used and can be made again need not be.
Status write_files(std::span<const FileContent> files, bool durable = true);
Status write_file(const std::string& path, std::span<const std::span<const std::byte>> parts, bool durable = true);
Status write_file(const std::string& path, std::string_view text);

}  // namespace ge
