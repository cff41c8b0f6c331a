#include "base/free_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <string_view>

#include "base/text.h"

namespace ge {
namespace {

constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

std::string read_all(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

size_t number(std::string_view text) {
  text = trim(text);
  size_t n = 0;
  auto read = std::from_chars(text.data(), text.data() + text.size(), n);
  return read.ec == std::errc() ? n : kUnlimited;   // "max", or no such file
}

size_t available() {
  std::string text = read_all("/proc/meminfo");
  const std::string_view key = "MemAvailable:";
  size_t at = text.find(key);
  if (at == std::string::npos) return kUnlimited;
  size_t kib = number(std::string_view(text).substr(at + key.size()));
  return kib == kUnlimited ? kib : kib * 1024;
}

}  // namespace

size_t cgroup_memory(const std::string& proc_self_cgroup, const std::string& mount) {
  size_t least = kUnlimited;
  for (const std::string& line : split(proc_self_cgroup, '\n')) {
    // hierarchy:controllers:path; version 2 has no controllers.
    size_t a = line.find(':'), b = a == std::string::npos ? a : line.find(':', a + 1);
    if (b == std::string::npos) continue;
    const bool v2 = b == a + 1;
    auto names = split(line.substr(a + 1, b - a - 1), ',');
    if (!v2 && std::find(names.begin(), names.end(), "memory") == names.end()) continue;
    std::string root = v2 ? mount : mount + "/memory", path = line.substr(b + 1);
    while (true) {
      least = std::min(least, number(read_all(root + path + (v2 ? "/memory.max" : "/memory.limit_in_bytes"))));
      size_t slash = path.rfind('/');
      if (path.empty() || slash == std::string::npos) break;
      path.resize(slash);
    }
  }
  return least;
}

size_t free_memory() { return std::min(available(), cgroup_memory(read_all("/proc/self/cgroup"), "/sys/fs/cgroup")); }

}  // namespace ge
