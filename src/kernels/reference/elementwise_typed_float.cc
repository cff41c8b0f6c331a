// The rows of elementwise.typed for f32, f64, f16 and bf16 (the last two compute in f32).
#include <algorithm>
#include <cmath>

#include "kernels/reference/elementwise_typed.h"

namespace ge::kernels::reference {
namespace {

template <class C>
C softplus(C x) { return (x > 0 ? x : x != x ? x : C{0}) + std::log1p(std::exp(-std::fabs(x))); }
template <class C>
C clamp(C x, C low, C high) { return x < low ? low : x > high ? high : x; }
template <class C>
C sigmoid(C x) { return 1 / (1 + std::exp(-x)); }
template <class C>
C floor_mod(C a, C b) {
  C r = std::fmod(a, b);
  if (r == 0) return std::copysign(C{0}, b);
  if (r != r || b == 0) return r;
  return (r < 0) != (b < 0) ? r + b : r;
}

// GE_ROW1(expression of x): a captureless function over a row; p and q are the parameters.
#define GE_ROW1(O, expression)                                          \
  return +[](const Row& r) {                                            \
    [[maybe_unused]] const C p = static_cast<C>(r.p0), q = static_cast<C>(r.p1); \
    unary_row<S, O>(r, [=](C x) { return expression; });                \
  }
#define GE_ROW2(O, expression)                                          \
  return +[](const Row& r) { binary_row<S, O>(r, [](C a, C b) { return expression; }); }

// Storage type S, computed in C.
template <class S, class C>
RowFn unary_fn(Ew op) {
  switch (op) {
    case Ew::abs: GE_ROW1(S, std::fabs(x));
    case Ew::neg: GE_ROW1(S, -x);
    case Ew::sqrt: GE_ROW1(S, std::sqrt(x));
    case Ew::reciprocal: GE_ROW1(S, 1 / x);
    case Ew::exp: GE_ROW1(S, std::exp(x));
    case Ew::log: GE_ROW1(S, std::log(x));
    case Ew::erf: GE_ROW1(S, std::erf(x));
    case Ew::tanh: GE_ROW1(S, std::tanh(x));
    case Ew::sigmoid: GE_ROW1(S, sigmoid(x));
    case Ew::relu: GE_ROW1(S, x < 0 ? C{0} : x);
    case Ew::leaky_relu: GE_ROW1(S, x < 0 ? p * x : x);
    case Ew::elu: GE_ROW1(S, x < 0 ? p * std::expm1(x) : x);
    case Ew::selu: GE_ROW1(S, q * (x > 0 ? x : p * std::expm1(x)));
    case Ew::celu: GE_ROW1(S, x > 0 ? x : p * std::expm1(x / p));
    case Ew::thresholded_relu: GE_ROW1(S, x > p ? x : C{0});
    case Ew::softplus: GE_ROW1(S, softplus(x));
    case Ew::softsign: GE_ROW1(S, x / (1 + std::fabs(x)));
    case Ew::hard_sigmoid: GE_ROW1(S, clamp<C>(p * x + q, 0, 1));
    case Ew::hard_swish: GE_ROW1(S, x * clamp<C>(x / 6 + C(0.5), 0, 1));
    case Ew::mish: GE_ROW1(S, x * std::tanh(softplus(x)));
    case Ew::gelu: GE_ROW1(S, C(0.5) * x * std::erfc(-x * C(0.70710678118654752440)));
    case Ew::gelu_tanh:
      GE_ROW1(S, C(0.5) * x * (1 + std::tanh(C(0.79788456080286535588) * (x + C(0.044715) * x * x * x))));
    case Ew::swish: GE_ROW1(S, x * sigmoid(p * x));
    case Ew::floor: GE_ROW1(S, std::floor(x));
    case Ew::ceil: GE_ROW1(S, std::ceil(x));
    case Ew::round: GE_ROW1(S, std::nearbyint(x));
    case Ew::sign: GE_ROW1(S, x > 0 ? C{1} : x < 0 ? C{-1} : x);
    case Ew::sin: GE_ROW1(S, std::sin(x));
    case Ew::cos: GE_ROW1(S, std::cos(x));
    case Ew::tan: GE_ROW1(S, std::tan(x));
    case Ew::asin: GE_ROW1(S, std::asin(x));
    case Ew::acos: GE_ROW1(S, std::acos(x));
    case Ew::atan: GE_ROW1(S, std::atan(x));
    case Ew::sinh: GE_ROW1(S, std::sinh(x));
    case Ew::cosh: GE_ROW1(S, std::cosh(x));
    case Ew::asinh: GE_ROW1(S, std::asinh(x));
    case Ew::acosh: GE_ROW1(S, std::acosh(x));
    case Ew::atanh: GE_ROW1(S, std::atanh(x));
    case Ew::is_nan: GE_ROW1(uint8_t, x != x);
    case Ew::is_inf: GE_ROW1(uint8_t, (x == -C(INFINITY) && p != 0) || (x == C(INFINITY) && q != 0));
    case Ew::shrink: GE_ROW1(S, x < -q ? x + p : x > q ? x - p : C{0});
    case Ew::square: GE_ROW1(S, x * x);
    case Ew::mean: GE_ROW1(S, x / p);
    case Ew::clip: return +[](const Row& r) { clip_row<S, C>(r); };
    default: return nullptr;
  }
}

template <class S, class C>
RowFn binary_fn(Ew op) {
  switch (op) {
    case Ew::add: case Ew::sum: GE_ROW2(S, a + b);
    case Ew::sub: GE_ROW2(S, a - b);
    case Ew::mul: GE_ROW2(S, a * b);
    case Ew::div: GE_ROW2(S, a / b);
    case Ew::pow: GE_ROW2(S, std::pow(a, b));
    case Ew::mod: GE_ROW2(S, floor_mod(a, b));
    case Ew::fmod: GE_ROW2(S, std::fmod(a, b));
    case Ew::prelu: GE_ROW2(S, a < 0 ? a * b : a);
    case Ew::equal: GE_ROW2(uint8_t, a == b);
    case Ew::less: GE_ROW2(uint8_t, a < b);
    case Ew::less_or_equal: GE_ROW2(uint8_t, a <= b);
    case Ew::greater: GE_ROW2(uint8_t, a > b);
    case Ew::greater_or_equal: GE_ROW2(uint8_t, a >= b);
    case Ew::max: GE_ROW2(S, a != a ? a : b != b ? b : a > b ? a : b);
    case Ew::min: GE_ROW2(S, a != a ? a : b != b ? b : a < b ? a : b);
    default: return unary_fn<S, C>(op);
  }
}

}  // namespace

RowFn float_row(Ew op, DType t) {
  switch (t) {
    case DType::f32: return binary_fn<float, float>(op);
    case DType::f64: return binary_fn<double, double>(op);
    case DType::f16: return binary_fn<F16, float>(op);
    case DType::bf16: return binary_fn<Bf16, float>(op);
    default: return nullptr;
  }
}

}  // namespace ge::kernels::reference
