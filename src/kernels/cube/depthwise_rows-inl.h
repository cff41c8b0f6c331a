// Two or three output rows of a 3x3 depthwise convolution together; included by depthwise-inl.h. All
// nine weights stay in registers and every input vector is read once for the output rows that share
// it: most layers wait for the caches behind the first. Needs 32 vector registers; 3 rows of 7 pixels
// fill them. Each output is the same sum in the same order as in dw_vector, so results do not
// depend on which rows are taken together.

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

// The most output rows that dw_rows() takes together.
static int64_t rows_together(const DepthwiseRow& r) { return V::kLanes == 16 && r.channels >= V::kLanes ? 3 : 1; }

// 2 or 3 rows; no tile has the edge kAny.
static void dw_rows(const DepthwiseRow& r, int64_t rows) {
  if constexpr (V::kLanes == 16) {
    if (rows == 2) return r.stride == 1 ? dw_rows_of<1, 2>(r) : dw_rows_of<2, 2>(r);
    r.stride == 1 ? dw_rows_of<1, 3>(r) : dw_rows_of<2, 3>(r);
  }
}
