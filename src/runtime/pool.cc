#include "runtime/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <mutex>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ge::runtime {
namespace {

constexpr int kSlots = 64;  // runs that have helpers at one time; the bits of Pool::busy_
constexpr int kLeftBits = 24;
constexpr uint64_t kLeftMask = (uint64_t{1} << kLeftBits) - 1;
constexpr int kSeatsInWord = 24;
constexpr int kSeatWords = 11;
constexpr int kMaxThreads = 1 + kSeatsInWord * kSeatWords;
constexpr int64_t kSpinNs = 50'000;

std::atomic<int> threads_for_test{0};

inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec;
}

// A bounded wait: true as long as less than the spinning time has passed since the last restart.
class Spinner {
 public:
  void restart() { count_ = 0, until_ = 0; }
  bool spin() {
    relax();
    if (++count_ % 32 != 0) return true;
    int64_t now = now_ns();
    if (until_ == 0) until_ = now + kSpinNs;
    return now < until_;
  }

 private:
  uint32_t count_ = 0;
  int64_t until_ = 0;
};

void futex_wait(std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

}  // namespace

// Where a run meets its helpers. Lives as long as the process, so that a late helper never touches
// freed memory. A helper reads the task only after it took a ticket: until it reports that ticket
// as done the owner cannot go on, so what it reads stands still.
struct alignas(64) Slot {
  std::atomic<uint64_t> ticket{0};  // [run number | tickets left]
  std::atomic<ChunkFn> fn{nullptr};
  std::atomic<void*> ctx{nullptr};
  std::atomic<int64_t> chunks{0}, grain{1};  // a ticket stands for `grain` chunks
  std::atomic<uint32_t> tickets{0};

  alignas(64) std::atomic<uint32_t> done{0};  // tickets that helpers report
  std::atomic<uint32_t> owner_sleeps{0};
  std::atomic<bool> failed{false};
  Status status;  // written by whoever sets `failed`, read by the owner once all is done

  alignas(64) std::atomic<uint64_t> seats[kSeatWords] = {};  // [run number | free ranks]
  uint64_t number = 0;                                       // of the run; the owner's
  int seat_words = 0;

  Status run_ticket(uint32_t left, int rank) {
    int64_t step = grain.load(std::memory_order_relaxed);
    int64_t all = chunks.load(std::memory_order_relaxed);
    int64_t first = (tickets.load(std::memory_order_relaxed) - int64_t{left}) * step;
    ChunkFn call = fn.load(std::memory_order_relaxed);
    void* with = ctx.load(std::memory_order_relaxed);
    for (int64_t c = first; c < std::min(first + step, all); ++c)
      if (Status s = call(with, c, rank); !s.ok()) return s;
    return ok();
  }

  // Takes tickets of the run while there are any; returns how many, those that an error cancelled
  // included.
  uint32_t work(uint64_t run, int rank) {
    uint32_t mine = 0;
    uint64_t t = ticket.load(std::memory_order_acquire);
    while (t >> kLeftBits == run && (t & kLeftMask) != 0) {
      if (!ticket.compare_exchange_weak(t, t - 1, std::memory_order_acq_rel,
                                        std::memory_order_acquire))
        continue;
      ++mine;
      Status s = run_ticket(static_cast<uint32_t>(t & kLeftMask), rank);
      t = ticket.load(std::memory_order_acquire);
      if (s.ok()) continue;
      if (!failed.exchange(true, std::memory_order_acq_rel)) status = std::move(s);
      while ((t & kLeftMask) != 0 &&
             !ticket.compare_exchange_weak(t, run << kLeftBits, std::memory_order_acq_rel)) {
      }
      return mine + static_cast<uint32_t>(t & kLeftMask);
    }
    return mine;
  }

  // A rank for a helper in the run, or 0.
  int take_seat(uint64_t run) {
    for (int word = 0; word < kSeatWords; ++word) {
      uint64_t s = seats[word].load(std::memory_order_acquire);
      while (s >> kSeatsInWord == run && (s & kLeftMask) != 0) {
        if (seats[word].compare_exchange_weak(s, s & (s - 1), std::memory_order_acq_rel))
          return 1 + word * kSeatsInWord + std::countr_zero(s);
      }
    }
    return 0;
  }

  void leave_seat(uint64_t run, int rank) {
    int word = (rank - 1) / kSeatsInWord;
    uint64_t bit = uint64_t{1} << ((rank - 1) % kSeatsInWord);
    uint64_t s = seats[word].load(std::memory_order_relaxed);
    while (s >> kSeatsInWord == run &&
           !seats[word].compare_exchange_weak(s, s | bit, std::memory_order_acq_rel)) {
    }
  }

  int free_seats() const {
    int count = 0;
    for (int w = 0; w < seat_words; ++w)
      count += std::popcount(seats[w].load(std::memory_order_relaxed) & kLeftMask);
    return count;
  }

