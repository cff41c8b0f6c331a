// One row of vector.softmax. Compiled once for each instruction set by conv_targets.h; no include guard on purpose.

#include "kernels/cube/exp-inl.h"

static float largest_of(const float* x, int64_t n) {
  const V::F minus_inf = V::set1(-INFINITY);
  V::F top[2] = {minus_inf, minus_inf};
  int64_t j = 0;
  for (; j + 2 * V::kLanes <= n; j += 2 * V::kLanes) {
    GE_UNROLL
    for (int u = 0; u < 2; ++u) top[u] = V::max(top[u], V::load(x + j + u * V::kLanes));
  }
  for (; j < n; j += V::kLanes) {
    const int64_t left = n - j;
    top[0] = V::max(top[0], left >= V::kLanes ? V::load(x + j) : V::keep_n(V::load_n(x + j, left), left, minus_inf));
  }
  float lane[V::kLanes];
  V::store(lane, V::max(top[0], top[1]));
  float best = lane[0];
  for (int i = 1; i < V::kLanes; ++i) best = lane[i] > best ? lane[i] : best;
  return best;
}

// y = exp(x - max(x)) / its sum, n values each; y may be x. NaN or +inf in the row, or nothing but -inf, gives NaN.
static void softmax_row(const float* x, float* y, int64_t n) { scale_row(y, 1 / exp_row(x, y, n, largest_of(x, n)), y, n); }
