#include "base/mappings.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <new>

#include "base/file.h"

namespace ge {
namespace {

std::mutex mutex;
// Address -> end.
std::map<uintptr_t, uintptr_t>& ranges() {
  static auto* all = new std::map<uintptr_t, uintptr_t>();   // outlives files that statics hold
  return *all;
}
// A child of a fork, whatever other threads were at, finds it open.
[[maybe_unused]] const int at_fork = pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });

uintptr_t page() {
  static const auto size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

void remember_mapping(const std::byte* data, size_t size) {
  std::lock_guard lock(mutex);
  auto first = reinterpret_cast<uintptr_t>(data);
  ranges()[first] = (first + size + page() - 1) / page() * page();
}

void forget_mapping(const std::byte* data) {
  std::lock_guard lock(mutex);
  ranges().erase(reinterpret_cast<uintptr_t>(data));
}

std::shared_ptr<std::byte> mapped_block(void* data, size_t size) {
  auto* bytes = static_cast<std::byte*>(data);
  remember_mapping(bytes, size);
  return {bytes, [size](std::byte* p) {
            forget_mapping(p);
            munmap(p, size);
          }};
}

bool map_again(std::byte* to, std::span<const std::byte> from) {
  const auto first = reinterpret_cast<uintptr_t>(from.data()), last = (first + from.size() + page() - 1) / page() * page();
  if (from.empty() || first % page() || reinterpret_cast<uintptr_t>(to) % page()) return false;
  {
    std::lock_guard lock(mutex);
    auto it = ranges().upper_bound(first);
    if (it == ranges().begin() || last > std::prev(it)->second) return false;
  }
  // Of size 0: a shared mapping stays where it is, and its pages are mapped anew.
  if (mremap(const_cast<std::byte*>(from.data()), 0, last - first, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED) return true;
  if (mmap(to, last - first, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) throw std::bad_alloc();
  return false;
}

void let_go_of_pages(std::span<const std::byte> bytes) {
  auto first = (reinterpret_cast<uintptr_t>(bytes.data()) + page() - 1) / page() * page();
  auto end = (reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size()) / page() * page();
  if (first >= end) return;
  std::lock_guard lock(mutex);
  auto it = ranges().upper_bound(first);
  if (it != ranges().begin() && end <= std::prev(it)->second) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

}  // namespace ge
