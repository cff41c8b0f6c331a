// Bodies of the microkernels as templates over a vector type V (simd.h). Included once by each
// microkernel_<isa>.cc between GE_TARGET_BEGIN and GE_TARGET_END inside a namespace of its own, after the
// headers that it needs; not self-contained, no include guard on purpose.

// Sums longer than kLongK are made of blocks of kBlockK that start from zero: a single chain of thousands of
// additions loses a digit.
inline constexpr int64_t kLongK = 1024;
inline constexpr int64_t kBlockK = 512;
inline constexpr int64_t kPrefetch = 3072;   // floats of B ahead: beyond the latency of L3, a part of L1
inline constexpr int64_t kPrefetchFew = 64;  // rows of a panel ahead where reading B takes all the time

GE_INLINE int64_t row_start(const Block& t, int64_t i) {
  if (!t.row_offset) return i * t.lda;
  return t.lda ? t.row_offset[i / kRowGroup] + i % kRowGroup * t.lda : t.row_offset[i];
}

// Where the rows of a tile are: anywhere, or in groups of kRowGroup rows that lie evenly. The registers of a group
// address a tile three times as tall, which a single vector of columns needs: each of its multiply-adds reads A.
template <int MR>
struct AnyRows {
  static constexpr int kRows = MR;
  const float* row[MR];
  GE_INLINE AnyRows at(const Block& t, int64_t i0) {
    AnyRows r;
    GE_UNROLL
    for (int i = 0; i < MR; ++i) r.row[i] = t.a + row_start(t, i0 + i);
    return r;
  }
};
template <int G>
struct EvenRows {
  static constexpr int kRows = G * kRowGroup;
  const float* first[G];
  int64_t step;  // bytes
  GE_INLINE EvenRows at(const Block& t, int64_t i0) {
    EvenRows r;
    GE_UNROLL
    for (int g = 0; g < G; ++g) r.first[g] = t.a + row_start(t, i0 + g * kRowGroup);
    r.step = t.lda * 4;
    return r;
  }
};

// Adds `steps` values of k to acc, for one vector of columns.
template <class V, int G>
GE_INLINE const float* accumulate_span(typename V::F (&acc)[1][G * kRowGroup][1], const EvenRows<G>& rows, int64_t k0,
                                       int64_t steps, const float* b, int64_t) {
  static_assert(kRowGroup == 8);
  const char* first[G];
  GE_UNROLL
  for (int g = 0; g < G; ++g) first[g] = reinterpret_cast<const char*>(rows.first[g] + k0);
  // Registers, not to be computed again.
  int64_t x1 = rows.step, x3 = 3 * x1, x5 = 5 * x1, x7 = 7 * x1;
  asm("" : "+r"(x3), "+r"(x5), "+r"(x7));
  for (const float* end = b + steps * kPanel; b != end; b += kPanel) {
    const typename V::F bv = V::load(b);
    GE_UNROLL
    for (int g = 0; g < G; ++g) {
      const char* p = first[g];
      const char* row[kRowGroup] = {p, p + x1, p + 2 * x1, p + x3, p + 4 * x1, p + x5, p + 2 * x3, p + x7};
      GE_UNROLL
      for (int i = 0; i < kRowGroup; ++i)
        acc[0][g * kRowGroup + i][0] =
            V::fma(V::set1(*reinterpret_cast<const float*>(row[i])), bv, acc[0][g * kRowGroup + i][0]);
      first[g] += sizeof(float);
    }
  }
  return b;
}

