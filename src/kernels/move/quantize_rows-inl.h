// Rows to bytes and back. Compiled once for each instruction set by conv_targets.h, which names V; no include guard on
// purpose.

// The largest |x[i]|; NaN if one is NaN.
static float largest(const float* x, int64_t n) {
  V::F most = V::zero();
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) {
    const V::F v = V::load(x + i);
    most = V::max_nan(most, V::max_nan(v, V::sub(V::zero(), v)));
  }
  if (i < n) {
    const V::F v = V::load_n(x + i, n - i);
    most = V::max_nan(most, V::max_nan(v, V::sub(V::zero(), v)));
  }
  float lanes[V::kLanes], all = 0;
  V::store(lanes, most);
  for (float v : lanes) all = v > all || v != v ? v : all;
  return all;
}

// x / scale, to nearest even, for a scale that is finite and not 0.
static void to_bytes(const float* x, int64_t n, float scale, int8_t* to) {
  const V::F s = V::set1(scale), low = V::set1(-127.f), high = V::set1(127.f);
  const V::F round = V::set1(12582912.f);  // 1.5 * 2^23: the sum's low bits are the rounded number
  constexpr int kBytes = 64;
  float sums[kBytes];
  for (int64_t i = 0; i < n; i += kBytes) {
    const int64_t count = n - i < kBytes ? n - i : kBytes;
    for (int64_t j = 0; j < count; j += V::kLanes) {
      const V::F v = count - j < V::kLanes ? V::load_n(x + i + j, count - j) : V::load(x + i + j);
      V::store(sums + j, V::add(V::max(V::min(V::div(v, s), high), low), round));
    }
    for (int64_t j = 0; j < count; ++j) {
      uint32_t bits;
      std::memcpy(&bits, sums + j, sizeof bits);
      to[i + j] = static_cast<int8_t>(bits);
    }
  }
}

static void from_bytes(const int8_t* x, int64_t n, float scale, float* to) {
  const V::F s = V::set1(scale);
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) V::store(to + i, V::mul(V::widen(x + i), s));
  if (i < n) V::store_n(to + i, V::mul(V::widen_n(x + i, n - i), s), n - i);
}
