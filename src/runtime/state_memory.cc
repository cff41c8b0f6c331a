#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/text.h"
#include "runtime/state.h"
#include "tensor/limits.h"

namespace ge::runtime {
namespace {

constexpr int64_t kFirstRows = 512;  // committed at once at least; untouched pages cost nothing
// Pieces of address space that all states together may be cut into: a process has some 65,000, for all that it maps.
constexpr int64_t kMaxPieces = 8192;
std::atomic<int64_t> pieces{0};

int64_t page() {
  static const int64_t size = sysconf(_SC_PAGESIZE);
  return size;
}
int64_t down(int64_t n) { return n / page() * page(); }
int64_t up(int64_t n) { return down(n + page() - 1); }

}  // namespace

StateMemory::StateMemory(StateMemory&& o) noexcept
    : base_(std::exchange(o.base_, nullptr)), size_(std::exchange(o.size_, 0)), blocks_(o.blocks_), capacity_(o.capacity_), row_(o.row_), rows_(o.rows_), cut_(std::exchange(o.cut_, false)) {}

StateMemory::~StateMemory() { release(); }

void StateMemory::release() {
  if (base_) munmap(base_, size_);
  if (cut_) pieces -= blocks_;
  base_ = nullptr, cut_ = false;
}

// Whether the memory may be cut into pieces, of which only the first rows are committed.
bool StateMemory::cut() {
  if (cut_) return true;
  if (pieces.fetch_add(blocks_) + blocks_ <= kMaxPieces) return cut_ = true;
  pieces -= blocks_;
  return false;
}

Status StateMemory::reserve(int64_t blocks, int64_t capacity, int64_t row_bytes) {
  if (base_ && blocks == blocks_ && capacity == capacity_ && row_bytes == row_) return ok();
  int64_t bytes;
  if (blocks < 0 || capacity < 0 || row_bytes < 0 || __builtin_mul_overflow(blocks, capacity, &bytes) || __builtin_mul_overflow(bytes, row_bytes, &bytes) || bytes > kMaxTensorBytes)
    return error(code::kTooLarge, "The capacity of a state is too large.", "", "compile the model with a smaller one (--state=in:out:axis:capacity)");
  auto size = static_cast<size_t>(up(std::max<int64_t>(bytes, 1)));
  void* p = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return error(code::kOutOfMemory, format("{} of address space for a state cannot be had.", bytes_text(static_cast<double>(size))), "the address space of the process is limited",
                 "raise the limit, or compile the model with a smaller capacity (--state=in:out:axis:capacity)");
  madvise(p, size, MADV_NOHUGEPAGE);   // a huge page would commit many rows of which one is used
  release();
  base_ = static_cast<std::byte*>(p), size_ = size;
  blocks_ = blocks, capacity_ = capacity, row_ = row_bytes, rows_ = 0;
  return ok();
}

// In steps that double, so that there are few: pages that are never touched take no memory.
Status StateMemory::commit(int64_t rows) {
  if (rows <= rows_) return ok();
  rows = std::min(capacity_, std::max({rows, 2 * rows_, kFirstRows}));
  auto allow = [&](int64_t from, int64_t to) { return from >= to || mprotect(base_ + from, static_cast<size_t>(to - from), PROT_READ | PROT_WRITE) == 0; };
  bool done = rows == capacity_ || cut();
  for (int64_t b = 0; b < blocks_ && done && rows < capacity_; ++b) done = allow(down((b * capacity_ + rows_) * row_), up((b * capacity_ + rows) * row_));
  // All of it where that makes too many pieces for the system.
  if ((rows == capacity_ || !done) && !allow(0, static_cast<int64_t>(size_)))
    return error(code::kOutOfMemory, format("{} for a state cannot be had.", bytes_text(static_cast<double>(blocks_ * rows * row_))));
  rows_ = done ? rows : capacity_;
  return ok();
}

void StateMemory::clear() {
  if (base_) madvise(base_, size_, MADV_DONTNEED);
}

int64_t StateMemory::resident() const {
  if (!base_) return 0;
  int64_t pages = 0, done = 0;
  std::vector<unsigned char> map;
  for (int64_t b = 0; b < blocks_; ++b) {
    int64_t from = std::max(done, down(b * capacity_ * row_)), to = up((b * capacity_ + rows_) * row_);
    if (from >= to) continue;
    done = to;
    map.resize(static_cast<size_t>((to - from) / page()));
    if (mincore(base_ + from, static_cast<size_t>(to - from), map.data())) continue;
    pages += std::count_if(map.begin(), map.end(), [](unsigned char c) { return c & 1; });
  }
  return pages * page();
}

}  // namespace ge::runtime
