// Products of a few rows with a B that is not packed: each element of B is used a few times only, so it is
// read once, where it lies. Included after microkernel-inl.h by each microkernel_<isa>.cc, in its namespace;
// not self-contained, no include guard on purpose.

inline constexpr int64_t kFewFloats = 4096;  // sums at a time, on the stack; also how far ahead B is prefetched
inline constexpr int64_t kFewColumns = 1024;

// sum[i][0, n) += a[i][k0, k0 + KU) x B's rows k0 to k0 + KU - 1, n columns of them at b. The products of KU
// rows are added up from zero first: a chain of additions as long as K loses a digit.
template <class V, int MR, int KU>
static void add_rows(const float* const (&a)[MR], int64_t k0, const float* b, int64_t b_stride, int64_t ahead,
                     int64_t n, float* sum, int64_t ld_sum) {
  using F = typename V::F;
  constexpr int L = V::kLanes;
  F av[MR][KU];
  GE_UNROLL
  for (int i = 0; i < MR; ++i) {
    GE_UNROLL
    for (int u = 0; u < KU; ++u) av[i][u] = V::set1(a[i][k0 + u]);
  }
  int64_t j = 0;
  for (; j + L <= n; j += L) {
    F bv[KU];
    GE_UNROLL
    for (int u = 0; u < KU; ++u) {
      bv[u] = V::load(b + u * b_stride + j);
      __builtin_prefetch(b + u * b_stride + j + ahead);
    }
    GE_UNROLL
    for (int i = 0; i < MR; ++i) {
      F x = V::mul(av[i][0], bv[0]);
      GE_UNROLL
      for (int u = 1; u < KU; ++u) x = V::fma(av[i][u], bv[u], x);
      V::store(sum + i * ld_sum + j, V::add(V::load(sum + i * ld_sum + j), x));
    }
  }
  if (j == n) return;
  F bv[KU];
  GE_UNROLL
  for (int u = 0; u < KU; ++u) bv[u] = V::load_n(b + u * b_stride + j, n - j);
  GE_UNROLL
  for (int i = 0; i < MR; ++i) {
    F x = V::mul(av[i][0], bv[0]);
    GE_UNROLL
    for (int u = 1; u < KU; ++u) x = V::fma(av[i][u], bv[u], x);
    V::store(sum + i * ld_sum + j, V::add(V::load(sum + i * ld_sum + j), x));
  }
}

// Rows [0, MR) of the sums, for B with contiguous rows.
template <class V, int MR, int KU>
GE_INLINE int64_t span_rows(const float* const (&a)[MR], int64_t k0, int64_t k1, const float* b, int64_t b_stride,
                            int64_t ahead, int64_t n, float* sum, int64_t ld_sum) {
  for (; k0 + KU <= k1; k0 += KU)
    add_rows<V, MR, KU>(a, k0, b + k0 * b_stride, b_stride, ahead, n, sum, ld_sum);
  return k0;
}

template <class V, int MR>
static void few_by_rows(const float* const* rows, int64_t k, const float* b, int64_t b_stride, int64_t n, float* sum,
                        int64_t ld_sum) {
  // MR * KU values of A and KU (or, for one row, none) of B stay in registers.
  constexpr int KU = MR == 1 ? 8 : 4;
  const float* a[MR];
  for (int i = 0; i < MR; ++i) a[i] = rows[i];
  const int64_t far = kFewFloats / n < KU ? KU : kFewFloats / n;
  for (int i = 0; i < MR; ++i)
    for (int64_t j = 0; j < n; j += V::kLanes) V::store(sum + i * ld_sum + j, V::zero());
  int64_t k0 = span_rows<V, MR, KU>(a, 0, k, b, b_stride, far * b_stride, n, sum, ld_sum);
  span_rows<V, MR, 1>(a, k0, k, b, b_stride, 0, n, sum, ld_sum);
}

// out[u] = the sum of x[u]'s lanes, for four vectors.
template <class V>
GE_INLINE void sum_four(const typename V::F (&x)[4], float* out) {
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
  V128::store(out, V128::add(__builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7)));
}

