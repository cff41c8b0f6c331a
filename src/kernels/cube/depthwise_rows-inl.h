// Two or three output rows of a 3x3 depthwise convolution together; included by depthwise-inl.h. All
// nine weights stay in registers and every input vector is read once for the output rows that share
// it: most layers wait for the caches behind the first. Needs 32 vector registers; 3 rows of 7 pixels
// fill them. Each output is the same sum in the same order as in dw_vector, so results do not
// depend on which rows are taken together.
//
// Where lines that are read one after another lie far apart, those of one vector of channels come slowly from
// the second-level cache (one bank of it, and no neighbours). There two vectors are taken at a time (DepthwiseRow::pairs):
// two rows of 7 pixels of them fill the registers, with the weights of one kernel row.

template <int S, int R, int T, int E>
GE_INLINE void dw_rows_vector(const DepthwiseRow& r, int64_t c, int64_t ow) {
  constexpr int kColumns = (T - 1) * S + 3, kRows = (R - 1) * S + 3;
  V::F acc[R][T], w[3][3];
  const V::F bias = r.bias ? V::load(r.bias + c) : V::zero();
  GE_UNROLL
  for (int o = 0; o < R; ++o) {
    GE_UNROLL
    for (int t = 0; t < T; ++t) acc[o][t] = bias;
  }
  GE_UNROLL
  for (int k = 0; k < 3; ++k) {
    GE_UNROLL
    for (int i = 0; i < 3; ++i) w[k][i] = V::load(r.w[k] + i * r.weight_step + c);
  }
  GE_UNROLL
  for (int k = 0; k < kRows; ++k) {
    if (!r.x[k]) continue;  // outside of the input
    const float* p = r.x[k] + (ow * S - r.pad) * r.x_step + c;
    GE_UNROLL_COLUMNS
    for (int j = 0; j < kColumns; ++j, p += r.x_step) {
      if ((E & kLeft) && j == 0) continue;
      if ((E & kRight) && j == kColumns - 1) continue;
      const V::F x = V::load(p);
      GE_UNROLL
      for (int o = 0; o < R; ++o) {
        if (k < o * S || k >= o * S + 3) continue;
        GE_UNROLL
        for (int i = 0; i < 3; ++i)
          if (j >= i && (j - i) % S == 0 && (j - i) / S < T)
            acc[o][(j - i) / S] = V::fma(x, w[k - o * S][i], acc[o][(j - i) / S]);
      }
    }
  }
  GE_UNROLL
  for (int o = 0; o < R; ++o)
    finish<T>(acc[o], r, c, ow, static_cast<std::byte*>(r.y) + o * r.y_row * (r.y16 ? 2 : 4), r.residual ? r.residual + o * r.residual_row : nullptr);
}

template <int S, int R, int T, int E>
static void dw_rows_tile(const DepthwiseRow& r, int64_t ow) {
  const int64_t last = r.channels - V::kLanes;
  for (int64_t c = 0; c < r.channels; c += V::kLanes)
    dw_rows_vector<S, R, T, E>(r, c < last ? c : last, ow);
}

template <int S, int R, int E>
struct RowsTable {
  static constexpr TileFn fn[kMaxRowsTile + 1] = {nullptr,
                                              dw_rows_tile<S, R, 1, E>,
                                              dw_rows_tile<S, R, 2, E>,
                                              dw_rows_tile<S, R, 3, E>,
                                              dw_rows_tile<S, R, 4, E>,
                                              dw_rows_tile<S, R, 5, E>,
                                              dw_rows_tile<S, R, 6, E>,
                                              dw_rows_tile<S, R, 7, E>};
};

template <int S, int R>
static void dw_rows_of(const DepthwiseRow& r) {
  constexpr const TileFn* kEdges[4] = {RowsTable<S, R, kInside>::fn, RowsTable<S, R, kLeft>::fn,
                                       RowsTable<S, R, kRight>::fn, RowsTable<S, R, kBoth>::fn};
  for (int64_t i = 0; i < r.tile_count; ++i) {
    const DepthwiseTile t = r.tiles ? r.tiles[i] : depthwise_tile(r, i);
    kEdges[t.edge][t.width](r, t.begin);
  }
}

