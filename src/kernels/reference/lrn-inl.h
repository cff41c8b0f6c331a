// Loops of lrn over what lies together. Compiled once for each instruction set by conv_targets.h, which names V; no
// include guard on purpose.

// y = x / (bias + alpha * sum)^0.75 by two square roots.
GE_INLINE V::F lrn_scaled(V::F x, V::F sum, float alpha, float bias) {
  const V::F root = V::sqrt(V::fma(V::set1(alpha), sum, V::set1(bias)));
  return V::div(x, V::mul(root, V::sqrt(root)));
}

static void lrn_divide(const float* x, const float* sum, float* y, int64_t n, float alpha, float bias) {
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) V::store(y + i, lrn_scaled(V::load(x + i), V::load(sum + i), alpha, bias));
  if (i < n) V::store_n(y + i, lrn_scaled(V::load_n(x + i, n - i), V::load_n(sum + i, n - i), alpha, bias), n - i);
}

// sum[i] += v[i]^2.
static void lrn_add_squares(const float* v, float* sum, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sum[i] += v[i] * v[i];
}
