// Transforms of cube.winograd; see winograd.h. Included by conv_targets.h only, inside a namespace.

// One axis: B^T d for T = 4 and T = 2.
GE_INLINE void transform_input(const V::F (&d)[6], V::F (&t)[6]) {
  const V::F root = V::set1(1.41421356237f), half_root = V::set1(0.70710678119f), k = V::set1(-2.5f);
  t[0] = V::fma(k, d[2], V::add(d[0], d[4]));
  t[5] = V::fma(k, d[3], V::add(d[1], d[5]));
  const V::F even = V::fma(V::set1(-2.f), d[2], d[4]);
  const V::F odd = V::mul(half_root, V::fma(V::set1(-2.f), d[1], d[3]));
  t[1] = V::add(even, odd);
  t[2] = V::sub(even, odd);
  const V::F wide_even = V::fma(V::set1(-0.5f), d[2], d[4]);
  const V::F wide_odd = V::mul(root, V::fma(V::set1(-0.5f), d[1], d[3]));
  t[3] = V::add(wide_even, wide_odd);
  t[4] = V::sub(wide_even, wide_odd);
}
GE_INLINE void transform_input(const V::F (&d)[4], V::F (&t)[4]) {
  t[0] = V::sub(d[0], d[2]);
  t[1] = V::add(d[1], d[2]);
  t[2] = V::sub(d[2], d[1]);
  t[3] = V::sub(d[1], d[3]);
}

// One axis: G g.
GE_INLINE void transform_filter(const V::F (&g)[3], V::F (&u)[6]) {
  const V::F root = V::set1(1.41421356237f), half_root = V::set1(0.70710678119f);
  u[0] = g[0];
  const V::F even = V::fma(V::set1(0.5f), g[2], g[0]), odd = V::mul(half_root, g[1]);
  u[1] = V::mul(V::set1(-1 / 1.5f), V::add(even, odd));
  u[2] = V::mul(V::set1(-1 / 1.5f), V::sub(even, odd));
  const V::F wide_even = V::fma(V::set1(2.f), g[2], g[0]), wide_odd = V::mul(root, g[1]);
  u[3] = V::mul(V::set1(1 / 6.f), V::add(wide_even, wide_odd));
  u[4] = V::mul(V::set1(1 / 6.f), V::sub(wide_even, wide_odd));
  u[5] = g[2];
}
GE_INLINE void transform_filter(const V::F (&g)[3], V::F (&u)[4]) {
  const V::F half = V::set1(0.5f), sum = V::mul(half, V::add(g[0], g[2])), middle = V::mul(half, g[1]);
  u[0] = g[0];
  u[1] = V::add(sum, middle);
  u[2] = V::sub(sum, middle);
  u[3] = g[2];
}

// Vectors of one panel of packed weights, [taps][C][16], from i on: frequency f goes to u + f * frequency.
template <int T, bool kTwoAxes>
GE_INLINE void transform_vector(const float* w, int64_t tap, float* u, int64_t frequency) {
  constexpr int A = T + 2, kRows = kTwoAxes ? A : 1, kTaps = kTwoAxes ? 3 : 1;
  V::F part[kTaps][A];
  GE_UNROLL
  for (int r = 0; r < kTaps; ++r) {
    const V::F g[3] = {V::load(w + (r * 3 + 0) * tap), V::load(w + (r * 3 + 1) * tap), V::load(w + (r * 3 + 2) * tap)};
    transform_filter(g, part[r]);
  }
  for (int q = 0; q < A; ++q) {
    if constexpr (kTwoAxes) {
      const V::F g[3] = {part[0][q], part[1][q], part[2][q]};
      V::F out[A];
      transform_filter(g, out);
      GE_UNROLL
      for (int r = 0; r < kRows; ++r) V::store(u + (r * A + q) * frequency, out[r]);
    } else {
      V::store(u + q * frequency, part[0][q]);
    }
  }
}

