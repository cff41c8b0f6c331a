// The rows of elementwise.typed for integers and bool. Arithmetic wraps; a division by zero gives 0.
#include <type_traits>

#include "kernels/reference/elementwise_typed.h"

namespace ge::kernels::reference {
namespace {

template <class T>
T power(T a, T b) {
  if constexpr (std::is_signed_v<T>)
    if (b < 0) return a == 1 ? T{1} : a == T{-1} ? (b % 2 ? T{-1} : T{1}) : T{0};
  uint64_t r = 1, x = static_cast<uint64_t>(a);
  for (uint64_t n = static_cast<uint64_t>(b); n; n >>= 1, x *= x)
    if (n & 1) r *= x;
  return static_cast<T>(r);
}

template <class T>
T divide(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == T{-1}) return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(a));
  return static_cast<T>(a / b);
}

template <class T>
T remainder(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == T{-1}) return 0;
  return static_cast<T>(a % b);
}

template <class T>
T floor_mod(T a, T b) {
  T r = remainder(a, b);
  if constexpr (std::is_signed_v<T>)
    if (r != 0 && (r < 0) != (b < 0)) return static_cast<T>(r + b);
  return r;
}

template <class T>
T shift_right(T a, T b) {
  if (static_cast<uint64_t>(b) < sizeof(T) * 8) return static_cast<T>(a >> b);
  if constexpr (std::is_signed_v<T>)
    if (a < 0) return T{-1};
  return 0;
}

template <class T>
T shrink(T x, double bias, double lambd) {
  double d = static_cast<double>(x);
  if (d < -lambd) d += bias;
  else if (d > lambd) d -= bias;
  else d = 0;
  // As the reference: by way of int64_t, the low bits kept.
  if (!(d > -0x1p63)) return static_cast<T>(INT64_MIN);
  if (d < 0x1p63) return static_cast<T>(static_cast<int64_t>(d));
  return d < 0x1p64 ? static_cast<T>(static_cast<uint64_t>(d)) : static_cast<T>(INT64_MAX);
}

template <class T>
bool negative(T x) {
  if constexpr (std::is_signed_v<T>) return x < 0;
  return false;
}

#define GE_ROW1(O, expression) \
  return +[](const Row& r) { unary_row<T, O>(r, [](T x) { return expression; }); }
#define GE_ROW2(O, expression) \
  return +[](const Row& r) { binary_row<T, O>(r, [](T a, T b) { return expression; }); }

template <class T>
RowFn unary_fn(Ew op) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
    case Ew::abs: GE_ROW1(T, negative(x) ? static_cast<T>(U{0} - static_cast<U>(x)) : x);
    case Ew::neg: GE_ROW1(T, static_cast<T>(U{0} - static_cast<U>(x)));
    case Ew::relu: GE_ROW1(T, negative(x) ? T{0} : x);
    case Ew::sign: GE_ROW1(T, negative(x) ? static_cast<T>(-1) : static_cast<T>(x > 0));
    case Ew::bitwise_not: GE_ROW1(T, static_cast<T>(~x));
    case Ew::square: GE_ROW1(T, static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(x)));
    case Ew::shrink:
      return +[](const Row& r) { unary_row<T, T>(r, [&](T x) { return shrink(x, r.p0, r.p1); }); };
    case Ew::clip: return +[](const Row& r) { clip_row<T, T>(r); };
    default: return nullptr;
  }
}

template <class T>
RowFn binary_fn(Ew op) {
  using W = uint64_t;
  switch (op) {
    case Ew::add: GE_ROW2(T, static_cast<T>(static_cast<W>(a) + static_cast<W>(b)));
    case Ew::sub: GE_ROW2(T, static_cast<T>(static_cast<W>(a) - static_cast<W>(b)));
    case Ew::mul: GE_ROW2(T, static_cast<T>(static_cast<W>(a) * static_cast<W>(b)));
    case Ew::div: GE_ROW2(T, divide(a, b));
    case Ew::pow: GE_ROW2(T, power(a, b));
    case Ew::mod: GE_ROW2(T, floor_mod(a, b));
    case Ew::fmod: GE_ROW2(T, remainder(a, b));
    case Ew::prelu: GE_ROW2(T, negative(a) ? static_cast<T>(static_cast<W>(a) * static_cast<W>(b)) : a);
    case Ew::bit_shift_left:
      GE_ROW2(T, static_cast<W>(b) < sizeof(T) * 8 ? static_cast<T>(static_cast<W>(a) << static_cast<W>(b)) : T{0});
    case Ew::bit_shift_right: GE_ROW2(T, shift_right(a, b));
    case Ew::bitwise_and: GE_ROW2(T, static_cast<T>(a & b));
    case Ew::bitwise_or: GE_ROW2(T, static_cast<T>(a | b));
    case Ew::bitwise_xor: GE_ROW2(T, static_cast<T>(a ^ b));
    case Ew::equal: GE_ROW2(uint8_t, a == b);
    case Ew::less: GE_ROW2(uint8_t, a < b);
    case Ew::less_or_equal: GE_ROW2(uint8_t, a <= b);
    case Ew::greater: GE_ROW2(uint8_t, a > b);
    case Ew::greater_or_equal: GE_ROW2(uint8_t, a >= b);
    case Ew::max: GE_ROW2(T, a > b ? a : b);
    case Ew::min: GE_ROW2(T, a < b ? a : b);
    default: return unary_fn<T>(op);
  }
}

RowFn bool_fn(Ew op) {
  using T = uint8_t;
  switch (op) {
    case Ew::logical_not: GE_ROW1(T, x == 0);
    case Ew::logical_and: GE_ROW2(T, a && b);
    case Ew::logical_or: GE_ROW2(T, a || b);
    case Ew::logical_xor: GE_ROW2(T, !a != !b);
    case Ew::equal: GE_ROW2(T, !a == !b);
    case Ew::less: GE_ROW2(T, !a && b);
    case Ew::less_or_equal: GE_ROW2(T, !a || b);
    case Ew::greater: GE_ROW2(T, a && !b);
    case Ew::greater_or_equal: GE_ROW2(T, a || !b);
    default: return nullptr;
  }
}

}  // namespace

RowFn int_row(Ew op, DType t) {
  switch (t) {
    case DType::boolean: return bool_fn(op);
    case DType::i8: return binary_fn<int8_t>(op);
    case DType::u8: return binary_fn<uint8_t>(op);
    case DType::i16: return binary_fn<int16_t>(op);
    case DType::u16: return binary_fn<uint16_t>(op);
    case DType::i32: return binary_fn<int32_t>(op);
    case DType::u32: return binary_fn<uint32_t>(op);
    case DType::i64: return binary_fn<int64_t>(op);
    case DType::u64: return binary_fn<uint64_t>(op);
    default: return nullptr;
  }
}

}  // namespace ge::kernels::reference
