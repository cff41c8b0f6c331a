// The tiles of bf16 products as templates over a policy P: P::V the vector of f32 (simd.h), P::A a pair of a row
// in all lanes, P::B the pairs of a vector's columns, P::dot their product added to sums, P::narrow sums stored as
// bf16. Included after
// microkernel-inl.h in the same namespace; no include guard on purpose.

#undef GE_EACH
#define GE_EACH(...)                             \
  GE_UNROLL                                      \
  for (int i = 0; i < MR; ++i) {                 \
    GE_UNROLL                                    \
    for (int j = 0; j < NV; ++j) { __VA_ARGS__; }\
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

// As load_part and store_part, of bf16.
template <class V, int NV, bool kPart>
GE_INLINE typename V::F widen_part(const uint16_t* p, int j, int64_t rest) {
  if constexpr (kPart)
    if (j == NV - 1) return V::widen_n(p + j * V::kLanes, rest);
  return V::widen(p + j * V::kLanes);
}
template <class P, int NV, bool kPart>
GE_INLINE void narrow_part(uint16_t* p, int j, int64_t rest, typename P::V::F x) {
  if constexpr (kPart)
    if (j == NV - 1) return P::narrow_n(p + j * P::V::kLanes, x, rest);
  P::narrow(p + j * P::V::kLanes, x);
}

// As finish_tile, where C or the residual is bf16.
template <class P, int MR, int NV, bool kPart>
GE_INLINE void finish_pairs(typename P::V::F (&acc)[MR][NV], const Bf16Block& t, int64_t i0, int64_t j0, int64_t rest) {
  using V = typename P::V;
  using F = typename V::F;
  const Epilogue& e = t.epilogue;
  if (e.scale != 1) GE_EACH(acc[i][j] = V::mul(acc[i][j], V::set1(e.scale)))
  if (e.bias) {
    F bias[NV];
    GE_UNROLL
    for (int j = 0; j < NV; ++j) bias[j] = load_part<V, NV, kPart>(e.bias + j0, j, rest);
    GE_EACH(acc[i][j] = V::add(acc[i][j], bias[j]))
  }
  if (t.residual16) {
    const uint16_t* r = t.residual16 + i0 * e.ld_residual + j0;
    GE_EACH(acc[i][j] = V::add(acc[i][j], widen_part<V, NV, kPart>(r + i * e.ld_residual, j, rest)))
  } else if (e.residual) {
    const float* r = e.residual + i0 * e.ld_residual + j0;
    GE_EACH(acc[i][j] = V::add(acc[i][j], load_part<V, NV, kPart>(r + i * e.ld_residual, j, rest)))
  }
  if (e.act == Act::relu) {
    GE_EACH(acc[i][j] = V::max(V::zero(), acc[i][j]))
  } else if (e.act == Act::clip) {
    const F lo = V::set1(e.lo), hi = V::set1(e.hi);
    GE_EACH(acc[i][j] = V::min(hi, V::max(lo, acc[i][j])))
  } else if (e.act == Act::leaky) {
    const F alpha = V::set1(e.alpha);
    GE_EACH(acc[i][j] = V::if_negative(acc[i][j], V::mul(alpha, acc[i][j])))
  }
  if (t.c16) {
    uint16_t* c = t.c16 + i0 * t.ldc + j0;
    GE_EACH(narrow_part<P, NV, kPart>(c + i * t.ldc, j, rest, acc[i][j]))
  } else {
    float* c = t.c + i0 * t.ldc + j0;
    GE_EACH(store_part<V, NV, kPart>(c + i * t.ldc, j, rest, acc[i][j]))
  }
}

// As finish_partial, where C or the residual is bf16.
template <class P>
[[gnu::noinline]] static void finish_partial_pairs(const Bf16Block& t, const float* sum, int64_t ld_sum, int64_t i0, int64_t j0,
                                                   int64_t rows, int64_t n) {
  using V = typename P::V;
  const Epilogue& e = t.epilogue;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < n; j += V::kLanes) {
      const int64_t w = n - j < V::kLanes ? n - j : V::kLanes, residual = (i0 + i) * e.ld_residual + j0 + j;
      typename V::F x = V::mul(V::load(sum + i * ld_sum + j), V::set1(e.scale));
      if (e.bias) x = V::add(x, V::load_n(e.bias + j0 + j, w));
      if (t.residual16) x = V::add(x, V::widen_n(t.residual16 + residual, w));
      else if (e.residual) x = V::add(x, V::load_n(e.residual + residual, w));
      x = activate<V>(x, e);
      if (t.c16) P::narrow_n(t.c16 + (i0 + i) * t.ldc + j0 + j, x, w);
      else V::store_n(t.c + (i0 + i) * t.ldc + j0 + j, x, w);
    }
  }
}

// As finish, where C or the residual is bf16.
template <class P, int MR, int NV>
GE_INLINE void finish_halves(typename P::V::F (&acc)[MR][NV], const Bf16Block& t, int64_t i0, int64_t j0, float* sum) {
  using V = typename P::V;
  constexpr int L = V::kLanes;
  constexpr bool kPart = L == kPanel;
  const int64_t n = t.n - j0, rest = n - (NV - 1) * L;
  if (rest >= (kPart ? 1 : L)) return finish_pairs<P, MR, NV, kPart>(acc, t, i0, j0, rest < L ? rest : L);
  GE_EACH(V::store(sum + (i * NV + j) * L, acc[i][j]))
  finish_partial_pairs<P>(t, sum, NV * L, i0, j0, MR, n);
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
  for (int i = 0; i < MR; ++i) rows[i] = t.a16 + row_start(t, i0 + i);
  GE_UNROLL
  for (int i = 0; i < MR; ++i)
    __builtin_prefetch(t.c16 ? static_cast<const void*>(t.c16 + (i0 + i) * t.ldc + j0) : t.c + (i0 + i) * t.ldc + j0, 1);
  const uint16_t* b = t.b16 + j0 / kPanel * t.b_stride + j0 % kPanel * 2;
  typename V::F acc[KC][MR][NV];
  GE_UNROLL
  for (int u = 0; u < KC; ++u) GE_EACH(acc[u][i][j] = V::zero())
  for (int64_t s = 0; s < t.segments; ++s)
    b = accumulate_pairs<P, MR, NV, KC>(acc, rows, t.segment_offset ? t.segment_offset[s] : 0, t.segment_k / 2, b, t.b_stride);
  join_chains<V, MR, NV, KC>(acc);
  alignas(64) float sum[MR * NV * L];
  if (t.c16 || t.residual16) finish_halves<P, MR, NV>(acc[0], t, i0, j0, sum);
  else finish<V, MR, NV>(acc[0], t, i0, j0, sum);
}

// Chains of k that keep about eight to sixteen products in flight.
constexpr int pair_chains(int mr, int nv) { return mr * nv >= 8 ? 1 : mr * nv >= 4 ? 2 : 4; }

template <class P, int NV, int MR>
static constexpr void fill_pair_tiles(Tiles& t) {
  t.fn[MR] = &pair_tile<P, MR, NV, pair_chains(MR, NV)>;
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
  GE_INLINE void narrow(uint16_t* p, typename V::F x) { V::narrow(p, x); }
  GE_INLINE void narrow_n(uint16_t* p, typename V::F x, int64_t n) { V::narrow_n(p, x, n); }
  GE_INLINE typename V::F dot(typename V::F sum, const A& a, const B& b) { return V::fma(a.even, b.even, V::fma(a.odd, b.odd, sum)); }
};

#undef GE_EACH