// Rows [0, MR) of the sums, for B with contiguous columns: four at a time.
template <class V, int MR>
static void few_by_columns(const float* const* rows, int64_t k, const float* b, int64_t b_stride, int64_t n, float* sum,
                           int64_t ld_sum) {
  using F = typename V::F;
  constexpr int L = V::kLanes;
  const float* a[MR];
  for (int i = 0; i < MR; ++i) a[i] = rows[i];
  const int64_t columns_ahead = kFewFloats / (4 * (k + 1)) * 4 + 4;  // whole fours, one or more
  const int64_t ahead = columns_ahead * b_stride;
  for (int64_t j = 0; j < n; j += 4) {
    const float* column[4];
    GE_UNROLL
    for (int u = 0; u < 4; ++u) column[u] = b + (j + u < n ? j + u : n - 1) * b_stride;
    F x[MR][4];
    GE_UNROLL
    for (int i = 0; i < MR; ++i) {
      GE_UNROLL
      for (int u = 0; u < 4; ++u) x[i][u] = V::zero();
    }
    int64_t p = 0;
    for (; p + L <= k; p += L) {
      F bv[4];
      GE_UNROLL
      for (int u = 0; u < 4; ++u) {
        bv[u] = V::load(column[u] + p);
        __builtin_prefetch(column[u] + p + ahead);
      }
      GE_UNROLL
      for (int i = 0; i < MR; ++i) {
        const F av = V::load(a[i] + p);
        GE_UNROLL
        for (int u = 0; u < 4; ++u) x[i][u] = V::fma(av, bv[u], x[i][u]);
      }
    }
    if (p < k) {
      F bv[4];
      GE_UNROLL
      for (int u = 0; u < 4; ++u) bv[u] = V::load_n(column[u] + p, k - p);
      GE_UNROLL
      for (int i = 0; i < MR; ++i) {
        const F av = V::load_n(a[i] + p, k - p);
        GE_UNROLL
        for (int u = 0; u < 4; ++u) x[i][u] = V::fma(av, bv[u], x[i][u]);
      }
    }
    GE_UNROLL
    for (int i = 0; i < MR; ++i) sum_four<V>(x[i], sum + i * ld_sum + j);
  }
}

template <class V, int MR>
static void few(const Block& t, const float* const* rows, int64_t m, int64_t j0, int64_t n, float* sum, int64_t ld_sum) {
  if (m < MR) {
    if constexpr (MR > 1) few<V, MR - 1>(t, rows, m, j0, n, sum, ld_sum);
    return;
  }
  if (t.b_form == BForm::rows) return few_by_rows<V, MR>(rows, t.segment_k, t.b + j0, t.b_stride, n, sum, ld_sum);
  few_by_columns<V, MR>(rows, t.segment_k, t.b + j0 * t.b_stride, t.b_stride, n, sum, ld_sum);
}

// The block with a B that is not packed, m <= kFewRows.
template <class V>
static void run_few(const Block& t) {
  constexpr int kMost = V::kRegisters == 32 ? 4 : 2;
  if (t.m <= 0) return;
  const float* rows[kFewRows];
  for (int64_t i = 0; i < t.m; ++i) rows[i] = t.a + (t.row_offset ? t.row_offset[i] : i * t.lda);
  alignas(64) float sum[kFewFloats];
  const int64_t fits = kFewFloats / t.m / kPanel * kPanel, width = fits < kFewColumns ? fits : kFewColumns;
  const Epilogue& e = t.epilogue;
  for (int64_t j0 = 0; j0 < t.n; j0 += width) {
    const int64_t n = t.n - j0 < width ? t.n - j0 : width;
    for (int64_t i = 0; i < t.m; i += kMost) {
      const int64_t m = t.m - i < kMost ? t.m - i : kMost;
      few<V, kMost>(t, rows + i, m, j0, n, sum + i * width, width);
    }
    finish_partial<V>(t, sum, width, 0, j0, t.m, n);
    if (!e.finish) continue;
    for (int64_t j = j0; j < j0 + n; j += kSlice)
      e.finish(e.context, t.c + j, t.ldc, 0, t.m, j, j0 + n - j < kSlice ? j0 + n - j : kSlice);
  }
}
