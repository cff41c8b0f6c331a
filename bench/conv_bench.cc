// Speed of cube.conv and cube.depthwise on one thread, as a share of the FMA peak measured in the
// same run (depthwise: GB/s of input, output and weights). Not built by default; compile it with
// the sources of base, tensor and kernels. Arguments: a substring of the layers wanted, or nothing.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "kernels/cube/conv_pack.h"
#include "kernels/cube/simd.h"
#include "kernels/isa.h"
#include "kernels/kernel.h"

namespace ge::kernels {
namespace {

#define GE_PEAK(V, N)                                                              \
  [[gnu::noinline]] static double peak_loop(int64_t rounds) {                      \
    V::F acc[N], a = V::set1(0.999f), b = V::set1(0.001f);                         \
    GE_UNROLL for (int i = 0; i < N; ++i) acc[i] = V::set1(static_cast<float>(i)); \
    for (int64_t r = 0; r < rounds; ++r) {                                         \
      GE_UNROLL for (int i = 0; i < N; ++i) acc[i] = V::fma(acc[i], a, b);         \
    }                                                                              \
    float out[V::kLanes];                                                          \
    V::F s = acc[0];                                                               \
    GE_UNROLL for (int i = 1; i < N; ++i) s = V::add(s, acc[i]);                   \
    V::store(out, s);                                                              \
    volatile float sink = out[0];                                                  \
    (void)sink;                                                                    \
    return 2.0 * N * V::kLanes * static_cast<double>(rounds);                      \
  }

using cube::V128;
namespace on_portable {
GE_PEAK(V128, 12)
}
#if defined(__x86_64__)
using cube::V256;
using cube::V512;
GE_TARGET_BEGIN(GE_AVX2)
namespace on_avx2 {
GE_PEAK(V256, 12)
}
GE_TARGET_END
GE_TARGET_BEGIN(GE_AVX512)
namespace on_avx512 {
GE_PEAK(V512, 16)
}
GE_TARGET_END
#endif

// The thread's own time: other processes on the core do not count.
double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double peak_gflops() {
  double best = 0;
  for (int i = 0; i < 20; ++i) {
    double t = now(), flops = 0;
#if defined(__x86_64__)
    if (isa() == Isa::avx512) flops = on_avx512::peak_loop(100000);
    if (isa() == Isa::avx2) flops = on_avx2::peak_loop(100000);
#endif
    if (isa() == Isa::portable) flops = on_portable::peak_loop(100000);
    best = std::max(best, flops / (now() - t) * 1e-9);
  }
  return best;
}

struct Layer {
  const char* what;
  int64_t c, m, groups, height, width, k, stride;
  bool planar = false;  // x is NCHW
};

const Layer kLayers[] = {
    {"7x7/2 first", 3, 64, 1, 224, 224, 7, 2, true},
    {"3x3/2 first", 3, 96, 1, 224, 224, 3, 2, true},
    {"3x3/2 first 16", 3, 16, 1, 320, 320, 3, 2, true},
    {"1x1 64-256@56", 64, 256, 1, 56, 56, 1, 1},
    {"1x1 256-64@56", 256, 64, 1, 56, 56, 1, 1},
    {"3x3 64-64@56", 64, 64, 1, 56, 56, 3, 1},
    {"3x3/2 128-128@56", 128, 128, 1, 56, 56, 3, 2},
    {"1x1 512-128@28", 512, 128, 1, 28, 28, 1, 1},
    {"3x3 128-128@28", 128, 128, 1, 28, 28, 3, 1},
    {"1x1 1024-256@14", 1024, 256, 1, 14, 14, 1, 1},
    {"3x3 256-256@14", 256, 256, 1, 14, 14, 3, 1},
    {"1x1/2 1024-2048@14", 1024, 2048, 1, 14, 14, 1, 2},
    {"1x1 2048-512@7", 2048, 512, 1, 7, 7, 1, 1},
    {"1x1 512-2048@7", 512, 2048, 1, 7, 7, 1, 1},
    {"3x3 512-512@7", 512, 512, 1, 7, 7, 3, 1},
    {"fire 1x1 96-16@55", 96, 16, 1, 55, 55, 1, 1},
    {"fire 1x1 16-64@55", 16, 64, 1, 55, 55, 1, 1},
    {"fire 3x3 16-64@55", 16, 64, 1, 55, 55, 3, 1},
    {"fire 3x3 32-128@27", 32, 128, 1, 27, 27, 3, 1},
    {"fire 3x3 64-256@13", 64, 256, 1, 13, 13, 3, 1},
    {"fire 1x1 512-48@13", 512, 48, 1, 13, 13, 1, 1},
    {"1x1 32-16@112", 32, 16, 1, 112, 112, 1, 1},
    {"1x1 16-96@112", 16, 96, 1, 112, 112, 1, 1},
    {"3x3 16-16@80", 16, 16, 1, 80, 80, 3, 1},
    {"3x3 32-32@40", 32, 32, 1, 40, 40, 3, 1},
    {"3x3/2 16-32@160", 16, 32, 1, 160, 160, 3, 2},
    {"3x3/2 32-64@320", 32, 64, 1, 320, 320, 3, 2},
    {"3x3 64-64@224", 64, 64, 1, 224, 224, 3, 1},
    {"conv1d k5 64-64@2048", 64, 64, 1, 1, 2048, 5, 1},
    {"conv1d k7 256-256@1000", 256, 256, 1, 1, 1000, 7, 1},
    {"grouped 3x3 256/32@28", 256, 256, 32, 28, 28, 3, 1},
    {"grouped 3x3 512/32@14", 512, 512, 32, 14, 14, 3, 1},
    {"grouped 3x3 128/32@56", 128, 128, 32, 56, 56, 3, 1},
    {"dw 3x3 32@112", 32, 32, 32, 112, 112, 3, 1},
    {"dw 3x3/2 96@112", 96, 96, 96, 112, 112, 3, 2},
    {"dw 3x3 144@56", 144, 144, 144, 56, 56, 3, 1},
    {"dw 3x3/2 144@56", 144, 144, 144, 56, 56, 3, 2},
    {"dw 3x3 576@14", 576, 576, 576, 14, 14, 3, 1},
    {"dw 3x3 960@7", 960, 960, 960, 7, 7, 3, 1},
    {"dw 3x3 64@7", 64, 64, 64, 7, 7, 3, 1},
    {"dw 3x3 16@28", 16, 16, 16, 28, 28, 3, 1},
    {"dw 5x5 240@28", 240, 240, 240, 28, 28, 5, 1},
    {"dw 5x5 672@7", 672, 672, 672, 7, 7, 5, 1},
    {"dw 7x7 96@56", 96, 96, 96, 56, 56, 7, 1},
};

float* buffer(int64_t n) {
  size_t bytes = (static_cast<size_t>(n) * 4 + 64 + 4095) / 4096 * 4096;
  auto* p = static_cast<float*>(std::aligned_alloc(4096, bytes));
  for (size_t i = 0; i < bytes / 4; ++i) p[i] = static_cast<float>(i * 7 % 13) * 0.1f - 0.6f;
  return p;
}

View view(float* p, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides) {
  return {reinterpret_cast<std::byte*>(p), DType::f32, static_cast<int32_t>(dims.size()),
          dims.data(), strides.data()};
}

void bench(const Layer& l, double peak) {
  bool depthwise = l.groups == l.c && l.groups > 1, line = l.height == 1;
  int64_t kh = line ? 1 : l.k, ph = kh / 2, pw = l.k / 2;
  int64_t oh = (l.height + 2 * ph - kh) / (line ? 1 : l.stride) + 1,
          ow = (l.width + 2 * pw - l.k) / l.stride + 1;
  std::vector<int64_t> xd = {1, l.c, l.height, l.width}, yd = {1, l.m, oh, ow},
                       wd = {l.m, l.c / l.groups, kh, l.k};
  std::vector<int64_t> xs =
      l.planar ? std::vector<int64_t>{l.c * l.height * l.width, l.height * l.width, l.width, 1}
               : std::vector<int64_t>{l.c * l.height * l.width, 1, l.width * l.c, l.c};
  std::vector<int64_t> ys = {l.m * oh * ow, 1, ow * l.m, l.m};
  std::vector<int64_t> ws = {l.c / l.groups * kh * l.k, kh * l.k, l.k, 1};
  int64_t x_count = l.c * l.height * l.width, y_count = l.m * oh * ow, w_count = l.m * ws[0];
  float *x = buffer(x_count), *y = buffer(y_count), *w = buffer(w_count), *b = buffer(l.m);
  View wv = view(w, wd, ws);
  const bool narrow = !depthwise && cube::narrow_groups(l.c, l.m, l.groups);
  int64_t packed = depthwise ? cube::packed_depthwise_floats(wv)
                   : narrow  ? cube::packed_narrow_floats(wv)
                             : cube::packed_conv_floats(wv, l.groups);
  float* p = buffer(packed);
  if (depthwise)
    cube::pack_depthwise_weights(wv, p);
  else if (narrow)
    cube::pack_narrow_weights(wv, p);
  else
    cube::pack_conv_weights(wv, l.groups, p);
  std::vector<int64_t> pd = {packed}, one = {1}, bd = {l.m};
  std::vector<View> in = {view(x, xd, xs), view(p, pd, one), view(b, bd, one)},
                    out = {view(y, yd, ys)};
  std::vector<int64_t> ints = {2, l.groups, kh, l.k, line ? 1 : l.stride, l.stride, 1,
                               1, ph,       pw, 1};
  Call call{in, out, ints, {}, {}};
  const Kernel* kernel = find(depthwise ? "cube.depthwise" : "cube.conv");
  auto work = kernel->prepare(call);
  if (!work.ok()) {
    std::printf("%s: %s\n", l.what, work.error().text().c_str());
    return;
  }
  call.state = work->state.get();
  call.scratch = reinterpret_cast<std::byte*>(buffer(work->scratch / 4 + 16));
  double flops = 2.0 * static_cast<double>(y_count * ws[0]), best = 1e9, total = 0;
  for (int i = 0; i < 2000 && (i < 5 || total < 0.15); ++i) {
    double t = now();
    for (int64_t c = 0; c < work->chunks; ++c) (void)kernel->run(call, c);
    t = now() - t;
    best = std::min(best, t), total += t;
  }
  double gf = flops / best * 1e-9;
  if (depthwise)
    std::printf("%-24s %8.1f us %7.1f GF/s %6.1f GB/s  chunks %ld\n", l.what, best * 1e6, gf,
                static_cast<double>(x_count + y_count + packed) * 4 / best * 1e-9,
                static_cast<long>(work->chunks));
  else
    std::printf("%-24s %8.1f us %7.1f GF/s %5.1f %% of peak  chunks %ld scratch %ld\n", l.what,
                best * 1e6, gf, 100 * gf / peak, static_cast<long>(work->chunks),
                static_cast<long>(work->scratch));
  for (float* q : {x, y, w, b, p, reinterpret_cast<float*>(call.scratch)}) std::free(q);
}

}  // namespace
}  // namespace ge::kernels

int main(int argc, char** argv) {
  using namespace ge::kernels;
  double peak = peak_gflops();
  std::printf("isa %s, peak %.1f GFLOP/s\n", std::string(name(isa())).c_str(), peak);
  for (const Layer& l : kLayers)
    if (argc < 2 || std::strstr(l.what, argv[1])) bench(l, peak);
  std::printf("peak again %.1f GFLOP/s\n", peak_gflops());
}
