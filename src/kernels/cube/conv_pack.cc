#include "kernels/cube/conv_pack.h"

#include "kernels/cube/pack.h"

namespace ge::kernels::cube {
namespace {

int64_t taps(const View& w) {
  int64_t n = 1;
  for (int a = 2; a < w.rank; ++a) n *= w.dims[a];
  return n;
}

// Offset of tap t, counted row-major over the kernel's axes.
int64_t tap_offset(const View& w, int64_t t) {
  int64_t o = 0;
  for (int a = w.rank - 1; a >= 2; --a) o += t % w.dims[a] * w.strides[a], t /= w.dims[a];
  return o;
}

// [taps][channels in][M rounded up to 16].
void pack_by_tap(const View& w, float* out) {
  int64_t m = w.dims[0], n_taps = taps(w);
  for (int64_t t = 0; t < n_taps; ++t)
    for (int64_t c = 0; c < w.dims[1]; ++c) {
      const float* tap = w.as<float>() + tap_offset(w, t) + c * w.strides[1];
      for (int64_t j = 0; j < panels(m) * 16; ++j) *out++ = j < m ? tap[j * w.strides[0]] : 0.0f;
    }
}

}  // namespace

int64_t packed_conv_floats(const View& w, int64_t groups) {
  return groups * packed_floats(taps(w) * w.dims[1], w.dims[0] / groups);
}

void pack_conv_weights(const View& w, int64_t groups, float* out) {
  int64_t m = w.dims[0] / groups, c = w.dims[1], n_taps = taps(w);
  const float* src = w.as<float>();
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t p = 0; p < panels(m); ++p)
      for (int64_t t = 0; t < n_taps; ++t) {
        const float* tap = src + tap_offset(w, t) + (g * m + p * 16) * w.strides[0];
        for (int64_t k = 0; k < c; ++k)
          for (int64_t j = 0; j < 16; ++j)
            *out++ = p * 16 + j < m ? tap[j * w.strides[0] + k * w.strides[1]] : 0.0f;
      }
}

int64_t packed_narrow_floats(const View& w) { return taps(w) * w.dims[1] * panels(w.dims[0]) * 16; }

void pack_narrow_weights(const View& w, float* out) { pack_by_tap(w, out); }

int64_t packed_depthwise_floats(const View& w) { return taps(w) * panels(w.dims[0]) * 16; }

void pack_depthwise_weights(const View& w, float* out) { pack_by_tap(w, out); }

}  // namespace ge::kernels::cube
