#include "lower/lanes.h"

#include <algorithm>
#include <cstdlib>
#include <queue>

#include "base/text.h"
#include "om/expressions.h"

namespace ge::lower {
namespace {

constexpr int64_t kUnknownSize = 32;
constexpr double kCubeWeight = 16;   // an element of a product takes many more steps than one of a sum

struct Weighed {
  std::vector<double> cost;
  std::vector<std::vector<int>> before;   // tasks that must be done
};

Weighed weigh(const om::ProgramT& p) {
  std::vector<int64_t> symbols, exprs;
  for (auto& s : p.symbols) symbols.push_back(std::clamp(kUnknownSize, s->min, s->max));
  bool known = om::evaluate(p, symbols, exprs).ok();
  Weighed w;
  std::vector<std::vector<int>> readers(p.buffers.size());
  std::vector<int> writer(p.buffers.size(), -1);
  for (size_t t = 0; t < p.tasks.size(); ++t) {
    auto& call = *p.tasks[t]->alternatives[0];
    double elements = 1;
    auto& before = w.before.emplace_back();
    auto touch = [&](const om::ViewT& v, bool writes) {
      if (v.buffer < 0) return;
      double count = 1;
      for (int32_t e : v.dims) count *= known ? static_cast<double>(std::max<int64_t>(exprs[static_cast<size_t>(e)], 0)) : kUnknownSize;
      elements += count;
      auto b = static_cast<size_t>(v.buffer);
      if (writer[b] >= 0) before.push_back(writer[b]);
      if (writes) {
        before.insert(before.end(), readers[b].begin(), readers[b].end());
        readers[b].clear();
        writer[b] = static_cast<int>(t);
      } else {
        readers[b].push_back(static_cast<int>(t));
      }
    };
    for (auto& v : call.ins) touch(*v, false);
    for (auto& v : call.outs) touch(*v, true);
    std::erase(before, static_cast<int>(t));
    w.cost.push_back(elements * (p.tasks[t]->unit == 0 ? kCubeWeight : 1));
  }
  return w;
}

// The tasks of the longest chain.
std::vector<bool> longest_chain(const Weighed& w) {
  std::vector<double> done(w.cost.size());
  std::vector<int> from(w.cost.size(), -1);
  int last = -1;
  for (size_t t = 0; t < w.cost.size(); ++t) {
    for (int b : w.before[t])
      if (from[t] < 0 || done[static_cast<size_t>(b)] > done[static_cast<size_t>(from[t])]) from[t] = b;
    done[t] = w.cost[t] + (from[t] < 0 ? 0 : done[static_cast<size_t>(from[t])]);
    if (last < 0 || done[t] > done[static_cast<size_t>(last)]) last = static_cast<int>(t);
  }
  std::vector<bool> chain(w.cost.size());
  for (int t = last; t >= 0; t = from[static_cast<size_t>(t)]) chain[static_cast<size_t>(t)] = true;
  return chain;
}

// Each task that is not yet placed goes to the lane from `first` on that can begin it soonest; of the tasks that
// are ready, the one before the longest chain is placed first.
void schedule(om::ProgramT& p, const Weighed& w, const std::vector<bool>& placed, int first, int count) {
  size_t n = w.cost.size();
  std::vector<std::vector<int>> after(n);
  std::vector<int> waits(n);
  std::vector<double> chain(w.cost), free(static_cast<size_t>(std::max(count, 1))), ready(n);
  for (size_t t = n; t-- > 0;) {
    for (int b : w.before[t]) after[static_cast<size_t>(b)].push_back(static_cast<int>(t));
    waits[t] = static_cast<int>(w.before[t].size());
    for (int a : after[t]) chain[t] = std::max(chain[t], w.cost[t] + chain[static_cast<size_t>(a)]);
  }
  // By the chain, then in the program's order.
  auto later = [&](int a, int b) { return std::pair(chain[static_cast<size_t>(a)], -a) < std::pair(chain[static_cast<size_t>(b)], -b); };
  std::priority_queue<int, std::vector<int>, decltype(later)> queue(later);
  for (size_t t = 0; t < n; ++t)
    if (waits[t] == 0) queue.push(static_cast<int>(t));
  while (!queue.empty()) {
    auto t = static_cast<size_t>(queue.top());
    queue.pop();
    size_t lane = placed[t] ? 0 : static_cast<size_t>(first);
    for (size_t l = lane + 1; !placed[t] && l < free.size(); ++l)
      if (std::max(free[l], ready[t]) < std::max(free[lane], ready[t])) lane = l;
    p.tasks[t]->lane = static_cast<uint8_t>(lane);
    free[lane] = std::max(free[lane], ready[t]) + w.cost[t];
    for (int a : after[t]) {
      ready[static_cast<size_t>(a)] = std::max(ready[static_cast<size_t>(a)], free[lane]);
      if (--waits[static_cast<size_t>(a)] == 0) queue.push(a);
    }
  }
}

}  // namespace

Result<LaneOptions> parse_lanes(const std::string& text) {
  if (text == "cv") return LaneOptions{LaneOptions::Mode::units, 3};
  for (auto [name, mode] : {std::pair("LoadBalance:", LaneOptions::Mode::balance), std::pair("MainStream:", LaneOptions::Mode::main)}) {
    if (!text.starts_with(name)) continue;
    std::string digits = text.substr(std::string(name).size());
    int n = !digits.empty() && digits.size() < 3 && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }) ? std::atoi(digits.c_str()) : 0;
    if (n >= 1 && n <= 64) return LaneOptions{mode, n};
  }
  return error(code::kInvalidValue, format("Value [{}] for parameter [--multi_stream_parallel_mode] is invalid.", text), "",
               "Use cv, LoadBalance:N or MainStream:N, N from 1 to 64.");
}

void assign_lanes(om::ProgramT& p, const LaneOptions& o) {
  for (auto& t : p.tasks) t->lane = o.mode == LaneOptions::Mode::units ? std::min<uint8_t>(t->unit, 2) : 0;
  if (o.mode == LaneOptions::Mode::single || o.mode == LaneOptions::Mode::units || o.count == 1) return;
  Weighed w = weigh(p);
  if (o.mode == LaneOptions::Mode::balance) schedule(p, w, std::vector<bool>(w.cost.size()), 0, o.count);
  else schedule(p, w, longest_chain(w), 1, o.count);
}

}  // namespace ge::lower
