#include "tensor/float8.h"

#include <cmath>
#include <limits>

namespace ge {
namespace {

struct Format {
  int exponent_bits, mantissa_bits, bias;
  bool unsigned_zero;  // "fnuz": one zero, one NaN at 0x80
  double max;
};

Format format_of(DType t) {
  switch (t) {
    case DType::f8e4m3fn: return {4, 3, 7, false, 448};
    case DType::f8e4m3fnuz: return {4, 3, 8, true, 240};
    case DType::f8e5m2: return {5, 2, 15, false, 57344};
    case DType::f8e5m2fnuz: return {5, 2, 16, true, 57344};
    default: return {2, 1, 1, false, 6};
  }
}

uint8_t nan_code(DType t, bool negative) {
  if (t == DType::f8e4m3fnuz || t == DType::f8e5m2fnuz) return 0x80;
  return static_cast<uint8_t>(0x7f | (negative ? 0x80 : 0));
}

uint8_t e8m0_code(double x, bool saturate, Round round) {
  constexpr uint8_t kNan = 0xff, kMax = 0xfe;
  if (std::isnan(x) || x < 0) return kNan;
  if (x == 0) return saturate ? 0 : kNan;
  if (std::isinf(x)) return saturate ? kMax : kNan;
  int e;
  double m = std::frexp(x, &e);  // x = m * 2^e, m in [0.5, 1)
  --e;
  bool up = round == Round::up ? m > 0.5 : round == Round::nearest && m >= 0.75;
  if (up) ++e;
  if (e < -127) return saturate ? 0 : kNan;
  if (e > 127) return saturate ? kMax : kNan;
  return static_cast<uint8_t>(e + 127);
}

}  // namespace

bool is_small_float(DType t) {
  return t == DType::f8e4m3fn || t == DType::f8e4m3fnuz || t == DType::f8e5m2 || t == DType::f8e5m2fnuz ||
         t == DType::f4e2m1 || t == DType::f8e8m0;
}

float small_float_value(DType t, uint8_t code) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (t == DType::f8e8m0) return code == 0xff ? kNan : std::ldexp(1.0f, code - 127);
  Format f = format_of(t);
  int width = 1 + f.exponent_bits + f.mantissa_bits;
  bool negative = code >> (width - 1) & 1;
  int e = code >> f.mantissa_bits & ((1 << f.exponent_bits) - 1), m = code & ((1 << f.mantissa_bits) - 1);
  if (f.unsigned_zero && code == 0x80) return kNan;
  if (t == DType::f8e4m3fn && (code & 0x7f) == 0x7f) return kNan;
  if (t == DType::f8e5m2 && e == 31) {
    if (m) return kNan;
    return negative ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  }
  float v = e ? std::ldexp(static_cast<float>(m + (1 << f.mantissa_bits)), e - f.bias - f.mantissa_bits)
              : std::ldexp(static_cast<float>(m), 1 - f.bias - f.mantissa_bits);
  return negative ? -v : v;
}

uint8_t small_float_code(DType t, double x, bool saturate, Round round) {
  if (t == DType::f8e8m0) return e8m0_code(x, saturate, round);
  Format f = format_of(t);
  bool negative = std::signbit(x);
  int width = 1 + f.exponent_bits + f.mantissa_bits;
  auto with_sign = [&](int code) {
    if (f.unsigned_zero && code == 0) return uint8_t{0};
    return static_cast<uint8_t>(code | (negative ? 1 << (width - 1) : 0));
  };
  auto code_of = [&](double a) {  // a is a value of the type
    if (a == 0) return 0;
    int e = std::ilogb(a);
    if (e < 1 - f.bias) return static_cast<int>(std::ldexp(a, f.mantissa_bits + f.bias - 1));
    int m = static_cast<int>(std::ldexp(a, f.mantissa_bits - e)) - (1 << f.mantissa_bits);
    return (e + f.bias) << f.mantissa_bits | m;
  };
  if (std::isnan(x)) return t == DType::f4e2m1 ? 0x8 : nan_code(t, negative);
  double a = std::fabs(x);
  if (!std::isinf(a) && a != 0) {
    int e = std::max(std::ilogb(a), 1 - f.bias);
    double scaled = std::ldexp(a, f.mantissa_bits - e), whole = std::floor(scaled), rest = scaled - whole;
    if (rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2) == 1)) ++whole;
    a = std::ldexp(whole, e - f.mantissa_bits);
  }
  if (a <= f.max) return with_sign(code_of(a));
  if (saturate || t == DType::f4e2m1) return with_sign(code_of(f.max));
  if (t == DType::f8e5m2) return with_sign(0x7c);
  return nan_code(t, negative);
}

}  // namespace ge