  void report(uint32_t count) {
    done.fetch_add(count);
    if (owner_sleeps.load() != 0) futex_wake(done, 1);
  }

  void await(uint32_t count) {
    Spinner spinner;
    while (done.load(std::memory_order_acquire) != count) {
      if (spinner.spin()) continue;
      // The helper may have lost its CPU to us.
      owner_sleeps.store(1);
      uint32_t seen = done.load();
      if (seen != count) futex_wait(done, seen);
      owner_sleeps.store(0, std::memory_order_relaxed);
    }
  }
};
static_assert(kSeatsInWord == kLeftBits, "one mask serves tickets and seats");

class Pool {
 public:
  // Starts workers until there are `count`; fewer when the system refuses.
  void ensure(int count) {
    if (workers_.load(std::memory_order_acquire) >= count) return;
    std::lock_guard lock(start_);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // the host's signals are not for our threads
    while (workers_.load(std::memory_order_relaxed) < count && start_one()) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  Slot* take_slot() {
    uint64_t busy = busy_.load(std::memory_order_relaxed);
    while (~busy != 0) {
      int i = std::countr_one(busy);
      if (busy_.compare_exchange_weak(busy, busy | uint64_t{1} << i, std::memory_order_acq_rel))
        return &slots_[i];
    }
    return nullptr;
  }
  void free_slot(Slot* slot) {
    busy_.fetch_and(~(uint64_t{1} << (slot - slots_)), std::memory_order_acq_rel);
  }

  // Wakes as many as the task and the run have room for, less those already on their way.
  void wake(const Slot& slot, uint32_t tickets) {
    int asleep = sleepers_.load();
    if (asleep <= 0) return;
    int want = static_cast<int>(std::min<uint32_t>(tickets - 1, kMaxThreads));
    want = std::min(want, slot.free_seats()) -
           static_cast<int>(tokens_.load(std::memory_order_relaxed));
    while (want > 0 && asleep > 0) {
      int count = std::min(want, asleep);
      if (!sleepers_.compare_exchange_weak(asleep, asleep - count)) continue;
      tokens_.fetch_add(static_cast<uint32_t>(count));
      wakes_.fetch_add(1, std::memory_order_relaxed);
      futex_wake(tokens_, count);
      return;
    }
  }

  PoolCounts counts() const { return {workers_.load(), sleepers_.load(), wakes_.load()}; }

 private:
  struct Place {
    Slot* slot = nullptr;
    uint64_t run = 0;
    int rank = 0;
  };

  bool start_one() {
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    // The process's CPUs, not those of the thread that happens to come first.
    cpu_set_t mask;
    if (sched_getaffinity(getpid(), sizeof mask, &mask) == 0)
      pthread_attr_setaffinity_np(&attr, sizeof mask, &mask);
    pthread_t thread;
    bool started = pthread_create(
                       &thread, &attr,
                       [](void* p) -> void* {
                         static_cast<Pool*>(p)->serve();
                         return nullptr;
                       },
                       this) == 0;
    pthread_attr_destroy(&attr);
    if (started) workers_.fetch_add(1, std::memory_order_release);
    return started;
  }

  [[noreturn]] void serve() {
    FlushDenormals denormals;
    int self = names_.fetch_add(1, std::memory_order_relaxed);
    char name[16];
    std::snprintf(name, sizeof name, "ge-worker-%d", self % 1000);
    pthread_setname_np(pthread_self(), name);
    Place place;
    Spinner spinner;
    while (true) {
      if (help(place, self)) {
        spinner.restart();
      } else if (!spinner.spin()) {
        leave(place);
        sleep();
        spinner.restart();
      }
    }
  }

  void leave(Place& place) {
    if (place.slot) place.slot->leave_seat(place.run, place.rank);
    place = {};
  }

  // Works where it sits, else wherever a task has tickets and a seat. False: nothing to do.
  bool help(Place& place, int self) {
    if (place.slot && work_at(place)) return true;
    uint64_t busy = std::rotr(busy_.load(std::memory_order_acquire), self % kSlots);
    for (; busy != 0; busy &= busy - 1) {
      Slot* slot = &slots_[(std::countr_zero(busy) + self) % kSlots];
      uint64_t t = slot->ticket.load(std::memory_order_acquire);
      if ((t & kLeftMask) == 0 || (slot == place.slot && t >> kLeftBits == place.run)) continue;
      int rank = slot->take_seat(t >> kLeftBits);
      if (rank == 0) continue;
      leave(place);
      place = {slot, t >> kLeftBits, rank};
      if (work_at(place)) return true;
    }
    return false;
  }

  bool work_at(const Place& place) {
    uint32_t count = place.slot->work(place.run, place.rank);
    if (count > 0) place.slot->report(count);
    return count > 0;
  }

  bool any_work() const {
    for (uint64_t busy = busy_.load(); busy != 0; busy &= busy - 1)
      if (slots_[std::countr_zero(busy)].ticket.load() & kLeftMask) return true;
    return false;
  }

  // Whoever wakes a sleeper takes it out of the count and leaves a token; so a run that finds the
  // count at zero makes no system call.
  void sleep() {
    int asleep = sleepers_.fetch_add(1) + 1;
    if (any_work()) {
      while (asleep > 0)
        if (sleepers_.compare_exchange_weak(asleep, asleep - 1)) return;
    }
    while (true) {
      uint32_t tokens = tokens_.load();
      while (tokens > 0)
        if (tokens_.compare_exchange_weak(tokens, tokens - 1)) return;
      futex_wait(tokens_, 0);
    }
  }

  alignas(64) std::atomic<uint64_t> busy_{0};
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<uint32_t> tokens_{0};
  std::atomic<int64_t> wakes_{0};
  std::atomic<int> workers_{0}, names_{1};
  std::mutex start_;
  Slot slots_[kSlots];
};

namespace {

// Never freed: workers run until the process ends.
std::atomic<Pool*> the_pool{nullptr};

// The child of a fork has no workers and maybe a lock that nobody will open: it begins anew.
[[maybe_unused]] const int at_fork =
    pthread_atfork(nullptr, nullptr, [] { the_pool.store(nullptr, std::memory_order_relaxed); });

Pool& pool() {
  Pool* p = the_pool.load(std::memory_order_acquire);
  if (p) return *p;
  Pool* fresh = new Pool;
  if (the_pool.compare_exchange_strong(p, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;
  return *p;
}

}  // namespace

Team::Team(int threads) {
  int test = threads_for_test.load(std::memory_order_relaxed);
  int most = test > 0 ? test : available_threads();
  int want = threads > 0 ? threads : test > 0 ? test : default_threads();
  want = std::min({want, most, kMaxThreads});
  if (want <= 1) return;
  pool_ = &pool();
  slot_ = pool_->take_slot();
  if (!slot_) return;
  threads_ = want;
  pool_->ensure(want - 1);
  uint64_t run = ++slot_->number;
  int helpers = want - 1;
  slot_->seat_words = (helpers + kSeatsInWord - 1) / kSeatsInWord;
  for (int w = 0; w < kSeatWords; ++w) {
    int here = std::clamp(helpers - w * kSeatsInWord, 0, kSeatsInWord);
    slot_->seats[w].store(run << kSeatsInWord | ((uint64_t{1} << here) - 1),
                          std::memory_order_release);
  }
  slot_->ticket.store(run << kLeftBits, std::memory_order_release);
}

Team::~Team() {
  if (slot_) pool_->free_slot(slot_);
}

Status Team::parallel(int64_t chunks, ChunkFn fn, void* ctx) {
  if (chunks <= 1 || !slot_) {
    for (int64_t c = 0; c < chunks; ++c)
      if (Status s = fn(ctx, c, 0); !s.ok()) return s;
    return ok();
  }
  Slot& slot = *slot_;
  int64_t grain = chunks / static_cast<int64_t>(kLeftMask) + 1;
  uint32_t tickets = static_cast<uint32_t>((chunks + grain - 1) / grain);
  slot.fn.store(fn, std::memory_order_relaxed);
  slot.ctx.store(ctx, std::memory_order_relaxed);
  slot.chunks.store(chunks, std::memory_order_relaxed);
  slot.grain.store(grain, std::memory_order_relaxed);
  slot.tickets.store(tickets, std::memory_order_relaxed);
  slot.done.store(0, std::memory_order_relaxed);
  slot.ticket.store(slot.number << kLeftBits | tickets);
  pool_->wake(slot, tickets);
  uint32_t mine = slot.work(slot.number, 0);
  slot.await(tickets - mine);
  if (!slot.failed.load(std::memory_order_relaxed)) return ok();
  slot.failed.store(false, std::memory_order_relaxed);
  return std::exchange(slot.status, ok());
}

FlushDenormals::FlushDenormals() {
#if defined(__x86_64__)
  constexpr uint32_t kMaskAll = 0x1f80, kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  saved_ = _mm_getcsr();
  _mm_setcsr(kMaskAll | kFlushToZero | kDenormalsAreZero);
#elif defined(__aarch64__)
  asm volatile("mrs %0, fpcr" : "=r"(saved_));
  asm volatile("msr fpcr, %0" : : "r"(uint64_t{1} << 24));
#else
  saved_ = 0;
#endif
}

FlushDenormals::~FlushDenormals() {
#if defined(__x86_64__)
  _mm_setcsr(static_cast<uint32_t>(saved_));
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" : : "r"(saved_));
#endif
}

void set_threads_for_test(int threads) {
  threads_for_test.store(threads, std::memory_order_relaxed);
}

PoolCounts pool_counts() {
  Pool* p = the_pool.load(std::memory_order_acquire);
  return p ? p->counts() : PoolCounts{};
}

}  // namespace ge::runtime
