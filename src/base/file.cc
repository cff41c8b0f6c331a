#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/text.h"

namespace ge {

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT)
      return error(code::kNoFile, format("File {} does not exist.", path), "the path is wrong or the file was moved",
                   "check the path");
    return error(code::kOpen, format("File {} cannot be opened: {}.", path, std::strerror(errno)));
  }
  return from_descriptor(fd, path);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::from_descriptor(int fd, const std::string& path) {
  struct stat st;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    ::close(fd);
    return error(code::kOpen, format("{} is not a regular file.", path));
  }
  auto file = std::shared_ptr<MappedFile>(new MappedFile());
  file->size_ = static_cast<size_t>(st.st_size);
  if (file->size_) {
    void* p = mmap(nullptr, file->size_, PROT_READ, MAP_SHARED, fd, 0);
    int e = errno;
    if (p == MAP_FAILED) {
      ::close(fd);
      return error(code::kRead, format("File {} cannot be mapped: {}.", path, std::strerror(e)));
    }
    file->data_ = static_cast<const std::byte*>(p);
    file->mapped_ = true;
  }
  ::close(fd);
  return std::shared_ptr<const MappedFile>(std::move(file));
}

std::shared_ptr<const MappedFile> MappedFile::from_bytes(std::span<const std::byte> bytes) {
  auto file = std::shared_ptr<MappedFile>(new MappedFile());
  file->size_ = bytes.size();
  if (file->size_) {
    auto* p = static_cast<std::byte*>(::operator new(file->size_, std::align_val_t(64)));
    std::memcpy(p, bytes.data(), file->size_);
    file->data_ = p;
  }
  return file;
}

MappedFile::~MappedFile() {
  if (!data_) return;
  if (mapped_)
    munmap(const_cast<std::byte*>(data_), size_);
  else
    ::operator delete(const_cast<std::byte*>(data_), std::align_val_t(64));
}

Status write_file(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  static std::atomic<unsigned> counter{0};
  std::string temporary = format("{}.{}.{}.tmp", path, getpid(), counter.fetch_add(1));
  int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  auto failed = [&](const char* what) {
    std::string why = std::strerror(errno);
    if (fd >= 0) ::close(fd), ::unlink(temporary.c_str());
    return error(code::kWrite, format("File {} cannot be {}: {}.", path, what, why), "",
                 "check that the folder exists, is writable and has room");
  };
  if (fd < 0) return failed("written");
  for (auto part : parts) {
    const std::byte* p = part.data();
    size_t left = part.size();
    while (left) {
      ssize_t n = ::write(fd, p, left);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return failed("written");
      p += n, left -= static_cast<size_t>(n);
    }
  }
  if (::fsync(fd) != 0 && errno != EINVAL && errno != EROFS) return failed("written");
  if (::rename(temporary.c_str(), path.c_str()) != 0) return failed("put in place");
  ::close(fd);
  return ok();
}

Status write_file(const std::string& path, std::string_view text) {
  auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return write_file(path, std::span(&bytes, 1));
}

}  // namespace ge
