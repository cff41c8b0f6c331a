// Timing of the Cube microkernels on one thread, as a share of the fma peak measured in the same run.
// Not built by default: g++ -std=c++20 -O3 -ffp-contract=off -Isrc bench/cube_bench.cc and the sources of
// src/kernels/cube, src/kernels/isa.cc, src/base, src/tensor. Usage: cube_bench [m n k]...
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "kernels/cube/microkernel.h"
#include "kernels/cube/simd.h"
#include "kernels/isa.h"
#include "kernels/kernel.h"

namespace ge::kernels::cube {
namespace {

// Of this thread: other work on the machine then costs cache and memory bandwidth, but not our time.
double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

#define GE_PEAK(NAME, V)                                                              \
  float NAME(int64_t n) {                                                             \
    typename V::F x[12];                                                              \
    const typename V::F a = V::set1(0.999f), b = V::set1(0.001f);                     \
    GE_UNROLL                                                                         \
    for (int i = 0; i < 12; ++i) x[i] = V::set1(static_cast<float>(i));               \
    for (int64_t k = 0; k < n; ++k) {                                                 \
      GE_UNROLL                                                                       \
      for (int i = 0; i < 12; ++i) x[i] = V::fma(x[i], a, b);                         \
    }                                                                                 \
    float out[16];                                                                    \
    GE_UNROLL                                                                         \
    for (int i = 1; i < 12; ++i) x[0] = V::add(x[0], x[i]);                           \
    V::store(out, x[0]);                                                              \
    return out[0];                                                                    \
  }
#if defined(__x86_64__)
GE_TARGET_BEGIN(GE_AVX512)
GE_PEAK(peak512, V512)
GE_TARGET_END
GE_TARGET_BEGIN(GE_AVX2)
GE_PEAK(peak256, V256)
GE_TARGET_END
#endif
GE_PEAK(peak128, V128)

volatile float g_sink;

double peak() {
  const int64_t n = 200'000;
  double best = 0;
  for (int r = 0; r < 5; ++r) {
    const double t = now();
    int lanes = V128::kLanes;
#if defined(__x86_64__)
    if (isa() == Isa::avx512) g_sink = peak512(n), lanes = 16;
    if (isa() == Isa::avx2) g_sink = peak256(n), lanes = 8;
#endif
    if (isa() == Isa::portable) g_sink = peak128(n);
    best = std::max(best, 2.0 * 12 * lanes * static_cast<double>(n) / (now() - t) * 1e-9);
  }
  return best;
}

void run(int64_t m, int64_t n, int64_t k, bool epilogue) {
  const int64_t panels = (n + 15) / 16;
  auto buffer = [](int64_t count) {
    auto* p = static_cast<float*>(std::aligned_alloc(1 << 21, static_cast<size_t>((count * 4 / (1 << 21) + 1) << 21)));
    for (int64_t i = 0; i < count; ++i) p[i] = static_cast<float>(i * 7 % 31) * 0.1f - 1.5f;
    return p;
  };
  float *a = buffer(m * k), *b = buffer(panels * k * 16), *c = buffer(m * n), *bias = buffer(n);
  Block t;
  t.m = m, t.n = n, t.a = a, t.lda = k, t.segment_k = k, t.b = b, t.b_stride = k * 16, t.c = c, t.ldc = n;
  if (epilogue) t.epilogue.bias = bias, t.epilogue.act = Act::relu;
  const double flops = 2.0 * static_cast<double>(m * n * k);
  const int reps = std::max(1, static_cast<int>(2e8 / flops));
  double best = 1e9, top = 0;
  for (int r = 0; r < 9; ++r) {
    top = std::max(top, peak());
    const double s = now();
    for (int i = 0; i < reps; ++i) multiply(t);
    best = std::min(best, (now() - s) / reps);
  }
  std::printf("%-9s %5ld x %5ld x %5ld %s %8.1f GF/s  %5.1f %% of %.1f\n", std::string(name(isa())).c_str(), m, n, k,
              epilogue ? "bias+relu" : "plain    ", flops / best * 1e-9, 100 * flops / best * 1e-9 / top, top);
  for (float* p : {a, b, c, bias}) std::free(p);
}

// One run of cube.attention, all chunks; packed: with the packing of K and V inside the time.
void run_attention(int64_t heads, int64_t s, int64_t t, int64_t d, bool packed) {
  struct Array {
    std::vector<int64_t> dims, strides;
    std::vector<float> data;
    explicit Array(std::vector<int64_t> x) : dims(std::move(x)), strides(dims.size(), 1) {
      for (size_t i = dims.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * dims[i + 1];
      data.resize(static_cast<size_t>(strides[0] * dims[0]));
      for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i * 7 % 31) * 0.1f - 1.5f;
    }
    View view() { return {reinterpret_cast<std::byte*>(data.data()), DType::f32, static_cast<int32_t>(dims.size()), dims.data(), strides.data()}; }
  };
  Array q({1, heads, s, d}), k({1, heads, t, d}), v({1, heads, t, d}), o({1, heads, s, d});
  Array kp({1, heads, (t + 15) / 16, d, 16}), vp({1, heads, (d + 15) / 16, t, 16});
  View kt = k.view();
  const int64_t kt_dims[] = {1, heads, d, t}, kt_strides[] = {k.strides[0], k.strides[1], 1, d};
  kt.dims = kt_dims, kt.strides = kt_strides;
  auto task = [](const char* name, std::vector<View> in, View out, std::vector<int64_t> ints, std::vector<double> floats) {
    Call c;
    c.in = in, c.out = {&out, 1}, c.ints = ints, c.floats = floats;
    auto work = find(name)->prepare(c);
    if (!work.ok()) std::abort();
    static auto* scratch = static_cast<std::byte*>(std::aligned_alloc(1 << 21, 1 << 27));
    c.scratch = scratch, c.state = work->state.get();
    for (int64_t i = 0; i < work->chunks; ++i)
      if (!find(name)->run(c, i).ok()) std::abort();
  };
  double best = 1e9, top = 0;
  for (int r = 0; r < 9; ++r) {
    top = std::max(top, peak());
    const double start = now();
    if (packed) {
      task("cube.pack_b", {kt}, kp.view(), {}, {});
      task("cube.pack_b", {v.view()}, vp.view(), {}, {});
    }
    task("cube.attention", {q.view(), packed ? kp.view() : k.view(), packed ? vp.view() : v.view()}, o.view(), {0, 0, 0}, {0.125, 0, 0});
    best = std::min(best, now() - start);
  }
  const double flops = 4.0 * static_cast<double>(heads * s * t * d);
  std::printf("%-9s attention %ld x %ld x %ld x %ld %s %8.2f ms %8.1f GF/s  %5.1f %%\n", std::string(name(isa())).c_str(), heads, s, t, d,
              packed ? "packed  " : "unpacked", best * 1e3, flops / best * 1e-9, 100 * flops / best * 1e-9 / top);
}

}  // namespace
}  // namespace ge::kernels::cube

int main(int argc, char** argv) {
  using namespace ge::kernels;
  std::vector<std::array<int64_t, 3>> sizes;
  for (int i = 1; i + 2 < argc; i += 3) sizes.push_back({atol(argv[i]), atol(argv[i + 1]), atol(argv[i + 2])});
  if (sizes.empty()) sizes = {{2048, 768, 768}, {128, 768, 3072}, {128, 3072, 768}, {1, 768, 768}, {3136, 64, 64}};
  for (auto [m, n, k] : sizes)
    for (bool e : {false, true}) cube::run(m, n, k, e);
  if (argc > 1) return 0;
  for (bool packed : {true, false}) {
    cube::run_attention(12, 512, 512, 64, packed);
    cube::run_attention(12, 128, 128, 64, packed);
    cube::run_attention(12, 2048, 2048, 64, packed);
    cube::run_attention(1, 2048, 2048, 768, packed);
    cube::run_attention(8, 1, 4096, 128, packed);
  }
}
