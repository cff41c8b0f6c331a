// Vector bodies of attention: masks and row maxima, exp and row sums, rescaling; and the products for few
// query rows against unpacked keys and values. Compiled once for each instruction set by conv_targets.h,
// which names V; no include guard on purpose.

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

GE_INLINE V::F soft_cap(V::F x, V::F cap, V::F twice_inverse) {
  // tanh(y) = 1 - 2 / (exp(2y) + 1); 2y is cut to 40, where tanh is 1 in f32.
  float lane[V::kLanes];
  V::store(lane, exp_nonpositive(V::min(V::set1(40.f), V::mul(x, twice_inverse))));
  for (int i = 0; i < V::kLanes; ++i) lane[i] = 1 - 2 / (lane[i] + 1);
  return V::mul(cap, V::load(lane));
}

static void mask_row(const ScoreBlock& b, float* c, const void* mask, int64_t column, int64_t n) {
  if (b.mask_kind == MaskKind::boolean) {
    const uint8_t* m = static_cast<const uint8_t*>(mask) + column * b.mask_step;
    if (b.mask_step == 1) {
      for (int64_t j = 0; j < n; ++j) c[j] = m[j] ? c[j] : b.masked;
    } else {
      for (int64_t j = 0; j < n; ++j) c[j] = m[j * b.mask_step] ? c[j] : b.masked;
    }
    return;
  }
  const float* m = static_cast<const float*>(mask) + column * b.mask_step;
  if (b.mask_step == 1) {
    for (int64_t j = 0; j < n; ++j) c[j] += m[j];
  } else {
    for (int64_t j = 0; j < n; ++j) c[j] += m[j * b.mask_step];
  }
}

// Rows [row, row + rows) and columns [column, column + columns) of the scores, column a multiple of 16: soft
// cap, mask, -inf beyond a row's length up to a multiple of 16, and the maxima into top.
static void prepare_scores(const ScoreBlock& b, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const V::F minus_inf = V::set1(-INFINITY);
  for (int64_t i = row; i < row + rows; ++i) {
    float* c = b.scores + i * b.ld + column;
    int64_t n = b.length[i] - column;
    n = n < 0 ? 0 : n > columns ? columns : n;
    if (b.softcap > 0) {
      const V::F cap = V::set1(b.softcap), twice_inverse = V::set1(2 / b.softcap);
      for (int64_t j = 0; j < n; j += V::kLanes) V::store(c + j, soft_cap(V::load(c + j), cap, twice_inverse));
    }
    if (b.mask_kind != MaskKind::none) mask_row(b, c, b.mask[i], column, n);
    float* top = b.top + i * 16;
    constexpr int kVectors = 16 / V::kLanes;
    V::F best[kVectors];
    GE_UNROLL
    for (int u = 0; u < kVectors; ++u) best[u] = V::load(top + u * V::kLanes);
    for (int64_t j = 0; j < columns; j += 16) {
      GE_UNROLL
      for (int u = 0; u < kVectors; ++u) {
        const int64_t at = j + u * V::kLanes;
        V::F x = V::load(c + at);
        if (n < at + V::kLanes) {
          x = V::keep_n(x, n > at ? n - at : 0, minus_inf);
          V::store(c + at, x);
        }
        best[u] = V::max(best[u], x);
      }
    }
    GE_UNROLL
    for (int u = 0; u < kVectors; ++u) V::store(top + u * V::kLanes, best[u]);
  }
}

