// The vector program kernel against fused loops written by hand for AVX-512, one thread, interleaved;
// minimum of the rounds. Not built by default:
//   g++ -std=c++20 -O3 -ffp-contract=off -Isrc bench/vector_bench.cc <objects of base, tensor, kernels/vector,
//   kernels/isa.cc, kernels/kernel.cc> -lpthread
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "kernels/isa.h"
#include "kernels/kernel.h"
#include "kernels/vector/program.h"
#include "kernels/vector/simd_avx512.h"
#include "tensor/tensor.h"

using namespace ge;           // NOLINT
using namespace ge::kernels;  // NOLINT

namespace {

GE_TARGET_AVX512_BEGIN
namespace hand {
using namespace ge::kernels::vector::avx512;  // NOLINT

float sum(V a) { return _mm512_reduce_add_ps(a); }

void layer_norm(const float* x, const float* g, const float* b, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r, x += cols, y += cols) {
    V s[4] = {};
    for (int c = 0; c < cols; c += 64)
      for (int j = 0; j < 4; ++j) s[j] = s[j] + load(x + c + 16 * j);
    V mean = set(sum(s[0] + s[1] + s[2] + s[3]) / static_cast<float>(cols));
    V q[4] = {};
    for (int c = 0; c < cols; c += 64)
      for (int j = 0; j < 4; ++j) {
        V d = load(x + c + 16 * j) - mean;
        q[j] = fma(d, d, q[j]);
      }
    V scale = set(1.0f / std::sqrt(sum(q[0] + q[1] + q[2] + q[3]) / static_cast<float>(cols) + 1e-5f));
    for (int c = 0; c < cols; c += 16) store(y + c, fma((load(x + c) - mean) * scale, load(g + c), load(b + c)));
  }
}

void softmax(const float* x, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r, x += cols, y += cols) {
    V m[4];
    for (V& v : m) v = set(-INFINITY);
    for (int c = 0; c < cols; c += 64)
      for (int j = 0; j < 4; ++j) m[j] = hw_max(m[j], load(x + c + 16 * j));
    V top = set(_mm512_reduce_max_ps(hw_max(hw_max(m[0], m[1]), hw_max(m[2], m[3]))));
    V s[4] = {};
    for (int c = 0; c < cols; c += 64)
      for (int j = 0; j < 4; ++j) {
        V e = exp(load(x + c + 16 * j) - top);
        store(y + c + 16 * j, e);
        s[j] = s[j] + e;
      }
    V scale = set(1.0f / sum(s[0] + s[1] + s[2] + s[3]));
    for (int c = 0; c < cols; c += 16) store(y + c, load(y + c) * scale);
  }
}

void gelu_all(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += 64)
    for (int j = 0; j < 4; ++j) store(y + i + 16 * j, gelu(load(x + i + 16 * j)));
}

// relu((a * b + c) - d) * 0.5 + a, clipped to 6.
void chain(const float* a, const float* b, const float* c, const float* d, float* y, int64_t n, bool nt) {
  for (int64_t i = 0; i < n; i += 64)
    for (int j = 0; j < 4; ++j) {
      int64_t k = i + 16 * j;
      V v = (load(a + k) * load(b + k) + load(c + k)) - load(d + k);
      v = hw_max(set(0.0f), v) * set(0.5f) + load(a + k);
      v = hw_min(set(6.0f), vabs(v) * set(1.25f));
      if (nt) stream(y + k, v);
      else store(y + k, v);
    }
  if (nt) _mm_sfence();
}

void copy(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) store(y + i, load(x + i));
}
}  // namespace hand
GE_TARGET_END

// Processor time of this thread, in microseconds: other processes cost cache, not time.
double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

struct Task {
  const Kernel* kernel = find("vector.program");
  std::vector<View> in, out;
  std::vector<std::byte> blob;
  int64_t ints[1];
  Call call;
  Work work;
  std::vector<char> scratch;

  Task(const char* text, std::vector<View> i, std::vector<View> o, int64_t axes) : in(i), out(o), ints{axes} {
    blob = vector::encode(*vector::parse(text));
    call.in = in, call.out = out, call.ints = ints, call.blob = blob;
    auto w = kernel->prepare(call);
    if (!w.ok()) std::printf("%s\n", w.error().text().c_str()), std::exit(1);
    work = *w;
    call.state = work.state.get();
    scratch.resize(static_cast<size_t>(work.scratch) + 64);
    call.scratch = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
  }
  void run() {
    for (int64_t c = 0; c < work.chunks; ++c) (void)kernel->run(call, c);
  }
};

