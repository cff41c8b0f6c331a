// Elementary functions on V, included by the simd headers inside their namespace (hence no guard). All
// are branch-free but for huge arguments of sin and cos; NaN goes through; the limits at infinity and
// zero are those of the C functions. Largest errors, measured against double over a dense sweep of all
// floats (tests/vector/math_test.cc), with FMA / without:
//   exp 0.9/1.2 ulp   expm1 1.5   log 0.8   erf 2.9   tanh 2.5   sigmoid 2.3   softplus 1.6   silu 3.0
//   (from -87 on)   mish 3.9   sin, cos 1.6 while |x| <= 2^20, beyond that the C library's   pow 0.51
//   gelu, gelu_tanh 2^-23 |x| (absolute: 1 + erf cancels for negative x)
// ulp are of the result, in the subnormal range of its spacing there.

// The polynomials are minimax fits made for this file (relative error before rounding in brackets).
GE_SIMD V exp_q(V r) {  // (e^r - 1 - r) / r^2 on |r| <= ln2/2  [3e-9 of e^r]
  V q = fma(set(1.381432942e-03f), r, set(8.368851239e-03f));
  q = fma(q, r, set(4.166840091e-02f));
  q = fma(q, r, set(1.666651952e-01f));
  return fma(q, r, set(4.999999337e-01f));
}

struct ExpParts {
  V n, r;  // x = n ln2 + r
};
GE_SIMD ExpParts exp_parts(V x) {
  V n = vround(x * set(1.44269504f));
  V r = fnma(n, set(0.693359375f), x);  // short enough for an exact product without FMA
  return {n, fnma(n, set(-2.12194440e-4f), r)};
}

GE_SIMD V exp(V x) {
  x = hw_min(set(100.0f), hw_max(set(-106.0f), x));
  ExpParts e = exp_parts(x);
  V p = fma(e.r, fma(e.r, exp_q(e.r), set(1.0f)), set(1.0f));
  return scale2(p, e.n);
}

// For x in [-40, 89].
GE_SIMD V expm1_core(V x) {
  ExpParts e = exp_parts(x);
  V p = fma(e.r * e.r, exp_q(e.r), e.r);
  V half = as_f((cvt_trunc(e.n) + 126) << 23);  // 2^(n-1): 2^128 would overflow
  V y = fma(half, p, half - 0.5f);
  return y + y;
}

GE_SIMD V expm1(V x) { return expm1_core(hw_min(set(89.0f), hw_max(set(-40.0f), x))); }

// log(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)], plus e ln2.
GE_SIMD V log1_core(V f, V e) {
  V q = fma(set(-7.634778051e-02f), f, set(1.276170124e-01f));
  q = fma(q, f, set(-1.316012925e-01f));
  q = fma(q, f, set(1.420173476e-01f));
  q = fma(q, f, set(-1.662336065e-01f));
  q = fma(q, f, set(2.000122821e-01f));
  q = fma(q, f, set(-2.500082097e-01f));
  q = fma(q, f, set(3.333333169e-01f));  // [6e-9 of the result]
  V z = f * f;
  V y = f * z * q;
  y = fma(e, set(-2.12194440e-4f), y);
  y = fnma(set(0.5f), z, y);
  return fma(e, set(0.693359375f), f + y);
}

GE_SIMD V log(V x) {
  M tiny = lt(x, set(0x1p-126f));
  I bits = as_i(sel(tiny, x * 0x1p23f, x));
  I e = (I)((U)bits - 0x3f3504f3u) >> 23;   // modulo 2^32: of negative numbers, too
  V f = as_f((I)((U)bits - ((U)e << 23))) - 1.0f;
  V r = log1_core(f, cvt_f(e) - sel(tiny, set(23.0f), set(0.0f)));
  V inf = set(__builtin_inff()), nan_value = set(__builtin_nanf(""));
  // +inf and NaN are themselves, 0 is -inf, negative is NaN.
  r = sel(lt(x, inf), r, x);
  r = sel(eq(x, set(0.0f)), -inf, r);
  return sel(lt(x, set(0.0f)), nan_value, r);
}

