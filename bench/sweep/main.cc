// GE's matmul, convolution and depthwise kernels against oneDNN, one thread: `./dev bench sweep`. Both sides have
// their weights packed and their operands laid out before the clock starts; convolutions fuse bias and ReLU in both, and
// GE's run without Winograd. The sides take turns in every round; only ratios within a round count, and the median over
// the rounds is printed. The outputs are compared in the same run.
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "cases.h"
#include "kernels/cube/peak.h"
#include "kernels/isa.h"

namespace ge::sweep {
namespace {

constexpr double kBars[] = {1.0, 0.97, 1.1}, kWorst = 0.75;  // of the geomean of each Kind; of any shape
constexpr double kTolerance = 1e-4;                           // of the largest output
constexpr double kBatch = 100e-6;                             // seconds between two looks at the clock, at least
constexpr int kBatches = 5;                                   // of a turn, at least

// The thread's own time: other processes on the core do not count.
double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Result {
  Case shape;
  double ratio = 0, low = 0, high = 0;  // oneDNN's time / GE's: median, least and most of the rounds
  double ge = 0, onednn = 0, peak = 0;  // GFLOP/s, medians
  double difference = 0;
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  size_t n = v.size();
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

// One turn: seconds of a run, in the fastest of several batches of runs.
double turn(Side& side, int runs, double seconds) {
  double best = 1e9, total = 0;
  for (int i = 0; i < kBatches || total < seconds; ++i) {
    double start = now();
    for (int r = 0; r < runs; ++r) side.run();
    double took = now() - start;
    best = std::min(best, took / runs), total += took;
  }
  return best;
}

double peak_gflops() {
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    double start = now();
    auto operations = static_cast<double>(kernels::cube::run_multiply_adds(5000));
    best = std::max(best, operations / (now() - start) * 1e-9);
  }
  return best;
}

Operands operands(const Case& c) {
  std::mt19937 random(1);
  auto fill = [&](const std::vector<int64_t>& dims, float scale) {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    std::vector<float> v(static_cast<size_t>(n));
    for (float& x : v) x = (static_cast<float>(random() >> 8) * 0x1p-23f - 1) * scale;
    return v;
  };
  return {fill(c.a_dims(), 1), fill(c.b_dims(), 0.1f), fill({c.bias_count()}, 1)};
}

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    double d = std::fabs(static_cast<double>(a[i]) - b[i]);
    most = std::isnan(d) ? INFINITY : std::max(most, d);
    largest = std::max(largest, std::fabs(static_cast<double>(b[i])));
  }
  return largest > 0 ? most / largest : INFINITY;
}

Result measure(const Case& c, int rounds, double seconds) {
  Result out{.shape = c};
  Operands o = operands(c);
  auto ge = ge_side(c, o), onednn = onednn_side(c, o);
  ge->run(), onednn->run();
  out.difference = difference(ge->output(), onednn->output());
  int runs[2];
  for (int s : {0, 1}) {
    double once = turn(s ? *onednn : *ge, 1, 0);
    runs[s] = std::max(1, static_cast<int>(std::ceil(kBatch / once)));
  }
  std::vector<double> ratios, ge_gflops, onednn_gflops, peaks;
  for (int r = 0; r < rounds; ++r) {
    double t[2];
    for (int i : {0, 1}) {  // who goes first alternates
      int s = (i + r) % 2;
      t[s] = turn(s ? *onednn : *ge, runs[s], seconds);
    }
    ratios.push_back(t[1] / t[0]);
    ge_gflops.push_back(c.operations() / t[0] * 1e-9), onednn_gflops.push_back(c.operations() / t[1] * 1e-9);
    peaks.push_back(peak_gflops());
  }
  out.ratio = median(ratios);
  out.low = *std::min_element(ratios.begin(), ratios.end()), out.high = *std::max_element(ratios.begin(), ratios.end());
  out.ge = median(ge_gflops), out.onednn = median(onednn_gflops), out.peak = median(peaks);
  return out;
}

