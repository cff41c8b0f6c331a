// Products of a few rows with a B that is not packed: each element of B is used a few times only, so it is
// read once, where it lies. Included after microkernel-inl.h by each microkernel_<isa>.cc, in its namespace;
// not self-contained, no include guard on purpose.

// B's elements: f32, or narrower ones that are widened as they are read.
template <class V>
GE_INLINE typename V::F load_b(const float* p) { return V::load(p); }
template <class V, class T>
GE_INLINE typename V::F load_b(const T* p) { return V::widen(p); }
template <class V>
GE_INLINE typename V::F load_b_n(const float* p, int64_t n) { return V::load_n(p, n); }
template <class V, class T>
GE_INLINE typename V::F load_b_n(const T* p, int64_t n) { return V::widen_n(p, n); }

inline constexpr int64_t kFewFloats = 4096;  // sums at a time, on the stack; also how far ahead B is prefetched
inline constexpr int64_t kFewColumns = 1024;
inline constexpr int64_t kFewK = 1024;  // values of k between passes over several rows with contiguous columns of B

// sum[i][0, n) += a[i][k0, k0 + KU) x B's rows k0 to k0 + KU - 1, n columns of them at b. The products of KU
// rows are added up from zero first: a chain of additions as long as K loses a digit.
template <class V, class T, int MR, int KU>
static void add_rows(const float* const* a, int64_t k0, const T* b, int64_t b_stride, int64_t ahead,
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
      bv[u] = load_b<V>(b + u * b_stride + j);
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
  for (int u = 0; u < KU; ++u) bv[u] = load_b_n<V>(b + u * b_stride + j, n - j);
  GE_UNROLL
  for (int i = 0; i < MR; ++i) {
    F x = V::mul(av[i][0], bv[0]);
    GE_UNROLL
    for (int u = 1; u < KU; ++u) x = V::fma(av[i][u], bv[u], x);
    V::store(sum + i * ld_sum + j, V::add(V::load(sum + i * ld_sum + j), x));
  }
}

// The lanes of x added up to four: those of each quarter, half or the like.
GE_INLINE V128::F to_four(V128::F x) { return x; }
template <class F>
GE_INLINE V128::F to_four(F x) {
  if constexpr (sizeof(F) == 64) return to_four(__builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7) + __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15));
  else return V128::add(__builtin_shufflevector(x, x, 0, 1, 2, 3), __builtin_shufflevector(x, x, 4, 5, 6, 7));
}

// out[u] += the sum of x[u]'s lanes, for four vectors.
template <class V>
GE_INLINE void sum_four(const typename V::F (&x)[4], float* out) {
  V128::F q[4];
  GE_UNROLL
  for (int u = 0; u < 4; ++u) q[u] = to_four(x[u]);
  const V128::F a = V128::add(__builtin_shufflevector(q[0], q[1], 0, 4, 1, 5), __builtin_shufflevector(q[0], q[1], 2, 6, 3, 7));
  const V128::F b = V128::add(__builtin_shufflevector(q[2], q[3], 0, 4, 1, 5), __builtin_shufflevector(q[2], q[3], 2, 6, 3, 7));
  const V128::F x4 = V128::add(__builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7));
  V128::store(out, V128::add(V128::load(out), x4));
}

