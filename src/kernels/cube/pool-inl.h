// The loops of the pools; see pool.h. Included by conv_targets.h only, inside a namespace.
inline constexpr int kLanes = V::kLanes;

template <bool kMax>
GE_INLINE V::F combine(V::F a, V::F x) {
  if constexpr (kMax)
    return V::max_nan(a, x);
  else
    return V::add(a, x);
}
template <bool kMax>
GE_INLINE float combine1(float a, float x) {
  if constexpr (kMax) return (x > a || x != x) ? x : a;
  return a + x;
}
template <bool kMax>
inline constexpr float kNeutral = kMax ? -std::numeric_limits<float>::infinity() : 0.0f;

// One window of a channels-last input: where its first valid tap lies and how many there are.
struct Window {
  const float* x;
  int64_t count[3], step[3];
};

// The largest of a window, or its mean: the sum over `scale`.
template <bool kMax, int U, bool kPart>
GE_INLINE void store_block(const V::F* acc, int64_t n, V::F scale, float* y) {
  GE_UNROLL
  for (int u = 0; u < U; ++u) {
    V::F v = kMax ? acc[u] : V::div(acc[u], scale);
    if constexpr (kPart)
      V::store_n(y, v, n);
    else
      V::store(y + u * kLanes, v);
  }
}

template <bool kMax, int U, bool kPart>
GE_INLINE void pool_block(const Window& w, int64_t c, int64_t n, V::F scale, float* y) {
  V::F acc[U];
  GE_UNROLL
  for (int u = 0; u < U; ++u) acc[u] = V::set1(kNeutral<kMax>);
  for (int64_t d = 0; d < w.count[0]; ++d)
    for (int64_t h = 0; h < w.count[1]; ++h) {
      const float* p = w.x + d * w.step[0] + h * w.step[1] + c;
      for (int64_t i = 0; i < w.count[2]; ++i, p += w.step[2]) {
        GE_UNROLL
        for (int u = 0; u < U; ++u)
          acc[u] = combine<kMax>(acc[u], kPart ? V::load_n(p, n) : V::load(p + u * kLanes));
      }
    }
  store_block<kMax, U, kPart>(acc, n, scale, y + c);
}

template <bool kMax>
static void pool_pixel(const Window& w, int64_t c0, int64_t c1, float scale, float* y) {
  V::F s = V::set1(scale);
  int64_t c = c0;
  for (; c + 4 * kLanes <= c1; c += 4 * kLanes) pool_block<kMax, 4, false>(w, c, 0, s, y);
  for (; c + kLanes <= c1; c += kLanes) pool_block<kMax, 1, false>(w, c, 0, s, y);
  if (c < c1) pool_block<kMax, 1, true>(w, c, c1 - c, s, y);
}

// Windows of `rows` rows of KW taps, all inside the input, of pixels that lie evenly.
struct FullWindows {
  const float* x;
  float* y;
  int64_t rows, row_step, tap_step, x_step, y_step, pixels;
};

template <bool kMax, int KW, int U, bool kPart>
GE_INLINE void full_block(const FullWindows& w, const float* x, int64_t n, V::F scale, float* y) {
  V::F acc[U];
  GE_UNROLL
  for (int u = 0; u < U; ++u) acc[u] = V::set1(kNeutral<kMax>);
  for (int64_t h = 0; h < w.rows; ++h, x += w.row_step) {
    GE_UNROLL
    for (int k = 0; k < KW; ++k) {
      GE_UNROLL
      for (int u = 0; u < U; ++u) {
        const float* p = x + k * w.tap_step + u * kLanes;
        acc[u] = combine<kMax>(acc[u], kPart ? V::load_n(p, n) : V::load(p));
      }
    }
  }
  store_block<kMax, U, kPart>(acc, n, scale, y);
}

