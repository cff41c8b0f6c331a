// ref.elementwise: the meaning of every elementwise operator, one element at a time.
// ints: [Ew code]. floats: [p0, p1] as Ew says. in: one view for each input, each repeated to the shape
// of out[0] (numpy broadcasting); any strides. Integers wrap; a division by zero gives 0.
#include "kernels/reference/elementwise.h"

#include <cmath>
#include <numbers>

#include "kernels/reference/access.h"

namespace ge::kernels::reference {

bool takes(Ew op, DType t) {
  bool number = plain_float(t) || plain_integer(t);
  switch (op) {
    case Ew::abs: case Ew::neg: case Ew::relu: case Ew::sign: case Ew::shrink: case Ew::square:
    case Ew::add: case Ew::sub: case Ew::mul: case Ew::div: case Ew::pow: case Ew::mod: case Ew::fmod:
    case Ew::prelu: case Ew::max: case Ew::min: case Ew::clip: return number;
    case Ew::bitwise_not: case Ew::bit_shift_left: case Ew::bit_shift_right: case Ew::bitwise_and:
    case Ew::bitwise_or: case Ew::bitwise_xor: return plain_integer(t);
    case Ew::logical_not: case Ew::logical_and: case Ew::logical_or: case Ew::logical_xor:
      return t == DType::boolean;
    case Ew::equal: case Ew::less: case Ew::less_or_equal: case Ew::greater: case Ew::greater_or_equal:
      return number || t == DType::boolean;
    default: return is_known(op) && plain_float(t);
  }
}

namespace {

constexpr std::string_view kName = "ref.elementwise";

double softplus(double x) { return (x > 0 ? x : x != x ? x : 0) + std::log1p(std::exp(-std::fabs(x))); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
// min(max(x, low), high), NaN stays.
double clamp(double x, double low, double high) {
  if (x < low) x = low;
  if (x > high) x = high;
  return x;
}

double floor_mod(double a, double b) {
  double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  if (r != r || b == 0) return r;
  return (r < 0) != (b < 0) ? r + b : r;
}

double unary_float(Ew op, double x, double p0, double p1) {
  switch (op) {
    case Ew::abs: return std::fabs(x);
    case Ew::neg: return -x;
    case Ew::sqrt: return std::sqrt(x);
    case Ew::reciprocal: return 1 / x;
    case Ew::exp: return std::exp(x);
    case Ew::log: return std::log(x);
    case Ew::erf: return std::erf(x);
    case Ew::tanh: return std::tanh(x);
    case Ew::sigmoid: return sigmoid(x);
    case Ew::relu: return x < 0 ? 0 : x;
    case Ew::leaky_relu: return x < 0 ? p0 * x : x;
    case Ew::elu: return x < 0 ? p0 * std::expm1(x) : x;
    case Ew::selu: return p1 * (x > 0 ? x : p0 * std::expm1(x));
    case Ew::celu: return x > 0 ? x : p0 * std::expm1(x / p0);
    case Ew::thresholded_relu: return x > p0 ? x : 0;
    case Ew::softplus: return softplus(x);
    case Ew::softsign: return x / (1 + std::fabs(x));
    case Ew::hard_sigmoid: return clamp(p0 * x + p1, 0, 1);
    case Ew::hard_swish: return x * clamp(x / 6 + 0.5, 0, 1);
    case Ew::mish: return x * std::tanh(softplus(x));
    case Ew::gelu: return 0.5 * x * std::erfc(-x * std::numbers::sqrt2 / 2);
    case Ew::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Ew::swish: return x * sigmoid(p0 * x);
    case Ew::floor: return std::floor(x);
    case Ew::ceil: return std::ceil(x);
    case Ew::round: return std::nearbyint(x);
    case Ew::sign: return x > 0 ? 1 : x < 0 ? -1 : x;
    case Ew::sin: return std::sin(x);
    case Ew::cos: return std::cos(x);
    case Ew::tan: return std::tan(x);
    case Ew::asin: return std::asin(x);
    case Ew::acos: return std::acos(x);
    case Ew::atan: return std::atan(x);
    case Ew::sinh: return std::sinh(x);
    case Ew::cosh: return std::cosh(x);
    case Ew::asinh: return std::asinh(x);
    case Ew::acosh: return std::acosh(x);
    case Ew::atanh: return std::atanh(x);
    case Ew::is_nan: return x != x;
    case Ew::is_inf: return (x == -INFINITY && p0 != 0) || (x == INFINITY && p1 != 0);
    case Ew::shrink: return x < -p1 ? x + p0 : x > p1 ? x - p0 : 0;
    case Ew::square: return x * x;
    default: return 0;
  }
}

double binary_float(Ew op, double a, double b) {
  switch (op) {
    case Ew::add: case Ew::sum: case Ew::mean: return a + b;
    case Ew::sub: return a - b;
    case Ew::mul: return a * b;
    case Ew::div: return a / b;
    case Ew::pow: return std::pow(a, b);
    case Ew::mod: return floor_mod(a, b);
    case Ew::fmod: return std::fmod(a, b);
    case Ew::prelu: return a < 0 ? a * b : a;
    case Ew::equal: return a == b;
    case Ew::less: return a < b;
    case Ew::less_or_equal: return a <= b;
    case Ew::greater: return a > b;
    case Ew::greater_or_equal: return a >= b;
    case Ew::max: return a != a ? a : b != b ? b : std::max(a, b);
    case Ew::min: return a != a ? a : b != b ? b : std::min(a, b);
    default: return 0;
  }
}

// Integers are computed in the 64-bit type of their signedness; wrapping is done in uint64_t.
template <class T>
T unary_int(Ew op, T x, double p0, double p1) {
  using U = uint64_t;
  switch (op) {
    case Ew::abs: return x < 0 ? static_cast<T>(U{0} - static_cast<U>(x)) : x;
    case Ew::neg: return static_cast<T>(U{0} - static_cast<U>(x));
    case Ew::relu: return x < 0 ? T{0} : x;
    case Ew::sign: return x > 0 ? T{1} : x < 0 ? static_cast<T>(-1) : T{0};
    case Ew::logical_not: return x == 0;
    case Ew::bitwise_not: return static_cast<T>(~x);
    case Ew::shrink: {
      double d = static_cast<double>(x);
      return static_cast<T>(to_int(d < -p1 ? d + p0 : d > p1 ? d - p0 : 0));
    }
    case Ew::square: return static_cast<T>(static_cast<U>(x) * static_cast<U>(x));
    default: return 0;
  }
}

template <class T>
T power(T a, T b) {
  if (b < 0) return a == 1 ? T{1} : a == static_cast<T>(-1) ? (b % 2 ? static_cast<T>(-1) : T{1}) : T{0};
  uint64_t r = 1, x = static_cast<uint64_t>(a);
  for (uint64_t n = static_cast<uint64_t>(b); n; n >>= 1, x *= x)
    if (n & 1) r *= x;
  return static_cast<T>(r);
}

template <class T>
T divide(T a, T b) {
  if (b == 0) return 0;
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(a));
  return a / b;
}

template <class T>
T remainder(T a, T b) {
  return b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1)) ? T{0} : a % b;
}