// sum[i][j] += a[i][0, k) x column j of B, for n columns with contiguous values of k, four at a time; n is
// rounded up in sum.
template <class V, class T, int MR>
static void dot_columns(const float* const* a, int64_t k, const T* b, int64_t b_stride, int64_t ahead, int64_t n,
                        float* sum, int64_t ld_sum) {
  using F = typename V::F;
  constexpr int L = V::kLanes;
  for (int64_t j = 0; j < n; j += 4) {
    const T* column[4];
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
        bv[u] = load_b<V>(column[u] + p);
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
      for (int u = 0; u < 4; ++u) bv[u] = load_b_n<V>(column[u] + p, k - p);
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

// rows of A, k or its first index, B, its stride, floats to prefetch ahead, columns, sums
template <class T>
using FewFn = void (*)(const float* const*, int64_t, const T*, int64_t, int64_t, int64_t, float*, int64_t);

// By the rows of A that share a pass over registers of B. The values of A that a call of add[] needs (KU of
// each row) and one step's values of B stay in registers.
template <class V, class T>
struct FewRows {
  static constexpr int kMost = V::kRegisters == 32 ? 4 : 2;
  static constexpr int kThird = kMost < 4 ? 2 : 3;  // what stands in the table's places 3 and 4
  static constexpr FewFn<T> kAdd[5] = {nullptr, add_rows<V, T, 1, 4>, add_rows<V, T, 2, 4>, add_rows<V, T, kThird, 4>, add_rows<V, T, kMost, 4>};
  static constexpr FewFn<T> kAddOne[5] = {nullptr, add_rows<V, T, 1, 1>, add_rows<V, T, 2, 1>, add_rows<V, T, kThird, 1>, add_rows<V, T, kMost, 1>};
  static constexpr FewFn<T> kDot[5] = {nullptr, dot_columns<V, T, 1>, dot_columns<V, T, 2>, dot_columns<V, T, kThird>, dot_columns<V, T, kMost>};

  const float* row[kFewRows];
  int64_t m, groups;
  float* sum;
  int64_t ld_sum;

  // The groups of rows are of nearly equal size.
  int64_t first(int64_t group) const { return m * group / groups; }

  void by_rows(int64_t k, const T* b, int64_t b_stride, int64_t n) const {
    clear(n);
    int64_t k0 = 0;
    if (m == 1) {
      const int64_t ahead = ahead_rows(n, 8) * b_stride;
      for (; k0 + 8 <= k; k0 += 8) add_rows<V, T, 1, 8>(row, k0, b + k0 * b_stride, b_stride, ahead, n, sum, ld_sum);
    }
    const int64_t ahead = ahead_rows(n, 4) * b_stride;
    for (; k0 + 4 <= k; k0 += 4) add(kAdd, k0, b + k0 * b_stride, b_stride, ahead, n);
    for (; k0 < k; ++k0) add(kAddOne, k0, b + k0 * b_stride, b_stride, 0, n);
  }

  void by_columns(int64_t k, const T* b, int64_t b_stride, int64_t n) const {
    clear(n);
    // One row stays in L1 at any length, and B is then read straight on.
    const int64_t block = m == 1 ? k : kFewK;
    for (int64_t k0 = 0; k0 < k; k0 += block) {
      const int64_t steps = k - k0 < block ? k - k0 : block;
      const int64_t near = kFewFloats / (4 * (steps + 1)) * 4 + 4;  // columns: whole fours, one or more
      // Several groups of rows: each takes a few columns while they are in L1.
      const int64_t together = groups == 1 ? n : near;
      const float* a[kFewRows];
      for (int64_t i = 0; i < m; ++i) a[i] = row[i] + k0;
      for (int64_t j = 0; j < n; j += together)
        for (int64_t g = 0; g < groups; ++g) {
          const int64_t i = first(g);
          kDot[first(g + 1) - i](a + i, steps, b + j * b_stride + k0, b_stride, near * b_stride,
                                 together < n - j ? together : n - j, sum + i * ld_sum + j, ld_sum);
        }
    }
  }

 private:
  void clear(int64_t n) const {
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; j += V::kLanes) V::store(sum + i * ld_sum + j, V::zero());
  }

  static int64_t ahead_rows(int64_t n, int64_t at_once) { return kFewFloats / n < at_once ? at_once : kFewFloats / n; }

  void add(const FewFn<T> (&table)[5], int64_t k0, const T* b, int64_t b_stride, int64_t ahead, int64_t n) const {
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t i = first(g);
      table[first(g + 1) - i](row + i, k0, b, b_stride, ahead, n, sum + i * ld_sum, ld_sum);
    }
  }
};

// The block with a B that is not packed, m <= kFewRows.
template <class V, class T>
static void run_few(const Block& t, const T* b) {
  if (t.m <= 0) return;
  alignas(64) float sum[kFewFloats];
  const int64_t fits = kFewFloats / t.m / kPanel * kPanel, width = fits < kFewColumns ? fits : kFewColumns;
  FewRows<V, T> few;
  few.m = t.m, few.groups = (t.m + few.kMost - 1) / few.kMost;
  few.sum = sum, few.ld_sum = width;
  for (int64_t i = 0; i < t.m; ++i) few.row[i] = t.a + row_start(t, i);
  const Epilogue& e = t.epilogue;
  for (int64_t j0 = 0; j0 < t.n; j0 += width) {
    const int64_t n = t.n - j0 < width ? t.n - j0 : width;
    if (t.b_form == BForm::rows) few.by_rows(t.segment_k, b + j0, t.b_stride, n);
    else few.by_columns(t.segment_k, b + j0 * t.b_stride, t.b_stride, n);
    finish_partial<V>(t, sum, width, 0, j0, t.m, n);
    if (!e.finish) continue;
    for (int64_t j = j0; j < j0 + n; j += kSlice)
      e.finish(e.context, t.c + j, t.ldc, 0, t.m, j, j0 + n - j < kSlice ? j0 + n - j : kSlice);
  }
}

template <class V>
static void run_few(const Block& t) {
  if (t.b_narrow && t.narrow == Narrow::i8) return run_few<V>(t, static_cast<const int8_t*>(t.b_narrow));
  if (t.b_narrow && t.narrow == Narrow::f16) return run_few<V>(t, static_cast<const Float16*>(t.b_narrow));
  if (t.b_narrow) return run_few<V>(t, static_cast<const uint16_t*>(t.b_narrow));
  run_few<V>(t, t.b);
}