template <bool kMax, int KW>
static void full_pixels(const FullWindows& w, int64_t c0, int64_t c1, float scale) {
  const V::F s = V::set1(scale);
  const float* x = w.x;
  float* y = w.y;
  for (int64_t i = 0; i < w.pixels; ++i, x += w.x_step, y += w.y_step) {
    int64_t c = c0;
    for (; c + 4 * kLanes <= c1; c += 4 * kLanes) full_block<kMax, KW, 4, false>(w, x + c, 0, s, y + c);
    if (c + 2 * kLanes <= c1) full_block<kMax, KW, 2, false>(w, x + c, 0, s, y + c), c += 2 * kLanes;
    if (c + kLanes <= c1) full_block<kMax, KW, 1, false>(w, x + c, 0, s, y + c), c += kLanes;
    if (c < c1) full_block<kMax, KW, 1, true>(w, x + c, c1 - c, s, y + c);
  }
}

// One column of a window; it has a row.
template <bool kMax, int U, bool kPart>
GE_INLINE void full_column(const FullWindows& w, const float* x, int64_t n, V::F (&acc)[U]) {
  GE_UNROLL
  for (int u = 0; u < U; ++u) acc[u] = kPart ? V::load_n(x, n) : V::load(x + u * kLanes);
  for (int64_t h = 1; h < w.rows; ++h) {
    x += w.row_step;
    GE_UNROLL
    for (int u = 0; u < U; ++u) acc[u] = combine<kMax>(acc[u], kPart ? V::load_n(x, n) : V::load(x + u * kLanes));
  }
}

// Windows that share all but one of their columns: each column is made once.
template <bool kMax, int KW, int U, bool kPart>
GE_INLINE void sliding_block(const FullWindows& w, const float* x, int64_t n, V::F scale, float* y) {
  V::F column[KW][U];
  GE_UNROLL
  for (int k = 1; k < KW; ++k, x += w.x_step) full_column<kMax, U, kPart>(w, x, n, column[k]);
  for (int64_t i = 0; i < w.pixels; ++i, x += w.x_step, y += w.y_step) {
    V::F acc[U];
    GE_UNROLL
    for (int k = 1; k < KW; ++k) {
      GE_UNROLL
      for (int u = 0; u < U; ++u) column[k - 1][u] = column[k][u];
    }
    full_column<kMax, U, kPart>(w, x, n, column[KW - 1]);
    GE_UNROLL
    for (int u = 0; u < U; ++u) acc[u] = column[0][u];
    GE_UNROLL
    for (int k = 1; k < KW; ++k) {
      GE_UNROLL
      for (int u = 0; u < U; ++u) acc[u] = combine<kMax>(acc[u], column[k][u]);
    }
    store_block<kMax, U, kPart>(acc, n, scale, y);
  }
}

template <bool kMax, int KW>
static void sliding_pixels(const FullWindows& w, int64_t c0, int64_t c1, float scale) {
  const V::F s = V::set1(scale);
  int64_t c = c0;
  for (; c + 2 * kLanes <= c1; c += 2 * kLanes) sliding_block<kMax, KW, 2, false>(w, w.x + c, 0, s, w.y + c);
  for (; c + kLanes <= c1; c += kLanes) sliding_block<kMax, KW, 1, false>(w, w.x + c, 0, s, w.y + c);
  if (c < c1) sliding_block<kMax, KW, 1, true>(w, w.x + c, c1 - c, s, w.y + c);
}

template <bool kMax>
static void full_windows(const FullWindows& w, int64_t taps, int64_t c0, int64_t c1, float scale) {
  if (w.rows > 0 && w.tap_step == w.x_step) taps == 2 ? sliding_pixels<kMax, 2>(w, c0, c1, scale) : sliding_pixels<kMax, 3>(w, c0, c1, scale);
  else if (taps == 2) full_pixels<kMax, 2>(w, c0, c1, scale);
  else full_pixels<kMax, 3>(w, c0, c1, scale);
}

