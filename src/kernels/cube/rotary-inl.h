// One row of vector.rotary. Compiled once for each instruction set by conv_targets.h; no include guard on purpose.

// lo' = lo * cos_lo - hi * sin_lo, hi' = hi * cos_hi + lo * sin_hi, for n values each; y may be x.
static void rotate_row(const float* lo, const float* hi, const float* const (&cos)[2], const float* const (&sin)[2], float* out_lo,
                       float* out_hi, int64_t n) {
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) {
    const V::F a = V::load(lo + i), b = V::load(hi + i);
    const V::F x = V::sub(V::mul(a, V::load(cos[0] + i)), V::mul(b, V::load(sin[0] + i)));
    const V::F y = V::add(V::mul(b, V::load(cos[1] + i)), V::mul(a, V::load(sin[1] + i)));
    V::store(out_lo + i, x);
    V::store(out_hi + i, y);
  }
  if (i == n) return;
  const int64_t left = n - i;
  const V::F a = V::load_n(lo + i, left), b = V::load_n(hi + i, left);
  const V::F x = V::sub(V::mul(a, V::load_n(cos[0] + i, left)), V::mul(b, V::load_n(sin[0] + i, left)));
  const V::F y = V::add(V::mul(b, V::load_n(cos[1] + i, left)), V::mul(a, V::load_n(sin[1] + i, left)));
  V::store_n(out_lo + i, x, left);
  V::store_n(out_hi + i, y, left);
}
