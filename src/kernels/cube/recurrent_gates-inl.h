// The cells' elementwise part, on the vectors and functions of kernels/vector/simd.h. Included once for each
// instruction set by recurrent_gates.cc; no include guard on purpose.

GE_SIMD V bounded(V x, float most) { return hw_min(set(most), hw_max(set(-most), x)); }

static __attribute__((noinline)) V activate_any(const ActivationSpec& a, V x) {
  const V alpha = set(a.alpha), beta = set(a.beta), zero = set(0.0f);
  switch (a.kind) {
    case Activation::none: return x;
    case Activation::relu: return hw_max(zero, x);
    case Activation::tanh: return tanh(x);
    case Activation::sigmoid: return sigmoid(x);
    case Activation::affine: return fma(alpha, x, beta);
    case Activation::leaky_relu: return sel(lt(x, zero), alpha * x, x);
    case Activation::thresholded_relu: return sel(lt(x, alpha), zero, x);
    case Activation::scaled_tanh: return alpha * tanh(beta * x);
    case Activation::hard_sigmoid: return hw_min(set(1.0f), hw_max(zero, fma(alpha, x, beta)));
    case Activation::elu: return sel(lt(x, zero), alpha * expm1(x), x);
    case Activation::softsign: return x / (vabs(x) + 1.0f);
    case Activation::softplus: return softplus(x);
  }
  return x;
}

// Activation i of the cell; sums of the gates are clipped, the state of an LSTM is not.
template <bool kUsual>
GE_SIMD V activate(const CellPlan& p, size_t i, bool is_gate, V x) {
  if constexpr (kUsual) return is_gate ? sigmoid(x) : tanh(x);
  return activate_any(p.act[i], i == 2 ? x : bounded(x, p.clip));
}

static float quantize_state(const float* h, int64_t units, uint8_t* bytes) {
  V most = set(0.0f), strange = set(0.0f);
  for (int64_t u = 0; u < units; u += kLanes) {
    const V x = load(h + u);
    most = hw_max(most, vabs(x));
    strange = fma(x, set(0.0f), strange);
  }
  float lanes[kLanes], not_finite[kLanes], top = 0, sum = 0;
  store(lanes, most), store(not_finite, strange);
  for (int i = 0; i < kLanes; ++i) top = lanes[i] > top ? lanes[i] : top, sum += not_finite[i];
  // The low byte of a float this large counts ones.
  constexpr float kOnes = 12582912.0f + 128.0f;
  // Below it the inverse would overflow; such states count as 0.
  const bool none = !(top > 1e-30f) || sum != 0.0f;
  const V step = set(none ? 0.0f : 127.0f / top), ones = set(kOnes);
  for (int64_t u = 0; u < units; u += 16) {
    float shifted[16];
    for (int64_t i = 0; i < 16; i += kLanes) store(shifted + i, none ? ones : fma(load(h + u + i), step, ones));
    for (int i = 0; i < 16; ++i) bytes[u + i] = static_cast<uint8_t>(std::bit_cast<uint32_t>(shifted[i]));
  }
  return sum != 0.0f ? sum : none ? 0.0f : top / 127.0f;
}

template <bool kUsual>
static void lstm(const CellPlan& p, const CellStep& s) {
  for (int64_t u = 0; u < s.units; u += kLanes) {
    const int64_t at = u / 16 * 64 + u % 16;
    const V before = load(s.c + u), scale = set(s.scale);
    V i = fma(scale, load(s.r + at), load(s.x + at)), o = fma(scale, load(s.r + at + 16), load(s.x + at + 16));
    V f = fma(scale, load(s.r + at + 32), load(s.x + at + 32));
    const V g = fma(scale, load(s.r + at + 48), load(s.x + at + 48));
    if (p.peepholes) {
      i = fma(load(p.peepholes + u), before, i);
      f = fma(load(p.peepholes + 2 * s.units + u), before, f);
    }
    i = activate<kUsual>(p, 0, true, i);
    f = p.input_forget ? 1.0f - i : activate<kUsual>(p, 0, true, f);
    const V c = fma(f, before, i * activate<kUsual>(p, 1, false, g));
    if (p.peepholes) o = fma(load(p.peepholes + s.units + u), c, o);
    store(s.c + u, c);
    store(s.h + u, activate<kUsual>(p, 0, true, o) * activate<kUsual>(p, 2, false, c));
  }
}

template <bool kUsual>
static void rnn(const CellPlan& p, const CellStep& s) {
  for (int64_t u = 0; u < s.units; u += kLanes)
    store(s.h + u, activate<kUsual>(p, 0, false, load(s.x + u) + load(s.r + u)));
}

// z and r stay in s.r, where their sums were.
template <bool kUsual>
static void gru_gates(const CellPlan& p, const CellStep& s) {
  for (int64_t u = 0; u < s.units; u += kLanes) {
    const int64_t at = u / 16 * 32 + u % 16;
    store(s.r + at, activate<kUsual>(p, 0, true, load(s.x + at) + load(s.r + at)));
    const V r = activate<kUsual>(p, 0, true, load(s.x + at + 16) + load(s.r + at + 16));
    store(s.r + at + 16, r);
    if (s.reset) store(s.reset + u, r * load(s.h + u));
  }
}

template <bool kUsual>
static void gru_state(const CellPlan& p, const CellStep& s) {
  const float *x = s.x + 2 * s.units, *sum = s.r + 2 * s.units;
  for (int64_t u = 0; u < s.units; u += kLanes) {
    const int64_t at = u / 16 * 32 + u % 16;
    const V z = load(s.r + at), from_h = load(sum + u);
    const V all = s.reset ? load(x + u) + from_h : fma(load(s.r + at + 16), from_h, load(x + u));
    const V fresh = activate<kUsual>(p, 1, false, all);
    store(s.h + u, fma(z, load(s.h + u), (1.0f - z) * fresh));
  }
}

static void lstm_step(const CellPlan& p, const CellStep& s) { p.usual ? lstm<true>(p, s) : lstm<false>(p, s); }
static void rnn_step(const CellPlan& p, const CellStep& s) { p.usual ? rnn<true>(p, s) : rnn<false>(p, s); }
static void gru_reset(const CellPlan& p, const CellStep& s) { p.usual ? gru_gates<true>(p, s) : gru_gates<false>(p, s); }
static void gru_after_reset(const CellPlan& p, const CellStep& s) { p.usual ? gru_state<true>(p, s) : gru_state<false>(p, s); }