// The outputs [first, last) of a row whose windows lie inside the input along the row.
static TapRange full_columns(const ConvShape& s) {
  const int64_t first = (s.pad[2] + s.stride[2] - 1) / s.stride[2];
  const int64_t room = s.in[2] - 1 - (s.k[2] - 1) * s.dilation[2] + s.pad[2];
  return {first, std::max(first, std::min(s.out[2], room < 0 ? 0 : room / s.stride[2] + 1))};
}

// One output row (n, od, oh) of a channels-last pool, channels [c0, c1).
static void pool_row_channels_last(const PoolTask& t, int64_t n, int64_t od, int64_t oh, int64_t c0,
                                   int64_t c1) {
  const ConvShape& s = t.s;
  bool max = t.kind == PoolKind::max;
  TapRange d = valid_taps(s, 0, od), h = valid_taps(s, 1, oh);
  int64_t div_dh = max ? 1 : divisor(t, 0, od) * divisor(t, 1, oh);
  int64_t id = od * s.stride[0] - s.pad[0] + d.first * s.dilation[0];
  int64_t ih = oh * s.stride[1] - s.pad[1] + h.first * s.dilation[1];
  const float* row = t.x + n * s.xn + id * s.xs[0] + ih * s.xs[1];
  float* y = t.y + n * s.yn + od * s.ys[0] + oh * s.ys[1];
  auto pixels = [&](int64_t begin, int64_t end) {
    for (int64_t ow = begin; ow < end; ++ow) {
      TapRange w = valid_taps(s, 2, ow);
      int64_t iw = ow * s.stride[2] - s.pad[2] + w.first * s.dilation[2];
      Window win{row + iw * s.xs[2],
                 {d.last - d.first, h.last - h.first, w.last - w.first},
                 {s.dilation[0] * s.xs[0], s.dilation[1] * s.xs[1], s.dilation[2] * s.xs[2]}};
      if (max) {
        pool_pixel<true>(win, c0, c1, 1, y + ow * s.ys[2]);
      } else {
        int64_t div = div_dh * divisor(t, 2, ow);
        pool_pixel<false>(win, c0, c1, div ? static_cast<float>(div) : 1.0f, y + ow * s.ys[2]);
      }
    }
  };
  const TapRange full = full_columns(s);
  if ((s.k[2] != 2 && s.k[2] != 3) || d.last - d.first != 1 || full.first >= full.last) return pixels(0, s.out[2]);
  pixels(0, full.first);
  const FullWindows w{row + (full.first * s.stride[2] - s.pad[2]) * s.xs[2], y + full.first * s.ys[2], h.last - h.first,
                      s.dilation[1] * s.xs[1], s.dilation[2] * s.xs[2], s.stride[2] * s.xs[2], s.ys[2], full.last - full.first};
  const int64_t div = max ? 1 : div_dh * s.k[2];
  if (max) full_windows<true>(w, s.k[2], c0, c1, 1);
  else full_windows<false>(w, s.k[2], c0, c1, div ? static_cast<float>(div) : 1.0f);
  pixels(full.last, s.out[2]);
}

template <bool kMax>
GE_INLINE void combine_row(float* acc, const float* x, int64_t stride, int64_t n) {
  if (stride == 1) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      V::store(acc + i, combine<kMax>(V::load(acc + i), V::load(x + i)));
    for (; i < n; ++i) acc[i] = combine1<kMax>(acc[i], x[i]);
  } else if (stride == 2) {
    for (int64_t i = 0; i < n; ++i) acc[i] = combine1<kMax>(acc[i], x[2 * i]);
  } else {
    for (int64_t i = 0; i < n; ++i) acc[i] = combine1<kMax>(acc[i], x[i * stride]);
  }
}