// The same for several vectors: row i reads rows[i][k0 + k], vector j reads b at panel j / kSplit.
// kChains > 1 when MR * NV accumulators alone cannot hide the latency of fma.
template <class V, int MR, int NV, int KC>
GE_INLINE const float* accumulate_span(typename V::F (&acc)[KC][MR][NV], const AnyRows<MR>& any, int64_t k0,
                                       int64_t steps, const float* b, int64_t b_stride) {
  const float* const (&rows)[MR] = any.row;
  constexpr int kSplit = kPanel / V::kLanes;  // vectors of a panel
  int64_t k = k0;
  const int64_t end = k0 + steps;
  if constexpr (KC > 1) {
    for (; k + KC <= end; k += KC) {
      GE_UNROLL
      for (int u = 0; u < KC; ++u) {
        typename V::F bv[NV];
        GE_UNROLL
        for (int j = 0; j < NV; ++j)
          bv[j] = V::load(b + u * kPanel + (j / kSplit) * b_stride + (j % kSplit) * V::kLanes);
        GE_UNROLL
        for (int i = 0; i < MR; ++i) {
          typename V::F av = V::set1(rows[i][k + u]);
          GE_UNROLL
          for (int j = 0; j < NV; ++j) acc[u][i][j] = V::fma(av, bv[j], acc[u][i][j]);
        }
      }
      GE_UNROLL
      for (int u = 0; u < KC; ++u) {
        GE_UNROLL
        for (int j = 0; j < NV; j += kSplit)
          __builtin_prefetch(b + j / kSplit * b_stride + (u + kPrefetchFew) * kPanel);
      }
      b += KC * kPanel;
    }
  }
  for (; k < end; ++k) {
    typename V::F bv[NV];
    GE_UNROLL
    for (int j = 0; j < NV; ++j) bv[j] = V::load(b + (j / kSplit) * b_stride + (j % kSplit) * V::kLanes);
    GE_UNROLL
    for (int i = 0; i < MR; ++i) {
#if defined(__aarch64__)
      // No more than three rows ahead: with all loads first, gcc spills sums of a tile that fills the registers.
      if (i > 0 && i % 3 == 0) asm volatile("" ::: "memory");
#endif
      typename V::F av = V::set1(rows[i][k]);
      GE_UNROLL
      for (int j = 0; j < NV; ++j) acc[0][i][j] = V::fma(av, bv[j], acc[0][i][j]);
    }
    // The panels come from L2 or beyond; without this, Intel cores reach 70 % of their peak. Narrow tiles of
    // wide vectors have little B.
    if constexpr (NV / kSplit >= 3 || kSplit > 1) {
      constexpr int kPanels = NV < kSplit ? 1 : NV / kSplit;
      GE_UNROLL
      for (int j = 0; j < NV; j += kSplit) __builtin_prefetch(b + j / kSplit * b_stride + kPrefetch / kPanels);
    }
    b += kPanel;
  }
  return b;
}

// acc[0] becomes the sum of the chains, in a fixed tree.
template <class V, int MR, int NV, int KC>
GE_INLINE void join_chains(typename V::F (&acc)[KC][MR][NV]) {
  if constexpr (KC > 1) {
    GE_UNROLL
    for (int i = 0; i < MR; ++i) {
      GE_UNROLL
      for (int j = 0; j < NV; ++j) {
        if constexpr (KC == 2) acc[0][i][j] = V::add(acc[0][i][j], acc[1][i][j]);
        if constexpr (KC == 4)
          acc[0][i][j] = V::add(V::add(acc[0][i][j], acc[1][i][j]), V::add(acc[2][i][j], acc[3][i][j]));
      }
    }
  }
}

template <class V>
GE_INLINE typename V::F activate(typename V::F x, const Epilogue& e) {
  switch (e.act) {
    case Act::none: return x;
    case Act::relu: return V::max(V::zero(), x);
    case Act::clip: return V::min(V::set1(e.hi), V::max(V::set1(e.lo), x));
    case Act::leaky: return V::if_negative(x, V::mul(V::set1(e.alpha), x));
  }
  return x;
}

// The epilogue of the last, partial tile of a row of tiles: `rows` rows of n columns, sums at sum.
template <class V>
[[gnu::noinline]] static void finish_partial(const Block& t, const float* sum, int64_t ld_sum, int64_t i0,
                                             int64_t j0, int64_t rows, int64_t n) {
  const Epilogue& e = t.epilogue;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < n; j += V::kLanes) {
      const int64_t w = n - j < V::kLanes ? n - j : V::kLanes;
      float* c = t.c + (i0 + i) * t.ldc + j0 + j;
      typename V::F x = V::mul(V::load(sum + i * ld_sum + j), V::set1(e.scale));
      if (e.accumulate) x = V::add(x, V::load_n(c, w));
      if (e.bias) x = V::add(x, V::load_n(e.bias + j0 + j, w));
      if (e.residual) x = V::add(x, V::load_n(e.residual + (i0 + i) * e.ld_residual + j0 + j, w));
      V::store_n(c, activate<V>(x, e), w);
    }
  }
}

// Runs a statement for every i < MR and j < NV, unrolled.
#define GE_EACH(...)                             \
  GE_UNROLL                                      \
  for (int i = 0; i < MR; ++i) {                 \
    GE_UNROLL                                    \
    for (int j = 0; j < NV; ++j) { __VA_ARGS__; }\
  }

