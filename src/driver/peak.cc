#include "driver/peak.h"

#include <algorithm>

#include "base/text.h"

namespace ge {
namespace {

constexpr size_t kShown = 8;

struct Alive {
  std::string name;
  int64_t bytes;
};

std::string size_text(int64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

// What lies in the arena while task `t` runs, largest first.
std::vector<Alive> alive_at(const runtime::Binding& b, const std::vector<std::string>& names, int32_t t) {
  auto& p = *b.program;
  std::vector<Alive> out;
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    const auto x = b.life(i);
    if (p.buffers[i]->kind == om::BufferKind::arena && b.buffer_bytes[i] > 0 && (!p.reuse || (x.first <= t && t <= x.last)))
      out.push_back({names[i], b.buffer_bytes[i]});
  }
  for (auto& task : b.tasks) {
    int64_t bytes = task.work.scratch * b.threads + task.work.shared;
    if (bytes > 0 && task.task == t) out.push_back({"scratch of " + p.tasks[static_cast<size_t>(task.task)]->name, bytes});
  }
  std::stable_sort(out.begin(), out.end(), [](auto& x, auto& y) { return x.bytes > y.bytes; });
  return out;
}

}  // namespace

Error over_limit(const runtime::Binding& b, const std::vector<std::string>& names, int64_t limit, bool searched) {
  auto& p = *b.program;
  int32_t peak = 0;
  int64_t most = -1;
  for (int32_t t = 0; t < static_cast<int32_t>(p.tasks.size()); ++t) {
    int64_t sum = 0;
    for (auto& a : alive_at(b, names, t)) sum += a.bytes;
    if (sum > most) most = sum, peak = t;
  }
  auto alive = alive_at(b, names, peak);
  std::vector<std::string> shown;
  for (size_t i = 0; i < alive.size() && i < kShown; ++i) shown.push_back(format("'{}' {}", alive[i].name, size_text(alive[i].bytes)));
  std::string list = join(shown, ", ");
  if (alive.size() > kShown) list += format(" and {} more", alive.size() - kShown);

  std::string fix;
  if (!p.reuse) fix = "let tensors share memory (enable_mem_reuse=1)";
  else if (limit >= b.lower_bound && !searched) fix = format("mem_allocator_strategy=2 may get down to {} bytes", b.lower_bound);
  else fix = "feed smaller inputs (--input_shape with a smaller batch or sequence)";
  return node_error(code::kTooLarge, p.tasks[static_cast<size_t>(peak)]->name,
                    format("The model needs an arena of {}, the limit is {}. Alive at the peak: {}.", size_text(b.arena), size_text(limit), list),
                    "mem_workspace_size is smaller than what the tensors need that are alive at one time",
                    format("{}, or raise mem_workspace_size to at least {} bytes", fix, b.arena));
}

}  // namespace ge