template <bool kMax>
static void pool_row(const PoolTask& t, int64_t n, int64_t c, int64_t od, int64_t oh, float* column,
                     float* acc, const float* width_divisor) {
  const ConvShape& s = t.s;
  int64_t in = s.in[2], out = s.out[2];
  TapRange d = valid_taps(s, 0, od), h = valid_taps(s, 1, oh);
  // First over the window's rows, for every input column, then along the row.
  for (int64_t i = 0; i < in; ++i) column[i] = kNeutral<kMax>;
  for (int64_t kd = d.first; kd < d.last; ++kd)
    for (int64_t kh = h.first; kh < h.last; ++kh) {
      int64_t id = od * s.stride[0] - s.pad[0] + kd * s.dilation[0];
      int64_t ih = oh * s.stride[1] - s.pad[1] + kh * s.dilation[1];
      combine_row<kMax>(column, t.x + n * s.xn + c * s.xc + id * s.xs[0] + ih * s.xs[1], s.xs[2],
                        in);
    }
  for (int64_t i = 0; i < out; ++i) acc[i] = kNeutral<kMax>;
  for (int64_t kw = 0; kw < s.k[2]; ++kw) {
    int64_t shift = kw * s.dilation[2] - s.pad[2];  // input index of tap kw of window 0
    int64_t first = shift >= 0 ? 0 : (-shift + s.stride[2] - 1) / s.stride[2];
    int64_t last = shift >= in ? 0 : std::min(out, (in - shift + s.stride[2] - 1) / s.stride[2]);
    if (first < last)
      combine_row<kMax>(acc + first, column + first * s.stride[2] + shift, s.stride[2],
                        last - first);
  }
  float* y = t.y + n * s.yn + c * s.yc + od * s.ys[0] + oh * s.ys[1];
  if constexpr (kMax) {
    for (int64_t i = 0; i < out; ++i) y[i * s.ys[2]] = acc[i];
  } else {
    float dh = static_cast<float>(divisor(t, 0, od) * divisor(t, 1, oh));
    for (int64_t i = 0; i < out; ++i) {
      float div = dh * width_divisor[i];
      y[i * s.ys[2]] = div > 0 ? acc[i] / div : 0.0f;
    }
  }
}

// Output rows [begin, end), counted over (n, c, od, oh), of a pool with any strides. scratch holds
// in[2] + 2 out[2] floats.
static void pool_rows_any(const PoolTask& t, int64_t begin, int64_t end, float* scratch) {
  const ConvShape& s = t.s;
  float *column = scratch, *acc = column + s.in[2], *width_divisor = acc + s.out[2];
  bool max = t.kind == PoolKind::max;
  if (!max)
    for (int64_t i = 0; i < s.out[2]; ++i) width_divisor[i] = static_cast<float>(divisor(t, 2, i));
  for (int64_t r = begin; r < end; ++r) {
    int64_t oh = r % s.out[1], od = r / s.out[1] % s.out[0], nc = r / (s.out[1] * s.out[0]);
    if (max)
      pool_row<true>(t, nc / s.c, nc % s.c, od, oh, column, acc, width_divisor);
    else
      pool_row<false>(t, nc / s.c, nc % s.c, od, oh, column, acc, width_divisor);
  }
}

// The innermost runs of a global pool's spatial axes, one after another: p is where the current one
// starts; next() is false after the last.
struct Runs {
  const GlobalTask& t;
  const float* p;
  int64_t index[12] = {};
  bool next() {
    for (int a = t.axes - 2; a >= 0; --a) {
      p += t.strides[a];
      if (++index[a] < t.dims[a]) return true;
      p -= t.strides[a] * t.dims[a];
      index[a] = 0;
    }
    return false;
  }
};

// The sum of up to kRun pixels is made alone and then added: one long chain would lose digits.
inline constexpr int64_t kRun = 64;