// Vector j of a row of a tile at p. With kPart the tile's last vector has only `rest` columns.
template <class V, int NV, bool kPart>
GE_INLINE typename V::F load_part(const float* p, int j, int64_t rest) {
  if constexpr (kPart)
    if (j == NV - 1) return V::load_n(p + j * V::kLanes, rest);
  return V::load(p + j * V::kLanes);
}
template <class V, int NV, bool kPart>
GE_INLINE void store_part(float* p, int j, int64_t rest, typename V::F x) {
  if constexpr (kPart)
    if (j == NV - 1) return V::store_n(p + j * V::kLanes, x, rest);
  V::store(p + j * V::kLanes, x);
}

// The epilogue of a tile in registers.
template <class V, int MR, int NV, bool kPart>
GE_INLINE void finish_tile(typename V::F (&acc)[MR][NV], const Block& t, int64_t i0, int64_t j0, int64_t rest) {
  using F = typename V::F;
  const Epilogue& e = t.epilogue;
  float* c = t.c + i0 * t.ldc + j0;
  if (e.scale != 1) {
    const F s = V::set1(e.scale);
    GE_EACH(acc[i][j] = V::mul(acc[i][j], s))
  }
  if (e.accumulate)
    GE_EACH(acc[i][j] = V::add(acc[i][j], load_part<V, NV, kPart>(c + i * t.ldc, j, rest)))
  if (e.bias) {
    F bias[NV];
    GE_UNROLL
    for (int j = 0; j < NV; ++j) bias[j] = load_part<V, NV, kPart>(e.bias + j0, j, rest);
    GE_EACH(acc[i][j] = V::add(acc[i][j], bias[j]))
  }
  if (e.residual) {
    const float* r = e.residual + i0 * e.ld_residual + j0;
    GE_EACH(acc[i][j] = V::add(acc[i][j], load_part<V, NV, kPart>(r + i * e.ld_residual, j, rest)))
  }
  if (e.act == Act::relu) {
    GE_EACH(acc[i][j] = V::max(V::zero(), acc[i][j]))
  } else if (e.act != Act::none) {
    const F lo = V::set1(e.lo), hi = V::set1(e.hi), alpha = V::set1(e.alpha);
    if (e.act == Act::clip)
      GE_EACH(acc[i][j] = V::min(hi, V::max(lo, acc[i][j])))
    else
      GE_EACH(acc[i][j] = V::if_negative(acc[i][j], V::mul(alpha, acc[i][j])))
  }
  GE_EACH(store_part<V, NV, kPart>(c + i * t.ldc, j, rest, acc[i][j]))
}

// The end of a tile whose sums are in acc; sum has room for them.
template <class V, int MR, int NV>
GE_INLINE void finish(typename V::F (&acc)[MR][NV], const Block& t, int64_t i0, int64_t j0, float* sum) {
  constexpr int L = V::kLanes;
  constexpr bool kPart = L == kPanel;  // the masks of AVX-512 cost nothing
  const int64_t n = t.n - j0, rest = n - (NV - 1) * L;
  if (rest >= (kPart ? 1 : L)) return finish_tile<V, MR, NV, kPart>(acc, t, i0, j0, rest < L ? rest : L);
  GE_EACH(V::store(sum + (i * NV + j) * L, acc[i][j]))
  finish_partial<V>(t, sum, NV * L, i0, j0, MR, n);
}

// The tile at rows [i0, i0 + MR) and columns [j0, j0 + min(NV * kLanes, n - j0)) of the block.
template <class V, class Rows, int NV, int KC>
[[gnu::noinline]] static void tile(const Block& t, int64_t i0, int64_t j0) {
  using F = typename V::F;
  constexpr int L = V::kLanes, MR = Rows::kRows;
  const Rows rows = Rows::at(t, i0);
  if constexpr (NV > 1) {  // lines of narrow tiles follow one another: the processor sees to that
    GE_UNROLL
    for (int i = 0; i < MR; ++i) __builtin_prefetch(t.c + (i0 + i) * t.ldc + j0, 1);
  }
  const float* b = t.b + j0 / kPanel * t.b_stride + j0 % kPanel;

  F acc[KC][MR][NV];
  GE_UNROLL
  for (int u = 0; u < KC; ++u) GE_EACH(acc[u][i][j] = V::zero())
  alignas(64) float sums[MR * NV * L];
  float* sum = sums;  // of the finished blocks of k
  asm("" : "+r"(sum));  // or gcc would keep them in registers that acc needs
  bool summed = false;
  const int64_t room0 = t.segments * t.segment_k > kLongK ? kBlockK : INT64_MAX;
  int64_t room = room0;
  for (int64_t s = 0; s < t.segments; ++s) {
    int64_t k = t.segment_offset ? t.segment_offset[s] : 0;
    for (int64_t left = t.segment_k; left > 0;) {
      const int64_t steps = left < room ? left : room;
      b = accumulate_span<V>(acc, rows, k, steps, b, t.b_stride);
      k += steps, left -= steps, room -= steps;
      if (room > 0) continue;
      room = room0;
      join_chains<V, MR, NV, KC>(acc);
      if (summed) GE_EACH(acc[0][i][j] = V::add(V::load(sum + (i * NV + j) * L), acc[0][i][j]))
      GE_EACH(V::store(sum + (i * NV + j) * L, acc[0][i][j]))
      GE_UNROLL
      for (int u = 0; u < KC; ++u) GE_EACH(acc[u][i][j] = V::zero())
      summed = true;
    }
  }
  join_chains<V, MR, NV, KC>(acc);
  if (summed) GE_EACH(acc[0][i][j] = V::add(V::load(sum + (i * NV + j) * L), acc[0][i][j]))

  finish<V, MR, NV>(acc[0], t, i0, j0, sum);
}

