#include "base/spill.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "base/mappings.h"

namespace ge {
namespace {

std::atomic<int> spills{0};

constexpr long kTmpfs = 0x01021994, kRamfs = 0x858458f6;   // files that lie in memory themselves

// An open file without a name and with room for so many bytes, or -1. Room is taken now: without it a write to
// the mapping would end the process.
int nameless_file(size_t bytes) {
  const char* given = std::getenv("TMPDIR");
  std::string folder = given && *given ? given : "/tmp";
  struct statfs where {};
  if (statfs(folder.c_str(), &where) != 0 || where.f_type == kTmpfs || where.f_type == kRamfs) return -1;
  int fd = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) {
    std::string name = folder + "/ge_spill_XXXXXX";
    fd = mkostemp(name.data(), O_CLOEXEC);
    if (fd >= 0) unlink(name.c_str());
  }
  if (fd >= 0 && posix_fallocate(fd, 0, static_cast<off_t>(bytes)) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

}  // namespace

Spill::Spill() { ++spills; }
Spill::~Spill() { --spills; }
bool spilling() { return spills > 0; }

std::shared_ptr<std::byte> large_block(size_t bytes) {
  if (spilling())
    if (int fd = nameless_file(bytes); fd >= 0) {
      void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      close(fd);
      if (p != MAP_FAILED) {
        auto* block = static_cast<std::byte*>(p);
        remember_mapping(block, bytes);
        return {block, [bytes](std::byte* q) {
                  forget_mapping(q);
                  munmap(q, bytes);
                }};
      }
    }
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  return {static_cast<std::byte*>(p), [bytes](std::byte* q) { munmap(q, bytes); }};
}

}  // namespace ge
