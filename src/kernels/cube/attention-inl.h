// Vector bodies of attention: masks and row maxima, exp and row sums, rescaling. Compiled once for each
// instruction set by conv_targets.h, which names V; no include guard on purpose.

#include "kernels/cube/exp-inl.h"

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

// x[j] *= factor[j].
static void multiply_row(float* x, const float* factor, int64_t n) {
  int64_t j = 0;
  for (; j + V::kLanes <= n; j += V::kLanes) V::store(x + j, V::mul(V::load(x + j), V::load(factor + j)));
  if (j < n) V::store_n(x + j, V::mul(V::load_n(x + j, n - j), V::load_n(factor + j, n - j)), n - j);
}

// Rows [row, row + rows) and columns [column, column + columns) of the scores, column a multiple of 16: scales, soft
// cap, mask, -inf beyond a row's length up to a multiple of 16, and the maxima into top.
static void prepare_scores(const ScoreBlock& b, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const V::F minus_inf = V::set1(-INFINITY);
  for (int64_t i = row; i < row + rows; ++i) {
    float* c = b.scores + i * b.ld + column;
    int64_t n = b.length[i] - column;
    n = n < 0 ? 0 : n > columns ? columns : n;
    if (b.key_scale) multiply_row(c, b.key_scale + column, n);
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
