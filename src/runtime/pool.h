// The one worker pool of the process. A model run is driven by its caller: Team::parallel()
// publishes a task, the caller works on its chunks, idle workers help, and it returns when all
// chunks are done. A run never waits for a worker to come, only for chunks that one has already
// taken. Which thread computes a chunk changes nothing in the result: cutting a task is the
// business of kernels.
//
// Workers follow a run from task to task, spin at most 50 us without work, then sleep. A child
// after fork gets a pool of its own on first use.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "runtime/cpu_count.h"

namespace ge::runtime {

struct Slot;
class Pool;

// Rank 0 is the caller; a helper has one of 1..threads-1, its own for the time it helps in the run.
using ChunkFn = Status (*)(void* ctx, int64_t chunk, int rank);

// For the life of the object on its thread: denormals are zero, rounding is to nearest, no traps.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  uint64_t saved_;
};

// One model run in flight. Made, used and destroyed on one thread; parallel() is not called from a
// chunk. Allocates nothing once the pool has its workers.
class Team {
 public:
  // threads: a cap for this run (0: default_threads()), never above available_threads().
  explicit Team(int threads = 0);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Ranks are below this; 1 when the process has no room for another parallel run.
  int threads() const { return threads_; }

  // Calls fn for every chunk. After an error chunks not yet begun are left out; one of the errors
  // is returned.
  Status parallel(int64_t chunks, ChunkFn fn, void* ctx);

 private:
  FlushDenormals denormals_;
  Slot* slot_ = nullptr;
  Pool* pool_ = nullptr;
  int threads_ = 1;
};

// For tests: stands for available_threads() and default_threads() in runs that begin later; 0 ends
// it.
void set_threads_for_test(int threads);

struct PoolCounts {
  int workers = 0;
  int sleeping = 0;
  int64_t wakes = 0;  // futex calls that woke workers, since the pool began
};
PoolCounts pool_counts();

}  // namespace ge::runtime