// log(1 + u) for u in [0, 1]. Above sqrt(2)-1: ln2 + log(1 + (u-1)/2).
GE_SIMD V log1p_unit(V u) {
  M big = lt(set(0.41421356f), u);
  return log1_core(sel(big, (u - 1.0f) * 0.5f, u), sel(big, set(1.0f), set(0.0f)));
}

GE_SIMD V vabs(V x) { return as_f(as_i(x) & 0x7fffffff); }
GE_SIMD V copysign(V magnitude, V sign) { return as_f(as_i(magnitude) | (as_i(sign) & INT32_MIN)); }

// erf(t) = 1 - e^(-t Q(t)), with Q(t) = -ln(erfc t)/t on [0, 3.93], where erf becomes 1  [4e-9].
GE_SIMD V erf(V x) {
  V t = hw_min(set(3.93f), vabs(x));
  V q = fma(set(-9.256251374e-06f), t, set(1.176411457e-04f));
  q = fma(q, t, set(-6.328363986e-04f));
  q = fma(q, t, set(1.667026613e-03f));
  q = fma(q, t, set(-1.603952082e-04f));
  q = fma(q, t, set(-1.915306437e-02f));
  q = fma(q, t, set(1.027778306e-01f));
  q = fma(q, t, set(6.366193820e-01f));
  q = fma(q, t, set(1.128379172e+00f));
  return copysign(vabs(expm1_core(-t * q)), x);
}

GE_SIMD V tanh(V x) {
  V e = expm1_core(hw_max(set(-40.0f), vabs(x) * -2.0f));
  return copysign(vabs(e / (e + 2.0f)), x);
}

GE_SIMD V sigmoid(V x) {
  V e = exp(-vabs(x));
  return sel(lt(x, set(0.0f)), e, set(1.0f)) / (e + 1.0f);
}

GE_SIMD V softplus(V x) { return hw_max(set(0.0f), x) + log1p_unit(exp(-vabs(x))); }

// tanh(softplus(x)) = n / (n + 2) with n = e^x (e^x + 2); 1 from 20 on.
GE_SIMD V mish(V x) {
  V e = exp(hw_min(set(20.0f), x));
  V n = e * (e + 2.0f);
  return x * (n / (n + 2.0f));
}

GE_SIMD V gelu(V x) { return x * 0.5f * (erf(x * 0.70710678f) + 1.0f); }

// 0.5 x (1 + tanh z) = x sigmoid(2z).
GE_SIMD V gelu_tanh(V x) {
  V z2 = x * fma(x * x, set(0.0713548163f), set(1.59576912f));
  return x * sigmoid(z2);
}

template <class F>
GE_SIMD V lanewise(V a, V b, F f) {
  alignas(64) float x[kLanes], y[kLanes];
  store(x, a);
  store(y, b);
  for (int i = 0; i < kLanes; ++i) x[i] = f(x[i], y[i]);
  return load(x);
}

// The C library's, for arguments where three floats of pi/2 do not suffice.
static __attribute__((noinline, unused)) V huge_sin(V x, bool cosine) {
  return lanewise(x, x, [cosine](float a, float) { return cosine ? __builtin_cosf(a) : __builtin_sinf(a); });
}

template <bool kCos>
GE_SIMD V sincos(V x) {
  V n = vround(x * 0.636619772f);
  V r;
  if constexpr (kHasFma) {
    r = fnma(n, set(1.57079637e+00f), x);
    r = fnma(n, set(-4.37113883e-08f), r);
    r = fnma(n, set(-1.71512451e-15f), r);
  } else {
    r = lanewise(x, n, [](float a, float k) {
      return static_cast<float>((a - k * 1.5707963267341256) - k * 6.077100506506192e-11);
    });
  }
  I quadrant = cvt_trunc(n) + (kCos ? 1 : 0);
  V z = r * r;
  V s = fma(fma(set(-1.951397987e-04f), z, set(8.332151331e-03f)), z, set(-1.666665446e-01f));
  s = fma(s * z, r, r);
  V c = fma(fma(set(2.443166820e-05f), z, set(-1.388730346e-03f)), z, set(4.166664543e-02f));
  c = fma(c * z, z, fnma(set(0.5f), z, set(1.0f)));
  V y = sel(nonzero(quadrant & 1), c, s);
  y = as_f(as_i(y) ^ ((quadrant & 2) << 30));
  M huge = lt(set(0x1p20f), vabs(x));
  if (__builtin_expect(any(huge), 0)) y = sel(huge, huge_sin(x, kCos), y);
  return y;
}
GE_SIMD V sin(V x) { return sincos<false>(x); }
GE_SIMD V cos(V x) { return sincos<true>(x); }