template <bool kMax, int U, bool kPart>
GE_INLINE void global_block(const GlobalTask& t, const float* x, int64_t n, float* y) {
  V::F total[U];
  GE_UNROLL
  for (int u = 0; u < U; ++u) total[u] = V::set1(kNeutral<kMax>);
  int64_t len = t.dims[t.axes - 1], step = t.strides[t.axes - 1];
  Runs runs{t, x};
  if (t.pixels > 0) {
    do {
      const float* p = runs.p;
      for (int64_t i0 = 0; i0 < len; i0 += kRun) {
        V::F acc[U];
        GE_UNROLL
        for (int u = 0; u < U; ++u) acc[u] = V::set1(kNeutral<kMax>);
        int64_t i1 = std::min(len, i0 + kRun);
        for (int64_t i = i0; i < i1; ++i, p += step) {
          GE_UNROLL
          for (int u = 0; u < U; ++u)
            acc[u] = combine<kMax>(acc[u], kPart ? V::load_n(p, n) : V::load(p + u * kLanes));
        }
        GE_UNROLL
        for (int u = 0; u < U; ++u) total[u] = combine<kMax>(total[u], acc[u]);
      }
    } while (runs.next());
  }
  V::F scale = V::set1(static_cast<float>(t.pixels));
  store_block<kMax, U, kPart>(total, n, scale, y);
}

template <bool kMax>
GE_INLINE void global_channels(const GlobalTask& t, int64_t n, int64_t c, int64_t c1) {
  const float* x = t.x + n * t.xn;
  float* y = t.y + n * t.yn;
  for (; c + 4 * kLanes <= c1; c += 4 * kLanes) global_block<kMax, 4, false>(t, x + c, 0, y + c);
  for (; c + kLanes <= c1; c += kLanes) global_block<kMax, 1, false>(t, x + c, 0, y + c);
  if (c < c1) global_block<kMax, 1, true>(t, x + c, c1 - c, y + c);
}

static void global_channels_last(const GlobalTask& t, int64_t n, int64_t c0, int64_t c1) {
  if (t.max)
    global_channels<true>(t, n, c0, c1);
  else
    global_channels<false>(t, n, c0, c1);
}

template <bool kMax>
GE_INLINE float reduce_run(const float* p, int64_t n, int64_t step) {
  float r = kNeutral<kMax>;
  int64_t i = 0;
  if (step == 1 && n >= kLanes) {
    V::F acc[4];
    GE_UNROLL
    for (int u = 0; u < 4; ++u) acc[u] = V::set1(kNeutral<kMax>);
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
      GE_UNROLL
      for (int u = 0; u < 4; ++u) acc[u] = combine<kMax>(acc[u], V::load(p + i + u * kLanes));
    }
    for (; i + kLanes <= n; i += kLanes) acc[0] = combine<kMax>(acc[0], V::load(p + i));
    acc[0] = combine<kMax>(combine<kMax>(acc[0], acc[1]), combine<kMax>(acc[2], acc[3]));
    float lanes[kLanes];
    V::store(lanes, acc[0]);
    for (int l = 0; l < kLanes; ++l) r = combine1<kMax>(r, lanes[l]);
  }
  for (; i < n; ++i) r = combine1<kMax>(r, p[i * step]);
  return r;
}

template <bool kMax>
GE_INLINE void global_plane(const GlobalTask& t, const float* x, float* y) {
  int64_t len = t.dims[t.axes - 1], step = t.strides[t.axes - 1];
  double sum = 0;
  float most = kNeutral<kMax>;
  Runs runs{t, x};
  if (t.pixels > 0) {
    do {
      for (int64_t i = 0; i < len; i += 1024) {
        float r = reduce_run<kMax>(runs.p + i * step, std::min<int64_t>(1024, len - i), step);
        if constexpr (kMax)
          most = combine1<true>(most, r);
        else
          sum += r;
      }
    } while (runs.next());
  }
  *y = kMax ? most : static_cast<float>(sum / static_cast<double>(t.pixels));
}

// Planes [begin, end), counted over (n, c), of a global pool with any strides.
static void global_planes(const GlobalTask& t, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float* x = t.x + i / t.c * t.xn + i % t.c * t.xc;
    float* y = t.y + i / t.c * t.yn + i % t.c * t.yc;
    if (t.max)
      global_plane<true>(t, x, y);
    else
      global_plane<false>(t, x, y);
  }
}
