#include "base/nameless.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/text.h"

namespace ge {
namespace {

constexpr long kTmpfs = 0x01021994, kRamfs = 0x858458f6;   // files that lie in memory themselves

int open_in(const std::string& folder) {
  struct statfs where {};
  if (statfs(folder.c_str(), &where) != 0 || where.f_type == kTmpfs || where.f_type == kRamfs) return -1;
  int fd = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
  if (fd >= 0) return fd;
  std::string name = folder + "/ge_XXXXXX";   // file systems without O_TMPFILE
  fd = mkostemp(name.data(), O_CLOEXEC);
  if (fd >= 0) unlink(name.c_str());
  return fd;
}

}  // namespace

std::shared_ptr<NamelessFile> NamelessFile::make(std::span<const std::string> folders) {
  for (auto& folder : folders)
    if (int fd = open_in(folder.empty() ? "." : folder); fd >= 0) return std::shared_ptr<NamelessFile>(new NamelessFile(fd));
  return nullptr;
}

std::shared_ptr<NamelessFile> NamelessFile::in_memory() {
  int fd = memfd_create("ge", MFD_CLOEXEC);
  return fd >= 0 ? std::shared_ptr<NamelessFile>(new NamelessFile(fd)) : nullptr;
}

NamelessFile::~NamelessFile() { close(descriptor_); }

bool NamelessFile::put(size_t at, std::span<const std::byte> bytes) const { return write_at(descriptor_, at, bytes) == 0; }

bool NamelessFile::reserve(size_t bytes) const { return posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes)) == 0; }

bool NamelessFile::resize(size_t bytes) const { return ftruncate(descriptor_, static_cast<off_t>(bytes)) == 0; }

bool NamelessFile::link(const std::string& path) {
  if (linked_) return false;
  linked_ = linkat(AT_FDCWD, format("/proc/self/fd/{}", descriptor_).c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
  return linked_;
}

int write_at(int descriptor, size_t at, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t n = pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return errno;
    at += static_cast<size_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return 0;
}

std::vector<std::string> temporary_folders(std::vector<std::string> before) {
  std::erase(before, "");
  const char* given = std::getenv("TMPDIR");
  before.push_back(given && *given ? given : "/tmp");
  before.push_back("/var/tmp");
  return before;
}

}  // namespace ge
