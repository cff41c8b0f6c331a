#include "runtime/context.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <utility>

#include "base/text.h"
#include "runtime/chunk.h"
#include "runtime/fault_text.h"

namespace ge::runtime {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kWorthHuge = size_t{16} << 20;  // new bytes; for fewer one slow huge page costs more than all small ones

double thread_ms() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

// Takes huge pages one by one, and no more of them once they cost more than small ones would: where memory is
// fragmented the kernel first moves others' pages together, several times what the faults of small pages take. The
// process does not try again then.
void take_huge_pages(std::byte* first, size_t bytes) {
  constexpr double kSmallPages = 0.5, kSlack = 1.0;  // ms of a huge page's worth of small faults; ms in all
  static std::atomic<bool> dear{false};
  if (dear) return;
  const double start = thread_ms();
  madvise(first, bytes, MADV_HUGEPAGE);
  for (size_t at = 0; at < bytes; at += kHugePage) {
    *static_cast<volatile std::byte*>(first + at) = std::byte{};
    const size_t next = std::min(bytes, at + kHugePage);
    if (thread_ms() - start < kSlack + kSmallPages * static_cast<double>(next) / kHugePage) continue;
    if (next < bytes) madvise(first + next, bytes - next, MADV_NOHUGEPAGE), dear = true;
    return;
  }
}

// Address space for so many bytes, a large one at the start of a huge page.
std::byte* reserve(size_t bytes) {
  size_t slack = bytes >= kWorthHuge ? kHugePage : 0;
  void* p = mmap(nullptr, bytes + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  auto* first = static_cast<std::byte*>(p);
  if (!slack) return first;
  size_t skip = (kHugePage - reinterpret_cast<uintptr_t>(p) % kHugePage) % kHugePage;
  if (skip) munmap(first, skip);
  if (skip < slack) munmap(first + skip + bytes, slack - skip);
  return first + skip;
}

// Memory for an arena that grows from `old_bytes` (0: none yet): the pages at hand move to it, so that only what is new
// costs faults. A large one asks for huge pages: its first run then takes a few faults instead of thousands, and later
// ones miss the TLB less. Null where there is no memory. The old arena is gone in any case; moved: what it held is there.
std::byte* grow_arena(std::byte* old, size_t old_bytes, size_t bytes, bool& moved) {
  std::byte* to = reserve(bytes);
  void* p = MAP_FAILED;
  if (to && old) {
    madvise(old, old_bytes, MADV_NOHUGEPAGE);  // one mapping again, as moving asks for; huge pages at hand stay
    p = mremap(old, old_bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
  }
  moved = p != MAP_FAILED;
  if (p == MAP_FAILED && old) munmap(old, old_bytes), old_bytes = 0;
  if (p == MAP_FAILED && to) p = mmap(to, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (p == MAP_FAILED) {
    if (to) munmap(to, bytes);
    return nullptr;
  }
  const size_t from = (old_bytes + kHugePage - 1) / kHugePage * kHugePage;
  if (bytes >= kWorthHuge && from < bytes) take_huge_pages(to + from, bytes - from);
  return to;
}

}  // namespace

Context::~Context() {
  if (arena_) munmap(arena_, arena_size_);
}

void Context::trim() {
  frame_.reset();
  blocks_.trim();
  if (arena_) madvise(arena_, arena_size_, MADV_DONTNEED);
  kept_.assign(kept_.size(), false);
}

Status Context::attach(const std::shared_ptr<const Binding>& binding, std::span<const std::byte> weights) {
  const Binding& b = *binding;
  size_t need = (static_cast<size_t>(b.arena) + 4095) / 4096 * 4096;
  if (need > arena_size_) {
    binding_ = nullptr;
    bool moved = false;
    arena_ = grow_arena(arena_, std::exchange(arena_size_, 0), need, moved);
    if (!moved) kept_.assign(kept_.size(), false);
    if (!arena_)
      return no_arena(b, need);
    arena_size_ = need;
    // Its pages come with those of the arena, not with a later shape that is the first to want it.
#ifdef MADV_POPULATE_WRITE
    if (b.kept && !moved) madvise(arena_, static_cast<size_t>(b.kept), MADV_POPULATE_WRITE);
#endif
  }
  binding_ = nullptr;
  kept_.resize(b.program->tasks.size());
  patches_.clear();
  views_.assign(b.views.begin(), b.views.end());
  for (size_t i = 0; i < views_.size(); ++i) {
    const BoundView& at = b.placed[i];
    if (at.buffer < 0) continue;
    auto& buffer = *b.program->buffers[static_cast<size_t>(at.buffer)];
    switch (buffer.kind) {
      case om::BufferKind::arena:
        views_[i].data = arena_ + b.buffer_offset[static_cast<size_t>(at.buffer)] + at.byte_offset;
        break;
      case om::BufferKind::weight:
        views_[i].data = const_cast<std::byte*>(weights.data()) + buffer.weight_offset + at.byte_offset;
        break;
      default:
        patches_.push_back({static_cast<int32_t>(i), buffer.index, buffer.kind, at.byte_offset});
    }
  }
  calls_.resize(b.tasks.size());
  for (size_t t = 0; t < b.tasks.size(); ++t) {
    const BoundTask& task = b.tasks[t];
    kernels::Call& c = calls_[t];
    c.in = std::span<const View>(views_).subspan(static_cast<size_t>(task.view0), static_cast<size_t>(task.inputs));
    c.out = std::span<const View>(views_).subspan(static_cast<size_t>(task.view0 + task.inputs), static_cast<size_t>(task.outputs));
    c.ints = std::span(b.ints).subspan(static_cast<size_t>(task.int0), task.call->ints.size());
    c.floats = task.call->floats;
    c.blob = std::as_bytes(std::span(task.call->blob));
    c.state = task.work.state.get();
    c.shared = task.work.shared ? arena_ + task.shared_offset : nullptr;
    c.scratch = task.work.scratch ? arena_ + task.scratch_offset : nullptr;
  }
  binding_ = binding;
  return ok();
}

Status Context::run(const std::shared_ptr<const Binding>& binding, std::span<const std::byte> weights,
                    std::span<const void* const> inputs, std::span<void* const> outputs, Profile* profile, const StateLease* states) {
  if (binding_ != binding) GE_RETURN_IF_ERROR(attach(binding, weights));
  for (auto& p : patches_) {
    auto index = static_cast<size_t>(p.index);
    auto* base = p.kind == om::BufferKind::state    ? states->address(index)
                 : p.kind == om::BufferKind::output ? static_cast<std::byte*>(outputs[index])
                                                    : const_cast<std::byte*>(static_cast<const std::byte*>(inputs[index]));
    views_[static_cast<size_t>(p.view)].data = base + p.byte_offset;
  }
  const Binding& b = *binding;
  Team run(b.threads);
  auto clock = [] { return std::chrono::steady_clock::now(); };
  auto begin = profile ? clock() : std::chrono::steady_clock::time_point();
  for (size_t t = 0; t < b.tasks.size(); ++t) {
    const BoundTask& task = b.tasks[t];
    auto start = profile ? clock() : begin;
    Chunks chunks{&calls_[t], &task};
    const auto at = static_cast<size_t>(task.task);
    Status s = kept_[at] ? ok() : run.parallel(task.work.chunks, run_chunk, &chunks);
    if (!s.ok()) {
      Error e = std::move(s).take();
      if (e.node.empty()) e.node = b.program->tasks[at]->name;
      return e;
    }
    kept_[at] = task.work.once && (kept_[at] || task.work.chunks > 0);
    if (profile) {
      auto us = [](auto d) { return std::chrono::duration<double, std::micro>(d).count(); };
      profile->entries.push_back({task.task, us(start - begin), us(clock() - start)});
    }
  }
  return ok();
}

Status Context::run(const om::Package& package, int program, BindingCache& bindings, int threads,
                    std::span<const Value> inputs, Sink& outputs, Profile* profile, Texts* texts, StateLease* states) {
  if (!frame_) frame_ = std::make_unique<Frame>(program);
  Team team(threads);
  Execution x{package, bindings, blocks_, team, profile, texts};
  x.states = states;
  return frame_->run(x, inputs, outputs);
}

}  // namespace ge::runtime
