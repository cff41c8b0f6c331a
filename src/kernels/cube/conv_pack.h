// Packed weights of the convolution kernels; called by the compiler, once. The formats stand in .om
// files and belong to no instruction set.
#pragma once

#include <cstdint>

#include "tensor/view.h"

namespace ge::kernels::cube {

// For "cube.conv": w is f32 [M, C / groups, k...] with any strides, M a multiple of groups. One
// matrix B a group, K = taps * C / groups rows ordered (kd, kh, kw, c), N = M / groups columns, in
// panels: [groups][ceil(N / 16)][K][16], unused columns zero.
int64_t packed_conv_floats(const View& w, int64_t groups);
void pack_conv_weights(const View& w, int64_t groups, float* out);

// The other form that "cube.conv" takes, faster and smaller, for groups of 2, 4 or 8 channels in
// and as many out (panels would be mostly padding): [taps][C / groups][M rounded up to 16], unused
// ones zero. The kernel knows the form by its size.
inline bool narrow_groups(int64_t c, int64_t m, int64_t groups) {
  int64_t cg = groups > 1 ? c / groups : 0;
  return (cg == 2 || cg == 4 || cg == 8) && c == cg * groups && m == c;
}
int64_t packed_narrow_floats(const View& w);
void pack_narrow_weights(const View& w, float* out);

// For "cube.depthwise": w is f32 [M, 1, k...]; packed as [taps][M rounded up to 16], unused ones
// zero.
int64_t packed_depthwise_floats(const View& w);
void pack_depthwise_weights(const View& w, float* out);

}  // namespace ge::kernels::cube
