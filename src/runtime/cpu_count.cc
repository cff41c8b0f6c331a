#include "runtime/cpu_count.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/text.h"

namespace ge::runtime {
namespace {

std::string read_all(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool positive(std::string_view text, int64_t& out) {
  text = trim(text);
  auto result = std::from_chars(text.data(), text.data() + text.size(), out);
  return result.ec == std::errc() && out > 0;
}

int cpus(std::string_view quota, std::string_view period) {
  int64_t q = 0, p = 0;
  if (!positive(quota, q) || !positive(period, p)) return 0;  // "max" or -1: no limit
  return static_cast<int>(std::min<int64_t>((q + p - 1) / p, 1 << 20));
}

int quota_v2(const std::string& folder) {
  std::string text = read_all(folder + "/cpu.max");
  size_t space = text.find(' ');
  return space == std::string::npos ? 0 : cpus(text.substr(0, space), text.substr(space + 1));
}

int quota_v1(const std::string& folder) {
  return cpus(read_all(folder + "/cpu.cfs_quota_us"), read_all(folder + "/cpu.cfs_period_us"));
}

// The least quota of a group and all above it. In a container the group's own path is often not
// mounted; then the root of the mount stands for it, and the loop ends there anyway.
int least(const std::string& root, std::string path, int (*quota)(const std::string&)) {
  int best = 0;
  while (true) {
    int here = quota(root + path);
    if (here > 0) best = best == 0 ? here : std::min(best, here);
    size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return best;
    path.resize(slash);
  }
}

}  // namespace

int cgroup_quota(std::string_view text, const std::string& mount) {
  int best = 0;
  auto limit = [&](int quota) {
    if (quota > 0) best = best == 0 ? quota : std::min(best, quota);
  };
  for (const std::string& line : split(text, '\n')) {
    // hierarchy:controllers:path; version 2 has no controllers.
    size_t a = line.find(':'), b = a == std::string::npos ? a : line.find(':', a + 1);
    if (b == std::string::npos) continue;
    std::string controllers = line.substr(a + 1, b - a - 1), path = line.substr(b + 1);
    while (!path.empty() && path.back() == '/') path.pop_back();
    if (controllers.empty()) {
      limit(least(mount, path, quota_v2));
      limit(least(mount + "/unified", path, quota_v2));
      continue;
    }
    std::vector<std::string> names = split(controllers, ',');
    if (std::find(names.begin(), names.end(), "cpu") == names.end()) continue;
    limit(least(mount + "/" + controllers, path, quota_v1));
    limit(least(mount + "/cpu", path, quota_v1));
  }
  return best;
}

int available_threads() {
  // Not a local static: a fork during its first use would leave the child a locked guard.
  static std::atomic<int> count{0};
  int n = count.load(std::memory_order_relaxed);
  if (n > 0) return n;
  // The process's mask, not the calling thread's: a caller pinned to one CPU must not pin the pool.
  cpu_set_t mask;
  if (sched_getaffinity(getpid(), sizeof mask, &mask) == 0) n = CPU_COUNT(&mask);
  if (n <= 0) n = static_cast<int>(std::thread::hardware_concurrency());
  int quota = cgroup_quota(read_all("/proc/self/cgroup"), "/sys/fs/cgroup");
  n = std::max(1, quota > 0 ? std::min(n, quota) : n);
  count.store(n, std::memory_order_relaxed);
  return n;
}

int default_threads() {
  int available = available_threads();
  for (const char* name : {"GE_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const char* value = std::getenv(name);
    int64_t n = 0;  // OMP_NUM_THREADS may be a list; its first number counts
    if (value && positive(value, n)) return static_cast<int>(std::min<int64_t>(available, n));
  }
  return available;
}

}  // namespace ge::runtime