void print_head() {
  std::printf("| model | shape | GE GFLOP/s | of peak | oneDNN GFLOP/s | ratio | range |\n|---|---|---|---|---|---|---|\n");
}
void print(const Result& r) {
  std::printf("| %s | %s | %.1f | %.0f %% | %.1f | %.2f | %.2f..%.2f |%s\n", r.shape.model, r.shape.name().c_str(), r.ge,
              100 * r.ge / r.peak, r.onednn, r.ratio, r.low, r.high, r.difference > kTolerance ? " OUTPUTS DIFFER" : "");
  std::fflush(stdout);
}

struct Summary {
  size_t shapes = 0;
  double geomean = 0, worst = 0;
};
Summary summary(const std::vector<Result>& results, Kind kind) {
  Summary s;
  double sum = 0;
  s.worst = INFINITY;
  for (const Result& r : results) {
    if (r.shape.kind != kind) continue;
    ++s.shapes, sum += std::log(r.ratio), s.worst = std::min(s.worst, r.ratio);
  }
  s.geomean = std::exp(sum / static_cast<double>(std::max<size_t>(1, s.shapes)));
  return s;
}

nlohmann::json as_json(const std::vector<Result>& results) {
  nlohmann::json shapes = nlohmann::json::array();
  for (const Result& r : results)
    shapes.push_back({{"kind", kKindNames[static_cast<int>(r.shape.kind)]}, {"model", r.shape.model}, {"shape", r.shape.name()},
                      {"ratio", r.ratio}, {"least", r.low}, {"most", r.high}, {"ge_gflops", r.ge},
                      {"onednn_gflops", r.onednn}, {"peak_gflops", r.peak}, {"difference", r.difference}});
  return {{"isa", std::string(kernels::name(kernels::isa()))}, {"shapes", shapes}};
}

// The summary of each kind beside its bar.
void print_summaries(const std::vector<Result>& results) {
  std::vector<double> peaks;
  for (const Result& r : results) peaks.push_back(r.peak);
  std::printf("\n%s, one thread, peak %.1f GFLOP/s\n| kind | shapes | geomean | bar | worst shape | bar |\n|---|---|---|---|---|---|\n",
              std::string(kernels::name(kernels::isa())).c_str(), median(peaks));
  for (Kind k : {Kind::matmul, Kind::conv, Kind::depthwise}) {
    Summary s = summary(results, k);
    if (s.shapes)
      std::printf("| %s | %zu | %.3f | %.2f | %.2f | %.2f |\n", kKindNames[static_cast<int>(k)], s.shapes, s.geomean,
                  kBars[static_cast<int>(k)], s.worst, kWorst);
  }
}

int sweep(int argc, char** argv) {
  CLI::App app("GE's kernels against oneDNN on the layer shapes of well-known models, one thread");
  int rounds = 7;
  double milliseconds = 3;
  std::string json;
  std::vector<std::string> wanted;
  app.add_option("--rounds", rounds, "rounds of turns")->check(CLI::PositiveNumber);
  app.add_option("--ms", milliseconds, "least time of a turn");
  app.add_option("--json", json, "writes all numbers to this file");
  app.add_option("names", wanted, "only these: kinds (matmul, conv, depthwise), or parts of a model's or a shape's name");
  CLI11_PARSE(app, argc, argv);
  limit_onednn();
  std::vector<Result> results;
  for (Kind kind : {Kind::matmul, Kind::conv, Kind::depthwise})
    for (const Case& c : cases()) {
      std::string kind_name = kKindNames[static_cast<int>(c.kind)], text = std::string(c.model) + " " + c.name();
      auto is_wanted = [&](const std::string& w) { return w == kind_name || text.find(w) != std::string::npos; };
      if (c.kind != kind || (!wanted.empty() && std::none_of(wanted.begin(), wanted.end(), is_wanted))) continue;
      if (results.empty()) print_head();
      results.push_back(measure(c, rounds, milliseconds * 1e-3));
      print(results.back());
    }
  if (results.empty()) return std::fprintf(stderr, "no shape has such a name\n"), 1;
  print_summaries(results);
  if (!json.empty()) std::ofstream(json) << as_json(results).dump(1) << "\n";
  return std::any_of(results.begin(), results.end(), [](const Result& r) { return r.difference > kTolerance; });
}

}  // namespace
}  // namespace ge::sweep

int main(int argc, char** argv) { return ge::sweep::sweep(argc, argv); }
