#include "driver/roofline.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "kernels/cube/peak.h"

namespace ge {
namespace {

constexpr int kRounds = 5;
constexpr int64_t kSteps = 200'000;
constexpr size_t kFloats = size_t{32} << 20;   // 128 MB: larger than the caches

// Seconds of the fastest of several rounds in which all threads do `work`.
double fastest(int threads, const std::function<void(int)>& work) {
  double best = 1e9;
  for (int r = 0; r < kRounds; ++r) {
    auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
    work(0);
    for (auto& t : others) t.join();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace

Roofline roofline(int threads) {
  Roofline out;
  out.threads = std::max(1, threads);
  int64_t operations = kernels::cube::run_multiply_adds(kSteps);
  double seconds = fastest(out.threads, [](int) { kernels::cube::run_multiply_adds(kSteps); });
  out.gflops = static_cast<double>(operations) * out.threads / seconds / 1e9;
  std::vector<std::vector<float>> data(static_cast<size_t>(out.threads), std::vector<float>(kFloats, 1.0f));
  volatile float sink = 0;
  seconds = fastest(out.threads, [&](int t) { sink = kernels::cube::read_floats(data[static_cast<size_t>(t)].data(), kFloats); });
  out.read_gbs = static_cast<double>(kFloats) * sizeof(float) * out.threads / seconds / 1e9;
  return out;
}

}  // namespace ge
