// Bodies of peak.cc. Compiled once for each instruction set by conv_targets.h; no include guard on purpose.

constexpr int kChains = 12;

static float multiply_adds(int64_t steps) {
  V::F x[kChains];
  const V::F a = V::set1(0.999f), b = V::set1(0.001f);
  GE_UNROLL
  for (int i = 0; i < kChains; ++i) x[i] = V::set1(static_cast<float>(i));
  for (int64_t k = 0; k < steps; ++k) {
    GE_UNROLL
    for (int i = 0; i < kChains; ++i) x[i] = V::fma(x[i], a, b);
  }
  GE_UNROLL
  for (int i = 1; i < kChains; ++i) x[0] = V::add(x[0], x[i]);
  float lane[V::kLanes];
  V::store(lane, x[0]);
  return lane[0];
}

static int64_t operations(int64_t steps) { return steps * kChains * V::kLanes * 2; }

static float sum_floats(const float* p, int64_t n) {
  V::F x[8];
  GE_UNROLL
  for (int i = 0; i < 8; ++i) x[i] = V::zero();
  int64_t k = 0;
  for (; k + 8 * V::kLanes <= n; k += 8 * V::kLanes) {
    GE_UNROLL
    for (int i = 0; i < 8; ++i) x[i] = V::add(x[i], V::load(p + k + i * V::kLanes));
  }
  GE_UNROLL
  for (int i = 1; i < 8; ++i) x[0] = V::add(x[0], x[i]);
  float lane[V::kLanes], sum = 0;
  V::store(lane, x[0]);
  for (float v : lane) sum += v;
  for (; k < n; ++k) sum += p[k];
  return sum;
}