// One panel, to [frequency][C][16] whose frequencies lie `frequency` floats apart: some vectors at a time, by way of a
// buffer, as stores to places that lie a multiple of 4 KB apart evict one another.
template <int T, bool kTwoAxes>
static void transform_panel(const float* w, int64_t channels, float* u, int64_t frequency) {
  constexpr int A = T + 2, kFrequencies = kTwoAxes ? A * A : A, kVectors = 8;
  constexpr int64_t kStep = kVectors * V::kLanes;
  alignas(64) float block[kFrequencies * kStep];
  for (int64_t i = 0; i < channels * 16; i += kStep) {
    const int64_t n = channels * 16 - i < kStep ? channels * 16 - i : kStep;
    for (int64_t j = 0; j < n; j += V::kLanes) transform_vector<T, kTwoAxes>(w + i + j, channels * 16, block + j, kStep);
    for (int f = 0; f < kFrequencies; ++f)
      for (int64_t j = 0; j < n; j += V::kLanes) V::store(u + f * frequency + i + j, V::load(block + f * kStep + j));
  }
}

static void winograd_filters(int tile, bool two_axes, const float* w, int64_t channels, float* u, int64_t frequency) {
  if (tile == 4) two_axes ? transform_panel<4, true>(w, channels, u, frequency) : transform_panel<4, false>(w, channels, u, frequency);
  else two_axes ? transform_panel<2, true>(w, channels, u, frequency) : transform_panel<2, false>(w, channels, u, frequency);
}

// One axis: A^T m.
GE_INLINE void transform_output(const V::F (&m)[6], V::F (&y)[4]) {
  const V::F root = V::set1(1.41421356237f), half_root = V::set1(0.70710678119f);
  const V::F s1 = V::add(m[1], m[2]), d1 = V::sub(m[1], m[2]), s2 = V::add(m[3], m[4]), d2 = V::sub(m[3], m[4]);
  const V::F a = V::mul(half_root, d1), b = V::mul(root, d2);
  y[0] = V::add(m[0], V::add(s1, s2));
  y[1] = V::add(a, b);
  y[2] = V::fma(V::set1(0.5f), s1, V::add(s2, s2));
  y[3] = V::add(V::fma(V::set1(0.5f), a, V::add(b, b)), m[5]);
}
GE_INLINE void transform_output(const V::F (&m)[4], V::F (&y)[2]) {
  y[0] = V::add(m[0], V::add(m[1], m[2]));
  y[1] = V::sub(V::sub(m[1], m[2]), m[3]);
}

// One patch, all channels; frequency f of channel c goes to v[f * frequency + c]. kAll: the whole patch is inside.
template <int T, bool kTwoAxes, bool kAll>
static void transform_patch(const WinogradPatch& p, int64_t channels, float* v, int64_t frequency) {
  constexpr int A = T + 2, kRows = kTwoAxes ? A : 1;
  for (int64_t c = 0; c < channels; c += V::kLanes) {
    const int64_t n = channels - c < V::kLanes ? channels - c : V::kLanes;
    V::F part[kRows][A];
    for (int j = 0; j < A; ++j) {
      V::F d[kRows], t[kRows];
      const float* column = p.at + j * p.column + c;
      GE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        const bool inside = kAll || (i >= p.r0 && i < p.r1 && j >= p.c0 && j < p.c1);
        d[i] = !inside ? V::zero() : n == V::kLanes ? V::load(column + i * p.row) : V::load_n(column + i * p.row, n);
      }
      if constexpr (kTwoAxes) {
        transform_input(d, t);
        GE_UNROLL
        for (int i = 0; i < kRows; ++i) part[i][j] = t[i];
      } else {
        part[0][j] = d[0];
      }
    }
    for (int i = 0; i < kRows; ++i) {
      V::F d[A], t[A];
      GE_UNROLL
      for (int j = 0; j < A; ++j) d[j] = part[i][j];
      transform_input(d, t);
      float* out = v + i * A * frequency + c;
      GE_UNROLL
      for (int j = 0; j < A; ++j) {
        if (n == V::kLanes) V::store(out + j * frequency, t[j]);
        else V::store_n(out + j * frequency, t[j], n);
      }
    }
  }
}