// pow in double vectors of V's size: half of V's lanes each.
typedef double D __attribute__((vector_size(sizeof(V))));
typedef int64_t L __attribute__((vector_size(sizeof(V))));
typedef float H __attribute__((vector_size(sizeof(V) / 2)));

GE_SIMD D dsel(L m, D t, D f) { return (D)((m & (L)t) | (~m & (L)f)); }
GE_SIMD D dset(double x) { return D{} + x; }

// a^y for a >= 0 (or NaN): 2^(y log2 a).
GE_SIMD D pow_positive(D a, D y) {
  L bits = (L)a;  // floats are normal as doubles, so no subnormal case
  L e = (bits - 0x3fe6a09e667f3bcdLL) >> 52;
  D m = (D)(bits - (e << 52));
  D s = (m - 1.0) / (m + 1.0), z = s * s;
  D q = ((((((z * (1.0 / 15) + 1.0 / 13) * z + 1.0 / 11) * z + 1.0 / 9) * z + 1.0 / 7) * z + 1.0 / 5) * z + 1.0 / 3) * z;
  // e to double by the magic number: |e| < 2^11.
  D ed = (D)((L)dset(0x1.8p52) + e) - 0x1.8p52;
  D l = (s + s * q) * 2.8853900817779268 + ed;
  D inf = dset(__builtin_inf());
  l = dsel((L)(a == inf) | (L)(a != a), a, l);
  l = dsel((L)(a == 0.0), -inf, l);
  D t = y * l;
  D bounded = dsel((L)(t > 400.0), dset(400.0), dsel((L)(t < -400.0), dset(-400.0), t));
  D shifted = bounded + 0x1.8p52, n = shifted - 0x1.8p52;
  D f = (bounded - n) * 0.69314718055994531;
  D p = (((((((f * (1.0 / 40320) + 1.0 / 5040) * f + 1.0 / 720) * f + 1.0 / 120) * f + 1.0 / 24) * f + 1.0 / 6) * f + 0.5) * f + 1.0) * f + 1.0;
  D scale = (D)(((L)shifted - (L)dset(0x1.8p52) + 1023) << 52);
  return dsel((L)(t != t), t, p * scale);
}

GE_SIMD D pow_half(D x, D y) {
  D a = (D)((L)x & INT64_MAX), r = pow_positive(a, y);
  L negative = (L)x >> 63;
  // Floats from 2^24 on are even integers; below, the fraction and parity show after the magic number.
  D ay = (D)((L)y & INT64_MAX), shifted = ay + 0x1p52;
  L small = (L)(ay < 0x1p24);
  L integer = (L)(shifted - 0x1p52 == ay) | ~small;
  L odd = (((L)shifted << 63) >> 63) & integer & small;
  r = (D)((L)r ^ (negative & odd & INT64_MIN));
  L undefined = negative & ~integer & (L)(a != 0.0) & (L)(a < __builtin_inf());
  r = dsel(undefined, dset(__builtin_nan("")), r);
  L one = (L)(y == 0.0) | (L)(x == 1.0) | ((L)(a == 1.0) & (L)(ay == __builtin_inf()));
  return dsel(one, dset(1.0), r);
}

GE_SIMD V pow(V x, V y) {
  H xs[2], ys[2], r[2];
  std::memcpy(xs, &x, sizeof x);
  std::memcpy(ys, &y, sizeof y);
  for (int k = 0; k < 2; ++k)
    r[k] = __builtin_convertvector(pow_half(__builtin_convertvector(xs[k], D), __builtin_convertvector(ys[k], D)), H);
  V out;
  std::memcpy(&out, r, sizeof out);
  return out;
}

GE_SIMD V fmod(V x, V y) {
  return lanewise(x, y, [](float a, float b) { return __builtin_fmodf(a, b); });
}
