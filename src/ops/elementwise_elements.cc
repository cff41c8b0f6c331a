// Shape arithmetic: the elements of small integer and bool tensors as expressions over symbols.
#include <algorithm>

#include "ops/elementwise.h"

namespace ge::ops {
namespace {

constexpr int64_t kMaxElements = 1024;

bool not_negative(const Dim& d) { return d.lower_bound() >= 0; }
Dim less(const Dim& a, const Dim& b) { return Dim::call(DimCall::less, {a, b}); }

std::optional<Dim> unary(Ew op, const Dim& x) {
  switch (op) {
    case Ew::neg: return Dim(0) - x;
    case Ew::abs:
      if (not_negative(x)) return x;
      return max(x, Dim(0) - x);
    case Ew::relu: return max(x, Dim(0));
    case Ew::sign: return less(Dim(0), x) - less(x, Dim(0));
    case Ew::logical_not: return Dim(1) - x;
    case Ew::square: return x * x;
    default: return std::nullopt;
  }
}

std::optional<Dim> power(const Dim& a, const Dim& b) {
  if (!b.known() || b.value() < 0 || b.value() > 62) return std::nullopt;
  Dim r(1);
  for (int64_t i = 0; i < b.value(); ++i) r = r * a;
  return r;
}

// Integer division truncates; Dim's division floors. They agree unless exactly one side is negative.
std::optional<Dim> divide(const Dim& a, const Dim& b) {
  if (b.is(0)) return std::nullopt;
  if (not_negative(b) && !a.known()) {
    Dim positive = not_negative(a) ? floordiv(a, b) : floordiv(max(a, Dim(0)), b);
    // At most b - 1 below 0, as in (size - 1) / 2, rounds to 0.
    bool rest = a.lower_bound() < 0 && !(b.known() && a.lower_bound() > -b.value());
    return rest ? positive - floordiv(max(Dim(0) - a, Dim(0)), b) : positive;
  }
  if (not_negative(a) && not_negative(b)) return floordiv(a, b);
  if (!a.known() || !b.known() || (b.is(-1) && a.is(INT64_MIN))) return std::nullopt;
  return Dim(a.value() / b.value());
}

std::optional<Dim> modulo(Ew op, const Dim& a, const Dim& b) {
  if (a.known() && b.known()) {
    if (b.is(0)) return std::nullopt;
    if (b.is(-1)) return Dim(0);
    int64_t r = a.value() % b.value();
    if (op == Ew::mod && r != 0 && (r < 0) != (b.value() < 0)) r += b.value();
    return Dim(r);
  }
  if (!not_negative(b) || b.is(0) || (op == Ew::fmod && !not_negative(a))) return std::nullopt;
  return mod(a, b);
}

std::optional<Dim> binary(Ew op, const Dim& a, const Dim& b) {
  switch (op) {
    case Ew::add: return a + b;
    case Ew::sub: return a - b;
    case Ew::mul: return a * b;
    case Ew::div: return divide(a, b);
    case Ew::mod: case Ew::fmod: return modulo(op, a, b);
    case Ew::pow: return power(a, b);
    case Ew::max: return max(a, b);
    case Ew::min: return min(a, b);
    case Ew::equal: return Dim::call(DimCall::equal, {a, b});
    case Ew::less: return less(a, b);
    case Ew::greater: return less(b, a);
    case Ew::less_or_equal: return Dim(1) - less(b, a);
    case Ew::greater_or_equal: return Dim(1) - less(a, b);
    case Ew::logical_and: return a * b;
    case Ew::logical_or: return max(a, b);
    case Ew::logical_xor: return a + b - Dim(2) * a * b;
    default: return std::nullopt;
  }
}

// The element of v (of shape dims) that the flat output index `at` reads.
size_t source(const std::vector<Dim>& dims, const std::vector<Dim>& out, size_t at) {
  size_t index = 0, step = 1;
  for (size_t i = 0; i < out.size(); ++i) {
    size_t axis = out.size() - 1 - i;
    size_t size = static_cast<size_t>(out[axis].value());
    size_t digit = at % size;
    at /= size;
    if (i >= dims.size()) continue;
    size_t own = static_cast<size_t>(dims[dims.size() - 1 - i].value());
    if (own != 1) index += digit * step;
    step *= own;
  }
  return index;
}

std::optional<Dim> one(InferContext& c, Ew op, const std::vector<std::vector<Dim>>& in, size_t at) {
  auto element = [&](size_t i) { return in[i][source(c.dims(static_cast<int>(i)), c.out[0].dims, at)]; };
  Dim x = element(0);
  if (in.size() == 1) return op == Ew::clip || kernels::reference::is_variadic(op) ? std::optional(x) : unary(op, x);
  if (op == Ew::clip) {
    if (c.has(1)) x = max(x, element(1));
    if (in.size() > 2 && c.has(2)) x = min(x, element(2));
    return x;
  }
  for (size_t i = 1; i < in.size(); ++i) {
    auto r = binary(op, x, element(i));
    if (!r) return std::nullopt;
    x = *r;
  }
  return x;
}

}  // namespace

void infer_elementwise_elements(InferContext& c, Ew op) {
  const Type& out = c.out[0];
  if (!out.is_static() || !(is_integer(out.dtype) || out.dtype == DType::boolean)) return;
  Dim count = product(out.dims);
  if (!count.known() || count.value() > kMaxElements) return;
  std::vector<std::vector<Dim>> in;
  for (int i = 0; i < c.inputs(); ++i) {
    std::optional<std::vector<Dim>> e;
    if (c.has(i)) {
      // u64 has no expressions; a float exponent has no elements.
      if (c.dtype(i) == DType::u64 || !(e = c.elements(i))) return;
      if (Dim n = product(c.dims(i)); !n.known() || static_cast<size_t>(n.value()) != e->size()) return;
    }
    in.push_back(e ? std::move(*e) : std::vector<Dim>{});
  }
  std::vector<Dim> result;
  for (int64_t i = 0; i < count.value(); ++i) {
    auto d = one(c, op, in, static_cast<size_t>(i));
    if (!d) return;
    result.push_back(*d);
  }
  c.set_elements(0, std::move(result));
}

}  // namespace ge::ops