// x = exp(x - top) for n values of a row, n a multiple of 16; gives their sum.
static float exp_row(float* x, int64_t n, float top) {
  const V::F shift = V::set1(-top);
  V::F sum[2] = {V::zero(), V::zero()};
  constexpr int64_t kStep = 2 * V::kLanes;
  int64_t j = 0;
  for (; j + kStep <= n; j += kStep) {
    GE_UNROLL
    for (int u = 0; u < 2; ++u) {
      const V::F e = exp_nonpositive(V::add(V::load(x + j + u * V::kLanes), shift));
      V::store(x + j + u * V::kLanes, e);
      sum[u] = V::add(sum[u], e);
    }
  }
  for (; j < n; j += V::kLanes) {
    const V::F e = exp_nonpositive(V::add(V::load(x + j), shift));
    V::store(x + j, e);
    sum[0] = V::add(sum[0], e);
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

// out[u] = scale * the sum of x[u]'s lanes, for four vectors.
GE_INLINE void sum_four(const V::F (&x)[4], float scale, float* out) {
  float lane[V::kLanes];
  V128::F q[4];
  GE_UNROLL
  for (int u = 0; u < 4; ++u) {
    V::store(lane, x[u]);
    q[u] = V128::load(lane);
    GE_UNROLL
    for (int i = 4; i < V::kLanes; i += 4) q[u] = V128::add(q[u], V128::load(lane + i));
  }
  const V128::F a = V128::add(__builtin_shufflevector(q[0], q[1], 0, 4, 1, 5), __builtin_shufflevector(q[0], q[1], 2, 6, 3, 7));
  const V128::F b = V128::add(__builtin_shufflevector(q[2], q[3], 0, 4, 1, 5), __builtin_shufflevector(q[2], q[3], 2, 6, 3, 7));
  const V128::F sum = V128::add(__builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7));
  V128::store(out, V128::mul(sum, V128::set1(scale)));
}

// scale * <q, k_j> for n keys of d values each, keys `step` floats apart; out has room for n up to a multiple of 4.
static void dot_row(const float* q, const float* k, int64_t step, int64_t n, int64_t d, float scale, float* out) {
  for (int64_t j = 0; j < n; j += 4) {
    const float* key[4];
    GE_UNROLL
    for (int u = 0; u < 4; ++u) key[u] = k + (j + u < n ? j + u : n - 1) * step;
    V::F sum[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
    int64_t i = 0;
    for (; i + V::kLanes <= d; i += V::kLanes) {
      const V::F x = V::load(q + i);
      GE_UNROLL
      for (int u = 0; u < 4; ++u) sum[u] = V::fma(x, V::load(key[u] + i), sum[u]);
    }
    if (i < d) {
      const V::F x = V::load_n(q + i, d - i);
      GE_UNROLL
      for (int u = 0; u < 4; ++u) sum[u] = V::fma(x, V::load_n(key[u] + i, d - i), sum[u]);
    }
    sum_four(sum, scale, out + j);
  }
}

// acc[0, NV * kLanes) += sum over j of p[j] * v[j * step + ...].
template <int NV>
GE_INLINE void mix_columns(const float* p, const float* v, int64_t step, int64_t n, float* acc) {
  V::F a[NV];
  GE_UNROLL
  for (int u = 0; u < NV; ++u) a[u] = V::load(acc + u * V::kLanes);
  for (int64_t j = 0; j < n; ++j) {
    const V::F w = V::set1(p[j]);
    GE_UNROLL
    for (int u = 0; u < NV; ++u) a[u] = V::fma(w, V::load(v + j * step + u * V::kLanes), a[u]);
  }
  GE_UNROLL
  for (int u = 0; u < NV; ++u) V::store(acc + u * V::kLanes, a[u]);
}

// acc[0, d) += sum over j of p[j] * v[j * step + ...]; acc is padded to a multiple of 16.
static void mix_row(const float* p, const float* v, int64_t step, int64_t n, int64_t d, float* acc) {
  int64_t i = 0;
  for (; i + 8 * V::kLanes <= d; i += 8 * V::kLanes) mix_columns<8>(p, v + i, step, n, acc + i);
  for (; i + 4 * V::kLanes <= d; i += 4 * V::kLanes) mix_columns<4>(p, v + i, step, n, acc + i);
  for (; i + V::kLanes <= d; i += V::kLanes) mix_columns<1>(p, v + i, step, n, acc + i);
  if (i == d) return;
  V::F a = V::load(acc + i);
  for (int64_t j = 0; j < n; ++j) a = V::fma(V::set1(p[j]), V::load_n(v + j * step + i, d - i), a);
  V::store(acc + i, a);
}
