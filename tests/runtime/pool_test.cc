#include "runtime/pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace ge::runtime {
namespace {

struct Threads {
  explicit Threads(int n) { set_threads_for_test(n); }
  ~Threads() { set_threads_for_test(0); }
};

struct Sum {
  std::vector<std::atomic<int>> seen;
  std::vector<std::atomic<int>> inside;  // by rank: how many are in a chunk with it
  std::atomic<int> clashes{0};
  int threads;
  Sum(int64_t chunks, int t)
      : seen(static_cast<size_t>(chunks)), inside(static_cast<size_t>(t)), threads(t) {}
  static Status chunk(void* ctx, int64_t c, int rank) {
    Sum& s = *static_cast<Sum*>(ctx);
    if (rank < 0 || rank >= s.threads) {
      ++s.clashes;
      return ok();
    }
    if (s.inside[static_cast<size_t>(rank)].fetch_add(1) != 0) ++s.clashes;
    s.seen[static_cast<size_t>(c)].fetch_add(1);
    s.inside[static_cast<size_t>(rank)].fetch_sub(1);
    return ok();
  }
  bool all(int times) const {
    for (const auto& n : seen)
      if (n.load() != times) return false;
    return clashes.load() == 0;
  }
};

TEST(Pool, EveryChunkOnceForAnyNumberOfThreads) {
  for (int threads : {1, 2, 3, 8, 40}) {
    Threads use(threads);
    Team run;
    ASSERT_EQ(run.threads(), threads);
    for (int64_t chunks : {0, 1, 2, 3, 7, 64, 1000, 4099}) {
      Sum sum(chunks, threads);
      for (int i = 1; i <= 20; ++i) {
        ASSERT_TRUE(run.parallel(chunks, Sum::chunk, &sum).ok());
        ASSERT_TRUE(sum.all(i)) << chunks << " chunks, " << threads << " threads, round " << i;
      }
    }
  }
}

TEST(Pool, MoreChunksThanTicketsHold) {
  Threads use(3);
  Team run;
  constexpr int64_t kChunks = (int64_t{1} << 25) + 12345;
  struct State {
    std::atomic<int64_t> part[3] = {};
  } state;
  auto fn = [](void* ctx, int64_t c, int rank) {
    static_cast<State*>(ctx)->part[rank].fetch_add(c, std::memory_order_relaxed);
    return ok();
  };
  ASSERT_TRUE(run.parallel(kChunks, fn, &state).ok());
  EXPECT_EQ(state.part[0] + state.part[1] + state.part[2], kChunks * (kChunks - 1) / 2);
}

TEST(Pool, HelpersDoHelp) {
  Threads use(4);
  Team run;
  struct State {
    std::atomic<uint32_t> ranks{0};
  } state;
  auto fn = [](void* ctx, int64_t, int rank) {
    static_cast<State*>(ctx)->ranks.fetch_or(1u << rank);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return ok();
  };
  for (int i = 0; i < 200 && state.ranks.load() != 0xf; ++i)
    ASSERT_TRUE(run.parallel(64, fn, &state).ok());
  EXPECT_EQ(state.ranks.load(), 0xfu);
}

TEST(Pool, ThousandsOfRuns) {
  Threads use(3);
  for (int i = 0; i < 5000; ++i) {
    Team run;
    Sum a(5, 3), b(2, 3);
    ASSERT_TRUE(run.parallel(5, Sum::chunk, &a).ok());
    ASSERT_TRUE(run.parallel(2, Sum::chunk, &b).ok());
    ASSERT_TRUE(a.all(1) && b.all(1)) << "run " << i;
  }
}

TEST(Pool, ManyCallersAtOnce) {
  Threads use(4);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 12; ++t) {
    callers.emplace_back([&wrong, t] {
      for (int i = 0; i < 200; ++i) {
        Team run(1 + (t + i) % 4);
        for (int task = 0; task < 5; ++task) {
          Sum sum(1 + (t * 7 + i + task) % 23, run.threads());
          if (!run.parallel(static_cast<int64_t>(sum.seen.size()), Sum::chunk, &sum).ok() ||
              !sum.all(1))
            ++wrong;
        }
      }
    });
  }
  for (auto& c : callers) c.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Pool, MoreRunsThanSlotsRunAlone) {
  Threads use(2);
  std::vector<std::unique_ptr<Team>> runs;
  for (int i = 0; i < 70; ++i) runs.push_back(std::make_unique<Team>());
  EXPECT_EQ(runs[0]->threads(), 2);
  EXPECT_EQ(runs[69]->threads(), 1);
  Sum sum(9, 2);
  for (auto& run : runs) ASSERT_TRUE(run->parallel(9, Sum::chunk, &sum).ok());
  EXPECT_TRUE(sum.all(70));
  while (!runs.empty()) runs.pop_back();
  EXPECT_EQ(Team().threads(), 2);
}

TEST(Pool, AnErrorStopsTheTaskAndOnlyIt) {
  for (int threads : {1, 3}) {
    Threads use(threads);
    Team run;
    struct State {
      std::atomic<int64_t> count{0};
    } state;
    auto fn = [](void* ctx, int64_t c, int) -> Status {
      static_cast<State*>(ctx)->count.fetch_add(1);
      if (c == 10) return error(code::kRunFailed, "index out of range");
      return ok();
    };
    constexpr int kRounds = 200, kChunks = 100'000;
    for (int i = 0; i < kRounds; ++i) {
      Status s = run.parallel(kChunks, fn, &state);
      ASSERT_FALSE(s.ok());
      EXPECT_EQ(s.error().message, "index out of range");
      Sum sum(50, threads);
      ASSERT_TRUE(run.parallel(50, Sum::chunk, &sum).ok());
      ASSERT_TRUE(sum.all(1));
    }
    // In one round the failing thread may lose its CPU for long; not in all.
    EXPECT_LT(state.count.load(), int64_t{kRounds} * kChunks / 2);
  }
}