template <class T>
T binary_int(Ew op, T a, T b, int width) {
  using U = uint64_t;
  U x = static_cast<U>(a), y = static_cast<U>(b);
  bool far = y >= static_cast<U>(width);  // a shift by a negative amount too
  switch (op) {
    case Ew::add: case Ew::sum: return static_cast<T>(x + y);
    case Ew::sub: return static_cast<T>(x - y);
    case Ew::mul: return static_cast<T>(x * y);
    case Ew::div: return divide(a, b);
    case Ew::pow: return power(a, b);
    case Ew::mod: {
      T r = remainder(a, b);
      return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
    }
    case Ew::fmod: return remainder(a, b);
    case Ew::prelu: return a < 0 ? static_cast<T>(x * y) : a;
    case Ew::bit_shift_left: return far ? T{0} : static_cast<T>(x << y);
    case Ew::bit_shift_right: return far ? (a < 0 ? static_cast<T>(-1) : T{0}) : static_cast<T>(a >> y);
    case Ew::bitwise_and: return a & b;
    case Ew::bitwise_or: return a | b;
    case Ew::bitwise_xor: return a ^ b;
    case Ew::logical_and: return a && b;
    case Ew::logical_or: return a || b;
    case Ew::logical_xor: return !a != !b;
    case Ew::equal: return a == b;
    case Ew::less: return a < b;
    case Ew::less_or_equal: return a <= b;
    case Ew::greater: return a > b;
    case Ew::greater_or_equal: return a >= b;
    case Ew::max: return std::max(a, b);
    case Ew::min: return std::min(a, b);
    default: return 0;
  }
}

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1));
  Ew op = static_cast<Ew>(c.ints[0]);
  if (!is_known(op)) return bad(kName, format("unknown operator {}", c.ints[0]));
  size_t n = c.in.size();
  if ((is_unary(op) && n != 1) || (is_binary(op) && n != 2) || (op == Ew::clip && n > 3))
    return bad(kName, format("operator {} does not take {} inputs", c.ints[0], n));
  if (is_unary(op) && c.floats.size() < 2) return bad(kName, "too few parameters");
  DType t = c.in[0].dtype;
  if (!takes(op, t)) return bad(kName, format("operator {} does not take {}", c.ints[0], name(t)));
  for (size_t i = 0; i < n; ++i) {
    if (!present(c, i)) {
      if (op == Ew::clip) continue;
      return bad(kName, format("input {} is missing", i));
    }
    bool mixed = op == Ew::pow && i == 1;
    if (mixed ? !takes(op, c.in[i].dtype) : c.in[i].dtype != t)
      return bad(kName, "inputs of different types");
    if (!broadcasts_to(c.in[i], c.out[0])) return bad(kName, "an input does not broadcast to the output");
  }
  if (c.out[0].dtype != (gives_bool(op) ? DType::boolean : t)) return bad(kName, "wrong type of output");
  Work w;
  w.chunks = cut(c.out[0].count(), 40.0 * static_cast<double>(n));
  return w;
}