using TileFn = void (*)(const Block&, int64_t, int64_t);

// Chains of k that keep fma in flight. Not by the width: equal columns of a few rows' product must have equal sums,
// whichever tiles they fall into, or logits that are all alike and large come apart in a Softmax.
constexpr int chains(int mr) { return mr == 1 ? 4 : mr <= 3 ? 2 : 1; }

// fn[r] computes r rows, 1 <= r <= max_rows.
struct Tiles {
  int max_rows = 0;
  int64_t columns = 0;
  TileFn fn[13] = {};
  TileFn tall[4] = {};  // of tall[g]: g groups of even rows; null if there are none
};

template <class V, int NV, int MR>
static constexpr void fill_tiles(Tiles& t) {
  t.fn[MR] = &tile<V, AnyRows<MR>, NV, chains(MR)>;
  if constexpr (MR > 1) fill_tiles<V, NV, MR - 1>(t);
}

template <class V, int NV, int MR>
static constexpr Tiles make_tiles() {
  Tiles t;
  t.max_rows = MR;
  t.columns = NV * V::kLanes;
  fill_tiles<V, NV, MR>(t);
  return t;
}

// Cuts n units into pieces of at most `most` and of nearly equal size: runs fn[size] for each, `unit` rows to a unit.
// Gives the first row behind them.
static int64_t run_pieces(const Block& t, const TileFn* fn, int64_t n, int64_t most, int64_t unit, int64_t i0, int64_t j0) {
  const int64_t count = (n + most - 1) / most;
  if (count == 0) return i0;
  const int64_t size = n / count, larger = n % count;  // the first pieces have a unit more
  for (int64_t s = 0; s < count; ++s) {
    const int64_t units = size + (s < larger ? 1 : 0);
    fn[units](t, i0, j0);
    i0 += units * unit;
  }
  return i0;
}

// Columns [j0, j0 + tiles.columns) of rows [i0, i1), i0 a multiple of kRowGroup.
static void run_rows(const Block& t, const Tiles& tiles, int64_t i0, int64_t i1, int64_t j0) {
  if (tiles.tall[1] && t.lda != 0) i0 = run_pieces(t, tiles.tall, (i1 - i0) / kRowGroup, 3, kRowGroup, i0, j0);
  run_pieces(t, tiles.fn, i1 - i0, tiles.max_rows, 1, i0, j0);
}

// choose(columns left) gives the Tiles to use next.
template <class Choose>
static void run_block(const Block& t, Choose choose) {
  // Blocks of nearly equal height, in multiples of 24 rows: whole tiles of 6 and of 8.
  const int64_t blocks = (t.m + kBlockRows - 1) / kBlockRows;
  const int64_t rows = blocks ? ((t.m + blocks - 1) / blocks + 23) / 24 * 24 : 0;
  const Epilogue& e = t.epilogue;
  for (int64_t i0 = 0; i0 < t.m; i0 += rows) {
    const int64_t i1 = i0 + rows < t.m ? i0 + rows : t.m;
    for (int64_t j0 = 0; j0 < t.n;) {
      const Tiles& tiles = choose(t.n - j0);
      const int64_t width = tiles.columns < kPanel ? kPanel : tiles.columns;
      const int64_t columns = width < t.n - j0 ? width : t.n - j0;
      for (int64_t j = j0; j < j0 + columns; j += tiles.columns) run_rows(t, tiles, i0, i1, j);
      if (e.finish) e.finish(e.context, t.c + i0 * t.ldc + j0, t.ldc, i0, i1 - i0, j0, columns);
      j0 += columns;
    }
  }
}

