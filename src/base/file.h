// Files: a read-only mapping, and writing aside followed by a rename so that no partial file is left.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/nameless.h"
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

// From the root, or empty where there is no current folder.
std::string absolute_path(const std::string& path);
// The folder that a file of that path lies in; "." where the path names none.
std::string folder_of(const std::string& path);

// Bytes of an open MappedFile leave this process's memory until they are read again; other memory stays as it is.
void let_go_of_pages(std::span<const std::byte> bytes);

inline constexpr size_t kPassBlock = size_t(4) << 20;   // what one pass over large bytes holds of them in memory
// Calls f with one block after another, and lets go of each one's pages behind it. A single block stays: whoever reads
// so little reads it again.
template <class F>
void by_blocks(std::span<const std::byte> bytes, F&& f, size_t block = kPassBlock) {
  const bool many = bytes.size() > block;
  while (!bytes.empty()) {
    auto now = bytes.first(std::min(block, bytes.size()));
    f(now);
    if (many) let_go_of_pages(now);
    bytes = bytes.subspan(now.size());
  }
}

// A file that is written beside its path, and takes its place in the end. What is not finished goes with it: with the process
// too, as it has no name before, where the file system has such files; elsewhere one that nobody else uses.
class FileAside {
 public:
  explicit FileAside(std::string path);
  ~FileAside();
  FileAside(FileAside&& other) noexcept;
  FileAside& operator=(const FileAside&) = delete;
  const std::string& path() const { return path_; }
  const std::string& aside() const { return aside_; }
  // Each of these: 0, or errno's reason.
  int create();
  int adopt(NamelessFile& file);                  // instead of create()
  int append(std::span<const std::byte> bytes);   // pages of a mapped file leave memory behind it
  int put(size_t at, std::span<const std::byte> bytes);
  int close(bool durable);                        // nothing follows; durable: it is on the disk
  int name();                                     // gives it the name aside(); frees the descriptor
  int finish();                                   // in its place
 private:
  std::string path_, aside_;
  int descriptor_ = -1;
  size_t end_ = 0;
  bool there_ = false;                            // under the name aside()
};
// An error where writing `path` would replace one of the files: by another name, too, or through a link.
Status not_in_place_of(const std::string& path, std::span<const std::string> files);
// The error of a file that cannot be `what` for the reason that errno gave.
Error cannot_write(const std::string& path, const char* what, int why);
// The same on the disk, where errno says that it is not: 0 for files that need no such thing.
int to_the_disk(int descriptor);

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