template <class T>
T clip_number(const Call& c, T x, T low, T high) {
  if (present(c, 1) && x < low) x = low;
  if (present(c, 2) && x > high) x = high;
  return x;
}

// One element of an operator of numbers that are computed in T (int64_t, uint64_t or double).
template <class T>
struct Evaluate {
  const Call& c;
  Ew op;
  double p0, p1;
  int width;
  static T get(const View& v, int64_t i) {
    if constexpr (std::is_floating_point_v<T>) return load(v, i);
    return static_cast<T>(load_int(v, i));
  }
  T unary(T x) const {
    if constexpr (std::is_floating_point_v<T>) return unary_float(op, x, p0, p1);
    else return unary_int<T>(op, x, p0, p1);
  }
  T binary(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) return binary_float(op, a, b);
    else return binary_int<T>(op, a, b, width);
  }
};

// in[k] at the walker's position.
template <class T>
void run_as(const Call& c, int64_t chunk) {
  Ew op = static_cast<Ew>(c.ints[0]);
  auto p = [&](size_t i) { return i < c.floats.size() ? c.floats[i] : 0.0; };
  Evaluate<T> e{c, op, p(0), p(1), bits(c.in[0].dtype)};
  const View& out = c.out[0];
  Span s = slice(out.count(), chunk, cut(out.count(), 40.0 * static_cast<double>(c.in.size())));
  Walker<4> w(out);
  w.follow(0, out);
  size_t direct = std::min<size_t>(c.in.size(), 3);
  for (size_t k = 0; k < direct; ++k)
    if (present(c, k)) w.follow(static_cast<int>(k) + 1, c.in[k]);
  w.seek(s.begin);
  bool float_power = op == Ew::pow && is_float(c.in[1].dtype);
  for (int64_t i = s.begin; i < s.end; ++i, w.next()) {
    T x = e.get(c.in[0], w.offset[1]);
    if (is_unary(op)) {
      x = e.unary(x);
    } else if (op == Ew::clip) {
      x = clip_number<T>(c, x, present(c, 1) ? e.get(c.in[1], w.offset[2]) : T{},
                         present(c, 2) ? e.get(c.in[2], w.offset[3]) : T{});
    } else if (float_power) {
      double r = std::pow(load(c.in[0], w.offset[1]), load(c.in[1], w.offset[2]));
      if constexpr (std::is_floating_point_v<T>) x = r;
      else x = static_cast<T>(to_int(r));
    } else {
      for (size_t k = 1; k < c.in.size(); ++k) {
        int64_t at = w.offset[std::min<size_t>(k, 2) + 1];
        if (k >= 2) {  // further inputs of a variadic operator are addressed by their index
          const View& v = c.in[k];
          at = 0;
          for (int a = 0; a < v.rank; ++a)
            at += v.dims[a] == 1 ? 0 : w.index[w.rank - v.rank + a] * v.strides[a];
        }
        x = e.binary(x, e.get(c.in[k], at));
      }
      if (op == Ew::mean) x = static_cast<T>(x / static_cast<T>(c.in.size()));
    }
    if constexpr (std::is_floating_point_v<T>) store(out, w.offset[0], x);
    else store_int(out, w.offset[0], static_cast<int64_t>(x));
  }
}

Status run(const Call& c, int64_t chunk) {
  DType t = c.in[0].dtype;
  if (is_float(t)) run_as<double>(c, chunk);
  else if (t == DType::u64) run_as<uint64_t>(c, chunk);
  else run_as<int64_t>(c, chunk);
  return ok();
}

const Register r({.name = kName, .unit = Unit::vector, .prepare = prepare, .run = run, .in_place = 0});

}  // namespace
}  // namespace ge::kernels::reference