static void winograd_input(int tile, bool two_axes, const WinogradPatch& p, int64_t channels, float* v, int64_t frequency) {
  const int64_t rows = two_axes ? tile + 2 : 1;
  const bool all = p.r0 == 0 && p.c0 == 0 && p.r1 == rows && p.c1 == tile + 2;
  if (tile == 4) {
    if (two_axes) all ? transform_patch<4, true, true>(p, channels, v, frequency) : transform_patch<4, true, false>(p, channels, v, frequency);
    else all ? transform_patch<4, false, true>(p, channels, v, frequency) : transform_patch<4, false, false>(p, channels, v, frequency);
  } else {
    if (two_axes) all ? transform_patch<2, true, true>(p, channels, v, frequency) : transform_patch<2, true, false>(p, channels, v, frequency);
    else all ? transform_patch<2, false, true>(p, channels, v, frequency) : transform_patch<2, false, false>(p, channels, v, frequency);
  }
}

GE_INLINE V::F winograd_act(V::F x, const Epilogue& e) {
  switch (e.act) {
    case Act::none: return x;
    case Act::relu: return V::max(V::zero(), x);
    case Act::clip: return V::min(V::set1(e.hi), V::max(V::set1(e.lo), x));
    case Act::leaky: return V::if_negative(x, V::mul(V::set1(e.alpha), x));
  }
  return x;
}

// One tile, n columns: m[f * frequency + column] to the `rows` x `columns` outputs at y, with bias, residual and
// activation. The residual may be y.
template <int T, bool kTwoAxes>
static void finish_patch(const float* m, int64_t frequency, int64_t n, const Epilogue& e, const WinogradOut& o) {
  constexpr int A = T + 2, kRows = kTwoAxes ? A : 1, kOut = kTwoAxes ? T : 1;
  for (int64_t c = 0; c < n; c += V::kLanes) {
    const int64_t w = n - c < V::kLanes ? n - c : V::kLanes;
    const V::F bias = e.bias ? V::load_n(e.bias + c, w) : V::zero();
    V::F part[kOut][A];
    for (int j = 0; j < A; ++j) {
      V::F d[kRows];
      GE_UNROLL
      for (int i = 0; i < kRows; ++i) d[i] = V::load(m + (i * A + j) * frequency + c);
      if constexpr (kTwoAxes) {
        V::F t[kOut];
        transform_output(d, t);
        GE_UNROLL
        for (int i = 0; i < kOut; ++i) part[i][j] = t[i];
      } else {
        part[0][j] = d[0];
      }
    }
    for (int64_t i = 0; i < o.rows; ++i) {
      V::F d[A], y[T];
      GE_UNROLL
      for (int j = 0; j < A; ++j) d[j] = part[i][j];
      transform_output(d, y);
      GE_UNROLL
      for (int j = 0; j < T; ++j) {
        if (j >= o.columns) break;
        V::F x = V::add(y[j], bias);
        if (o.residual) x = V::add(x, V::load_n(o.residual + i * o.residual_row + j * o.residual_column + c, w));
        x = winograd_act(x, e);
        float* at = o.y + i * o.row + j * o.column + c;
        if (w == V::kLanes) V::store(at, x);
        else V::store_n(at, x, w);
      }
    }
  }
}

static void winograd_output(int tile, bool two_axes, const float* m, int64_t frequency, int64_t n, const Epilogue& e, const WinogradOut& o) {
  if (tile == 4) two_axes ? finish_patch<4, true>(m, frequency, n, e, o) : finish_patch<4, false>(m, frequency, n, e, o);
  else two_axes ? finish_patch<2, true>(m, frequency, n, e, o) : finish_patch<2, false>(m, frequency, n, e, o);
}