// One kernel row for T neighbouring pixels: p is their first column, w the first of its three weights.
template <int S, int T>
GE_INLINE void dw_kernel_row(V::F (&acc)[T], const DepthwiseRow& r, const float* p, const float* w, int edge) {
  constexpr int kColumns = (T - 1) * S + 3;
  const V::F taps[3] = {V::load(w), V::load(w + r.weight_step), V::load(w + 2 * r.weight_step)};
  GE_UNROLL_COLUMNS
  for (int j = 0; j < kColumns; ++j, p += r.x_step) {
    if (j == 0 && (edge & kLeft)) continue;
    if (j == kColumns - 1 && (edge & kRight)) continue;
    const V::F x = V::load(p);
    GE_UNROLL
    for (int i = 0; i < 3; ++i)
      if (j >= i && (j - i) % S == 0 && (j - i) / S < T) acc[(j - i) / S] = V::fma(x, taps[i], acc[(j - i) / S]);
  }
}

// U vectors of channels of R rows of T pixels.
template <int S, int R, int T, int U>
GE_INLINE void dw_block(const DepthwiseRow& r, int64_t c, int64_t ow, int edge) {
  V::F acc[U][R][T];
  GE_UNROLL
  for (int u = 0; u < U; ++u) {
    const V::F bias = r.bias ? V::load(r.bias + c + u * V::kLanes) : V::zero();
    GE_UNROLL
    for (int o = 0; o < R; ++o) {
      GE_UNROLL
      for (int t = 0; t < T; ++t) acc[u][o][t] = bias;
    }
  }
  GE_UNROLL
  for (int k = 0; k < (R - 1) * S + 3; ++k) {
    if (!r.x[k]) continue;  // outside of the input
    const float* p = r.x[k] + (ow * S - r.pad) * r.x_step + c;
    GE_UNROLL
    for (int u = 0; u < U; ++u) {
      GE_UNROLL
      for (int o = 0; o < R; ++o)
        if (k >= o * S && k < o * S + 3)
          dw_kernel_row<S>(acc[u][o], r, p + u * V::kLanes, r.w[k - o * S] + c + u * V::kLanes, edge);
    }
  }
  GE_UNROLL
  for (int u = 0; u < U; ++u) {
    GE_UNROLL
    for (int o = 0; o < R; ++o)
      finish<T>(acc[u][o], r, c + u * V::kLanes, ow, static_cast<std::byte*>(r.y) + o * r.y_row * (r.y16 ? 2 : 4), r.residual ? r.residual + o * r.residual_row : nullptr);
  }
}

template <int S, int R, int T>
static void dw_pairs_tile(const DepthwiseRow& r, const DepthwiseTile& t) {
  const int64_t last = r.channels - V::kLanes;
  int64_t c = 0;
  for (; c + 2 * V::kLanes <= r.channels; c += 2 * V::kLanes) dw_block<S, R, T, 2>(r, c, t.begin, t.edge);
  for (; c < r.channels; c += V::kLanes) dw_block<S, R, T, 1>(r, c < last ? c : last, t.begin, t.edge);
}

template <int S, int R>
static void dw_pairs_of(const DepthwiseRow& r) {
  constexpr void (*kTiles[4])(const DepthwiseRow&, const DepthwiseTile&) = {dw_pairs_tile<S, R, 4>, dw_pairs_tile<S, R, 5>, dw_pairs_tile<S, R, 6>, dw_pairs_tile<S, R, 7>};
  static_assert(kMinPairsTile == 4 && kMaxRowsTile == 7);
  for (int64_t i = 0; i < r.tile_count; ++i) {
    const DepthwiseTile t = r.tiles ? r.tiles[i] : depthwise_tile(r, i);
    kTiles[t.width - kMinPairsTile](r, t);
  }
}

// The most output rows that dw_rows() takes together.
static int64_t rows_together(const DepthwiseRow& r) {
  if (V::kLanes != 16 || r.channels < V::kLanes) return 1;
  return r.pairs ? 2 : 3;
}

// 2 or 3 rows, of pairs 1 or 2; no tile has the edge kAny.
static void dw_rows(const DepthwiseRow& r, int64_t rows) {
  if constexpr (V::kLanes == 16) {
    if (r.pairs && r.stride == 1) return rows == 1 ? dw_pairs_of<1, 1>(r) : dw_pairs_of<1, 2>(r);
    if (r.pairs) return rows == 1 ? dw_pairs_of<2, 1>(r) : dw_pairs_of<2, 2>(r);
    if (rows == 2) return r.stride == 1 ? dw_rows_of<1, 2>(r) : dw_rows_of<2, 2>(r);
    r.stride == 1 ? dw_rows_of<1, 3>(r) : dw_rows_of<2, 3>(r);
  }
}
