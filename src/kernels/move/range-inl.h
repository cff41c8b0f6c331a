// The range of numbers that lie together. Compiled once for each instruction set by conv_targets.h, which names V; no
// include guard on purpose.

// Widens [low, high] to the n numbers at x; NaN is passed over.
static void widen_range(const float* x, int64_t n, float& low, float& high) {
  constexpr int kChains = 4;
  V::F lows[kChains], highs[kChains];
  GE_UNROLL
  for (int u = 0; u < kChains; ++u) lows[u] = V::set1(low), highs[u] = V::set1(high);
  int64_t i = 0;
  for (; i + kChains * V::kLanes <= n; i += kChains * V::kLanes) {
    GE_UNROLL
    for (int u = 0; u < kChains; ++u) {
      const V::F v = V::load(x + i + u * V::kLanes);
      lows[u] = V::min(v, lows[u]), highs[u] = V::max(v, highs[u]);  // the second where either is NaN
    }
  }
  float all[2][kChains * V::kLanes];
  GE_UNROLL
  for (int u = 0; u < kChains; ++u) V::store(all[0] + u * V::kLanes, lows[u]), V::store(all[1] + u * V::kLanes, highs[u]);
  for (float v : all[0]) low = v < low ? v : low;
  for (float v : all[1]) high = v > high ? v : high;
  for (; i < n; ++i) low = x[i] < low ? x[i] : low, high = x[i] > high ? x[i] : high;
}
