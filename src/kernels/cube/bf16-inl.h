// The tiles of bf16 products as templates over a policy P: P::V the vector of f32 (simd.h), P::A a pair of a row
// in all lanes, P::B the pairs of a vector's columns, P::dot their product added to sums. Included after
// microkernel-inl.h in the same namespace; no include guard on purpose.

#undef GE_EACH
#define GE_EACH(BODY)                            \
  GE_UNROLL                                      \
  for (int i = 0; i < MR; ++i) {                 \
    GE_UNROLL                                    \
    for (int j = 0; j < NV; ++j) { BODY; }       \
  }

inline constexpr int64_t kPairPrefetch = 6144;  // bf16s of B ahead

// Adds `pairs` pairs of k to acc: row i reads rows[i][k0 + ...]. kChains as in accumulate_span.
template <class P, int MR, int NV, int KC>
GE_INLINE const uint16_t* accumulate_pairs(typename P::V::F (&acc)[KC][MR][NV], const uint16_t* const (&rows)[MR],
                                           int64_t k0, int64_t pairs, const uint16_t* b, int64_t b_stride) {
  constexpr int L = P::V::kLanes, kSplit = kPanel / L;
  int64_t k = k0;
  const int64_t end = k0 + 2 * pairs;
  if constexpr (KC > 1) {
    for (; k + 2 * KC <= end; k += 2 * KC) {
      GE_UNROLL
      for (int u = 0; u < KC; ++u) {
        typename P::B bv[NV];
        GE_UNROLL
        for (int j = 0; j < NV; ++j) bv[j] = P::load(b + u * 2 * kPanel + (j / kSplit) * b_stride + (j % kSplit) * 2 * L);
        GE_UNROLL
        for (int i = 0; i < MR; ++i) {
          const typename P::A av = P::set1(rows[i] + k + 2 * u);
          GE_UNROLL
          for (int j = 0; j < NV; ++j) acc[u][i][j] = P::dot(acc[u][i][j], av, bv[j]);
        }
      }
      GE_UNROLL
      for (int u = 0; u < KC; ++u) {
        GE_UNROLL
        for (int j = 0; j < NV; j += kSplit)
          __builtin_prefetch(b + j / kSplit * b_stride + (u + kPrefetchFew) * 2 * kPanel);
      }
      b += KC * 2 * kPanel;
    }
  }
  for (; k < end; k += 2) {
    typename P::B bv[NV];
    GE_UNROLL
    for (int j = 0; j < NV; ++j) bv[j] = P::load(b + (j / kSplit) * b_stride + (j % kSplit) * 2 * L);
    GE_UNROLL
    for (int i = 0; i < MR; ++i) {
      const typename P::A av = P::set1(rows[i] + k);
      GE_UNROLL
      for (int j = 0; j < NV; ++j) acc[0][i][j] = P::dot(acc[0][i][j], av, bv[j]);
    }
    if constexpr (NV / kSplit >= 3) {
      GE_UNROLL
      for (int j = 0; j < NV; j += kSplit) __builtin_prefetch(b + j / kSplit * b_stride + kPairPrefetch / (NV / kSplit));
    }
    b += 2 * kPanel;
  }
  return b;
}

// The tile at rows [i0, i0 + MR) and columns [j0, j0 + min(NV * kLanes, n - j0)) of the block. One chain over the
// whole K: what it loses is far below what rounding the operands lost.
template <class P, int MR, int NV, int KC>
[[gnu::noinline]] static void pair_tile(const Block& block, int64_t i0, int64_t j0) {
  using V = typename P::V;
  constexpr int L = V::kLanes;
  const auto& t = static_cast<const Bf16Block&>(block);
  const uint16_t* rows[MR];
  GE_UNROLL
  for (int i = 0; i < MR; ++i) rows[i] = t.a16 + (t.row_offset ? t.row_offset[i0 + i] : (i0 + i) * t.lda);
  GE_UNROLL
  for (int i = 0; i < MR; ++i) __builtin_prefetch(t.c + (i0 + i) * t.ldc + j0, 1);
  const uint16_t* b = t.b16 + j0 / kPanel * t.b_stride + j0 % kPanel * 2;
  typename V::F acc[KC][MR][NV];
  GE_UNROLL
  for (int u = 0; u < KC; ++u) GE_EACH(acc[u][i][j] = V::zero())
  for (int64_t s = 0; s < t.segments; ++s)
    b = accumulate_pairs<P, MR, NV, KC>(acc, rows, t.segment_offset ? t.segment_offset[s] : 0, t.segment_k / 2, b, t.b_stride);
  join_chains<V, MR, NV, KC>(acc);
  const int64_t n = t.n - j0;
  if (n >= NV * L) {
    finish_tile<V, MR, NV>(acc[0], t, i0, j0);
  } else {
    alignas(64) float sum[MR * NV * L];
    GE_EACH(V::store(sum + (i * NV + j) * L, acc[0][i][j]))
    finish_partial<V>(t, sum, NV * L, i0, j0, MR, n);
  }
}

template <class P, int NV, int MR>
static constexpr void fill_pair_tiles(Tiles& t) {
  t.fn[MR] = &pair_tile<P, MR, NV, chains(MR, NV)>;
  if constexpr (MR > 1) fill_pair_tiles<P, NV, MR - 1>(t);
}

template <class P, int NV, int MR>
static constexpr Tiles make_pair_tiles() {
  Tiles t;
  t.max_rows = MR;
  t.columns = NV * P::V::kLanes;
  fill_pair_tiles<P, NV, MR>(t);
  return t;
}

// Pairs widened to f32: the products are exact there.
template <class Vector>
struct Widened {
  using V = Vector;
  struct A {
    typename V::F even, odd;
  };
  using B = A;
  GE_INLINE A set1(const uint16_t* p) {
    uint32_t bits;
    float even, odd;
    std::memcpy(&bits, p, 4);
    const uint32_t low = bits << 16, high = bits & 0xffff0000u;
    std::memcpy(&even, &low, 4), std::memcpy(&odd, &high, 4);
    return {V::set1(even), V::set1(odd)};
  }
  GE_INLINE B load(const uint16_t* p) {
    typedef uint32_t U __attribute__((vector_size(sizeof(typename V::F))));
    U u;
    std::memcpy(&u, p, sizeof u);
    return {(typename V::F)(u << 16), (typename V::F)(u & 0xffff0000u)};
  }
  GE_INLINE typename V::F dot(typename V::F sum, const A& a, const B& b) { return V::fma(a.even, b.even, V::fma(a.odd, b.odd, sum)); }
};

#undef GE_EACH