TEST(Pool, AllChunksFail) {
  Threads use(4);
  Team run;
  auto fn = [](void*, int64_t c, int) -> Status {
    return error(code::kRunFailed, std::to_string(c));
  };
  for (int i = 0; i < 500; ++i) ASSERT_FALSE(run.parallel(4, fn, nullptr).ok());
}

#if !defined(__SANITIZE_THREAD__)  // TSan refuses threads in the child of a process that has some
TEST(Pool, WorksInAForkedChild) {
  Threads use(3);
  Team before;
  Sum warm(50, 3);
  ASSERT_TRUE(before.parallel(50, Sum::chunk, &warm).ok());
  for (int round = 0; round < 5; ++round) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);
      bool good = pool_counts().workers == 0;
      {
        Team run;
        Sum sum(500, 3);
        for (int i = 0; i < 20; ++i) good = good && run.parallel(500, Sum::chunk, &sum).ok();
        good = good && sum.all(20) && pool_counts().workers == 2;
      }
      // The run that was open at the fork has lost its helpers; it still does its work.
      Sum old(50, 3);
      good = good && before.parallel(50, Sum::chunk, &old).ok() && old.all(1);
      _exit(good ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}
#endif

TEST(Pool, IdleWorkersSleepAndAreWokenOnce) {
  Threads use(4);
  Team run;
  Sum sum(64, 4);
  ASSERT_TRUE(run.parallel(64, Sum::chunk, &sum).ok());
  auto all_sleep = [] {
    for (int i = 0; i < 2000; ++i) {
      PoolCounts counts = pool_counts();
      if (counts.sleeping == counts.workers) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  };
  ASSERT_TRUE(all_sleep());
  timespec a, b;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
  EXPECT_LT((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec), 20e6);
  // One chunk, or a run of one thread, wakes nobody.
  int64_t wakes = pool_counts().wakes;
  ASSERT_TRUE(run.parallel(1, Sum::chunk, &sum).ok());
  Team alone(1);
  ASSERT_TRUE(alone.parallel(64, Sum::chunk, &sum).ok());
  EXPECT_EQ(pool_counts().wakes, wakes);
  ASSERT_TRUE(run.parallel(2, Sum::chunk, &sum).ok());
  EXPECT_EQ(pool_counts().wakes, wakes + 1);
}

float half_of(float x) {
  volatile float y = x;
  return y * 0.5f;
}

TEST(Pool, DenormalsAreZeroDuringARunOnly) {
  Threads use(3);
  ASSERT_NE(half_of(1.2e-38f), 0.0f);
  {
    Team run;
    std::atomic<int> kept{0};
    auto fn = [](void* ctx, int64_t, int) {
      if (half_of(1.2e-38f) != 0.0f) ++*static_cast<std::atomic<int>*>(ctx);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      return ok();
    };
    ASSERT_TRUE(run.parallel(100, fn, &kept).ok());
    EXPECT_EQ(kept.load(), 0);
  }
  EXPECT_NE(half_of(1.2e-38f), 0.0f);
}

TEST(CpuCount, TheLeastOfAll) {
  EXPECT_GE(available_threads(), 1);
  setenv("GE_NUM_THREADS", "1", 1);
  EXPECT_EQ(default_threads(), 1);
  setenv("GE_NUM_THREADS", "100000", 1);
  EXPECT_EQ(default_threads(), available_threads());
  setenv("GE_NUM_THREADS", "nonsense", 1);
  setenv("OMP_NUM_THREADS", "1,4", 1);
  EXPECT_EQ(default_threads(), 1);
  unsetenv("GE_NUM_THREADS");
  EXPECT_EQ(default_threads(), 1);
  unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(default_threads(), available_threads());
}

TEST(CpuCount, Quotas) {
  namespace fs = std::filesystem;
  fs::path mount = fs::path(testing::TempDir()) / ("ge_cgroup_" + std::to_string(getpid()));
  auto write = [&](const std::string& path, const std::string& text) {
    fs::create_directories((mount / path).parent_path());
    std::ofstream(mount / path) << text;
  };
  write("cpu.max", "max 100000\n");
  write("a/cpu.max", "250000 100000\n");
  write("a/b/cpu.max", "max 100000\n");
  write("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  write("cpu,cpuacct/x/cpu.cfs_quota_us", "150000\n");
  write("cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_quota("0::/\n", mount), 0);
  EXPECT_EQ(cgroup_quota("0::/a\n", mount), 3);
  EXPECT_EQ(cgroup_quota("0::/a/b\n", mount), 3);
  EXPECT_EQ(cgroup_quota("0::/not/mounted\n", mount), 0);
  EXPECT_EQ(cgroup_quota("4:memory:/x\n7:cpu,cpuacct:/x\n0::/a\n", mount), 2);
  EXPECT_EQ(cgroup_quota("7:cpu,cpuacct:/\n", mount), 0);
  EXPECT_EQ(cgroup_quota("", mount), 0);
  EXPECT_EQ(cgroup_quota("damaged\n::\n:", mount), 0);
  fs::remove_all(mount);
}

}  // namespace
}  // namespace ge::runtime
