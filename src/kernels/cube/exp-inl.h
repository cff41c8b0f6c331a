// exp of vectors and rows, for bodies that conv_targets.h compiles; no include guard on purpose.

// exp for x <= 88; exactly 0 below -87.7, NaN stays NaN. Relative error about 1e-7.
GE_INLINE V::F exp_nonpositive(V::F x) {
  const V::F shift = V::set1(12582912.f + 127);  // 1.5 * 2^23: the sum's low bits are the rounded exponent + 127
  x = V::max(V::set1(-88.f), x);
  const V::F log2e = V::set1(1.44269504f);
  const V::F s = V::fma(x, log2e, shift);
  const V::F f = V::fma(x, log2e, V::sub(shift, s));  // in [-0.5, 0.5]
  // 2^f = 1 + f * q(f), minimax, 2.6e-9.
  V::F q = V::set1(0.00015594678f);
  q = V::fma(q, f, V::set1(0.0013406643f));
  q = V::fma(q, f, V::set1(0.009617693f));
  q = V::fma(q, f, V::set1(0.055503104f));
  q = V::fma(q, f, V::set1(0.24022652f));
  q = V::fma(q, f, V::set1(0.69314724f));
  return V::mul(V::fma(q, f, V::set1(1.f)), V::shift_left_23(s));
}

static float horizontal_sum(V::F x) {
  float lane[V::kLanes];
  V::store(lane, x);
  for (int w = V::kLanes / 2; w > 0; w /= 2)
    for (int i = 0; i < w; ++i) lane[i] += lane[i + w];
  return lane[0];
}

// y[j] = exp(x[j] - top); gives their sum. y may be x.
static float exp_row(const float* x, float* y, int64_t n, float top) {
  const V::F shift = V::set1(-top);
  V::F sum[2] = {V::zero(), V::zero()};
  constexpr int64_t kStep = 2 * V::kLanes;
  int64_t j = 0;
  for (; j + kStep <= n; j += kStep) {
    GE_UNROLL
    for (int u = 0; u < 2; ++u) {
      const V::F e = exp_nonpositive(V::add(V::load(x + j + u * V::kLanes), shift));
      V::store(y + j + u * V::kLanes, e);
      sum[u] = V::add(sum[u], e);
    }
  }
  for (; j + V::kLanes <= n; j += V::kLanes) {
    const V::F e = exp_nonpositive(V::add(V::load(x + j), shift));
    V::store(y + j, e);
    sum[0] = V::add(sum[0], e);
  }
  if (j < n) {
    const V::F e = exp_nonpositive(V::add(V::load_n(x + j, n - j), shift));
    V::store_n(y + j, e, n - j);
    sum[0] = V::add(sum[0], V::keep_n(e, n - j, V::zero()));
  }
  return horizontal_sum(V::add(sum[0], sum[1]));
}

// out[j] = x[j] * factor; out may be x.
static void scale_row(const float* x, float factor, float* out, int64_t n) {
  const V::F f = V::set1(factor);
  int64_t j = 0;
  for (; j + V::kLanes <= n; j += V::kLanes) V::store(out + j, V::mul(V::load(x + j), f));
  if (j < n) V::store_n(out + j, V::mul(V::load_n(x + j, n - j), f), n - j);
}
