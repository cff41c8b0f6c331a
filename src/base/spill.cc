#include "base/spill.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "base/mappings.h"
#include "base/nameless.h"

namespace ge {
namespace {

constexpr size_t kHugePage = size_t(2) << 20;

std::mutex mutex;
std::vector<const std::string*> beside;   // of each Spill that lives
std::atomic<int> spills{0};
// A child of a fork, whatever other threads were at, finds it open.
[[maybe_unused]] const int at_fork = pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });

std::shared_ptr<NamelessFile> file_behind() {
  std::vector<std::string> folders;
  {
    std::lock_guard lock(mutex);
    for (auto* folder : beside) folders.push_back(*folder);
  }
  return NamelessFile::make(temporary_folders(std::move(folders)));
}

}  // namespace

Spill::Spill(std::string folder) : beside_(std::move(folder)) {
  std::lock_guard lock(mutex);
  beside.push_back(&beside_);
  ++spills;
}
Spill::~Spill() {
  std::lock_guard lock(mutex);
  beside.erase(std::find(beside.begin(), beside.end(), &beside_));
  --spills;
}
bool spilling() { return spills > 0; }

std::shared_ptr<std::byte> large_block(size_t bytes) {
  if (spilling())
    if (auto file = file_behind(); file && file->reserve(bytes)) {
      void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->descriptor(), 0);
      if (p != MAP_FAILED) return mapped_block(p, bytes);
    }
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  // Written once from end to end: the fewer pages there are, the less it costs that they are new.
  if (bytes >= 2 * kHugePage) madvise(p, bytes, MADV_HUGEPAGE);
  return {static_cast<std::byte*>(p), [bytes](std::byte* q) { munmap(q, bytes); }};
}

}  // namespace ge
