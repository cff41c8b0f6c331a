// What pool.cc hands to the loops of pool-inl.h, which are compiled once for each instruction set.
#pragma once

#include "kernels/cube/conv_shape.h"

namespace ge::kernels::cube {

enum class PoolKind : int64_t { max = 0, average = 1, average_with_pad = 2 };

struct PoolTask {
  ConvShape s;
  PoolKind kind = PoolKind::max;
  const float* x = nullptr;
  float* y = nullptr;
};

// The number of taps of window o that lie before the end of the padded input.
inline int64_t padded_taps(const ConvShape& s, int axis, int64_t o) {
  int64_t room = s.in[axis] + s.pad_end[axis] - (o * s.stride[axis] - s.pad[axis]);
  return room <= 0 ? 0 : std::min((room + s.dilation[axis] - 1) / s.dilation[axis], s.k[axis]);
}

// By what an average is divided, along one axis; the divisor is the product of the three.
inline int64_t divisor(const PoolTask& t, int axis, int64_t o) {
  if (t.kind == PoolKind::average_with_pad) return padded_taps(t.s, axis, o);
  TapRange r = valid_taps(t.s, axis, o);
  return r.last - r.first;
}

// A global pool's input: the spatial axes merged where they can be, outermost first, innermost
// last.
struct GlobalTask {
  bool max = false;
  int64_t n = 0, c = 0, xn = 0, xc = 0, yn = 0, yc = 0;
  int axes = 0;
  int64_t dims[12] = {}, strides[12] = {};
  int64_t pixels = 1;
  const float* x = nullptr;
  float* y = nullptr;
};

}  // namespace ge::kernels::cube