Tensor random(std::vector<int64_t> dims) {
  Tensor t(DType::f32, dims);
  for (int64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = static_cast<float>(std::rand()) / static_cast<float>(RAND_MAX) * 4 - 2;
  return t;
}

// Interleaved; prints the fastest of each and the ratio to the first.
void race(const char* what, double bytes, std::vector<std::pair<std::string, std::function<void()>>> runners, int rounds = 0) {
  std::vector<double> best(runners.size(), 1e30);
  double once = now();
  for (auto& r : runners) r.second();
  once = now() - once;
  if (!rounds) rounds = static_cast<int>(std::clamp(400000 / once, 20.0, 3000.0));
  for (int i = 0; i < rounds; ++i)
    for (size_t k = 0; k < runners.size(); ++k) {
      double t = now();
      runners[k].second();
      best[k] = std::min(best[k], now() - t);
    }
  std::printf("%-26s", what);
  for (size_t k = 0; k < runners.size(); ++k)
    std::printf("  %s %.1f us (%.1f GB/s%s)", runners[k].first.c_str(), best[k], bytes / best[k] / 1000,
                k ? (", x" + std::to_string(best[k] / best[0]).substr(0, 4)).c_str() : "");
  std::printf("\n");
}

const char* const kLayerNorm =
    "v0 = load 0; v1 = row_mean v0 | v2 = sub v0 v1; v3 = square v2; v4 = row_mean v3; v9 = const 1e-5 | v5 = add v4 v9; "
    "v6 = rsqrt v5; v7 = mul v2 v6; v8 = load 1; v10 = load 2; v11 = fma v7 v8 v10; store 0 v11";
const char* const kSoftmax =
    "v0 = load 0; v1 = row_max v0 | v2 = sub v0 v1; v3 = exp v2; v4 = row_sum v3 | v5 = reciprocal v4; v6 = mul v3 v5; store 0 v6";
const char* const kChain =
    "v0 = load 0; v1 = load 1; v2 = load 2; v3 = load 3; v4 = mul v0 v1; v5 = add v4 v2; v6 = sub v5 v3; v7 = relu v6; "
    "v8 = const 0.5; v9 = mul v7 v8; v10 = add v9 v0; v11 = abs v10; v12 = const 1.25; v13 = mul v11 v12; v14 = const 6; "
    "v15 = min v13 v14; store 0 v15";

void tile_overhead(const char* what, const char* text, int64_t rows, int64_t cols, int64_t ld) {
  Tensor x = random({rows, ld}), b = random({cols});
  std::vector<vector::OperandSpec> specs{{DType::f32}, {DType::f32}, {DType::f32}};
  auto c = *vector::compile(*vector::parse(text), specs);
  std::vector<char> s(static_cast<size_t>(vector::scratch_bytes(*c, cols)) + 64);
  auto* scratch = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(s.data()) + 63) / 64 * 64);
  auto* p = x.mutable_data();
  vector::TileOperand t[] = {{p, ld * 4}, {b.mutable_data(), 0}, {p, ld * 4}};
  double best = 1e30;
  for (int i = 0; i < 200; ++i) {
    double t0 = now();
    for (int j = 0; j < 100; ++j) vector::run_tile(*c, t, rows, cols, scratch);
    best = std::min(best, (now() - t0) / 100);
  }
  std::printf("%-26s %lldx%lld in place: %.0f ns (%.2f ns a 16 floats)\n", what, static_cast<long long>(rows), static_cast<long long>(cols),
              best * 1000, best * 1000 / static_cast<double>(rows * cols) * 16);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) set_isa(argv[1] == std::string("avx2") ? Isa::avx2 : argv[1] == std::string("portable") ? Isa::portable : Isa::avx512);
  std::printf("isa %s\n", std::string(name(isa())).c_str());
  for (int64_t rows : {128, 2048}) {
    Tensor x = random({rows, 768}), g = random({768}), b = random({768}), y({DType::f32}, {rows, 768}), z = y;
    Task t(kLayerNorm, {x.view(), g.view(), b.view()}, {y.view()}, 1);
    race(rows == 128 ? "LayerNorm 128x768" : "LayerNorm 2048x768", static_cast<double>(rows) * 768 * 8,
         {{"hand", [&] { hand::layer_norm(x.as<float>(), g.as<float>(), b.as<float>(), y.as<float>(), static_cast<int>(rows), 768); }},
          {"program", [&] { t.run(); }}});
  }
  {
    Tensor x = random({128, 3072}), y(DType::f32, {128, 3072});
    Task t("v0 = load 0; v1 = gelu v0; store 0 v1", {x.view()}, {y.view()}, 0);
    Task u("v0 = load 0; v1 = const 0.70710678; v2 = mul v0 v1; v3 = erf v2; v4 = const 1; v5 = add v3 v4; v6 = const 0.5; "
           "v7 = mul v0 v6; v8 = mul v7 v5; store 0 v8", {x.view()}, {y.view()}, 0);
    Task e("v0 = load 0; v1 = exp v0; store 0 v1", {x.view()}, {y.view()}, 0);
    Task th("v0 = load 0; v1 = tanh v0; store 0 v1", {x.view()}, {y.view()}, 0);
    Task si("v0 = load 0; v1 = silu v0; store 0 v1", {x.view()}, {y.view()}, 0);
    race("GELU 128x3072", 128.0 * 3072 * 8, {{"hand", [&] { hand::gelu_all(x.as<float>(), y.as<float>(), 128 * 3072); }},
                                             {"one op", [&] { t.run(); }}, {"five ops", [&] { u.run(); }}});
    race("128x3072", 128.0 * 3072 * 8, {{"exp", [&] { e.run(); }}, {"tanh", [&] { th.run(); }}, {"silu", [&] { si.run(); }}});
  }
  {
    Tensor x = random({2048, 2048}), y(DType::f32, {2048, 2048});
    Task t(kSoftmax, {x.view()}, {y.view()}, 1);
    race("softmax 2048x2048", 2048.0 * 2048 * 8, {{"hand", [&] { hand::softmax(x.as<float>(), y.as<float>(), 2048, 2048); }},
                                                  {"program", [&] { t.run(); }},
                                                  {"copy", [&] { hand::copy(x.as<float>(), y.as<float>(), 2048 * 2048); }}});
  }
  for (int64_t n : {int64_t{128} << 10, int64_t{4} << 20, int64_t{16} << 20}) {
    Tensor a = random({n}), b = random({n}), c = random({n}), d = random({n}), y(DType::f32, {n});
    Task t(kChain, {a.view(), b.view(), c.view(), d.view()}, {y.view()}, 0);
    auto h = [&](bool nt) { return [&, nt] { hand::chain(a.as<float>(), b.as<float>(), c.as<float>(), d.as<float>(), y.as<float>(), n, nt); }; };
    race(n == 128 << 10 ? "8 ops, 128K floats" : n == 4 << 20 ? "8 ops, 4M floats" : "8 ops, 16M floats", static_cast<double>(n) * 20,
         {{"hand", h(false)}, {"hand nt", h(true)}, {"program", [&] { t.run(); }}});
  }
  {
    Tensor x = random({56 * 56, 64}), b = random({64}), y(DType::f32, {56 * 56, 64});
    Task t("v0 = load 0; v1 = load 1; v2 = add v0 v1; v3 = relu v2; store 0 v3", {x.view(), b.view()}, {y.view()}, 0);
    Tensor x2 = random({56 * 56 * 8, 8}), b2 = random({8}), s2 = random({56 * 56 * 8, 1}), y2(DType::f32, {56 * 56 * 8, 8});
    Task u("v0 = load 0; v1 = load 1; v2 = add v0 v1; v3 = relu v2; store 0 v3", {x2.view(), b2.view()}, {y2.view()}, 0);
    Task w("v0 = load 0; v1 = load 1; v2 = add v0 v1; v3 = relu v2; store 0 v3", {x2.view(), s2.view()}, {y2.view()}, 0);
    race("bias+relu 200K floats", 56.0 * 56 * 64 * 8, {{"C=64", [&] { t.run(); }}, {"C=8", [&] { u.run(); }}, {"[R,1] C=8", [&] { w.run(); }}});
    Tensor x3 = random({20000, 10}), y3(DType::f32, {20000, 10});
    Task sm(kSoftmax, {x3.view()}, {y3.view()}, 1);
    race("softmax 20000x10", 20000.0 * 80, {{"program", [&] { sm.run(); }}});
  }
  const char* bias_relu = "v0 = load 0; v1 = load 1; v2 = add v0 v1; v3 = relu v2; store 0 v3";
  tile_overhead("tile bias+relu", bias_relu, 6, 64, 768);
  tile_overhead("tile bias+relu", bias_relu, 96, 64, 768);
  tile_overhead("tile bias+relu", bias_relu, 96, 512, 768);
  tile_overhead("tile bias+gelu", "v0 = load 0; v1 = load 1; v2 = add v0 v1; v3 = gelu v2; store 0 v3", 96, 64, 768);
}
