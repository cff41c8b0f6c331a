// elementwise.typed: elementwise operators in typed loops over collapsed axes, for the dtypes and
// operators that vector programs do not cover. Parameters and operands as ref.elementwise; bounds of
// clip are single elements, and all numeric inputs have one type (pow too).
#include "kernels/reference/elementwise_typed.h"

#include "kernels/reference/access.h"
#include "kernels/reference/collapse.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kName = "elementwise.typed";
// Pieces of a row that stay in L1 between the steps of a variadic operator.
constexpr int64_t kPiece = 2048;

struct State {
  Nest nest;            // operand 0 is the output, k + 1 is input k (of a clip only x)
  RowFn fn = nullptr, last = nullptr;
  int64_t chunks = 0;
};

RowFn row_fn(Ew op, DType t) { return is_float(t) ? float_row(op, t) : int_row(op, t); }

Status check(const Call& c, Ew op) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1));
  size_t n = c.in.size();
  if ((is_unary(op) && n != 1) || (is_binary(op) && n != 2) || (op == Ew::clip && n > 3))
    return bad(kName, format("operator {} does not take {} inputs", c.ints[0], n));
  if (is_unary(op) && c.floats.size() < 2) return bad(kName, "too few parameters");
  for (size_t i = 0; i < n; ++i) {
    if (!present(c, i) && op == Ew::clip) continue;
    if (!present(c, i)) return bad(kName, format("input {} is missing", i));
    if (c.in[i].dtype != c.in[0].dtype) return bad(kName, "inputs of different types");
    if (!broadcasts_to(c.in[i], c.out[0])) return bad(kName, "an input does not broadcast to the output");
    if (op == Ew::clip && i && c.in[i].count() != 1) return bad(kName, "a bound is not one element");
  }
  if (!takes(op, c.in[0].dtype)) return bad(kName, format("operator {} does not take {}", c.ints[0], name(c.in[0].dtype)));
  if (c.out[0].dtype != (gives_bool(op) ? DType::boolean : c.in[0].dtype))
    return bad(kName, "wrong type of output");
  return ok();
}

double cost(Ew op) {
  if (op >= Ew::exp && op <= Ew::sigmoid) return 12;
  if ((op >= Ew::elu && op <= Ew::celu) || (op >= Ew::softplus && op <= Ew::swish)) return 15;
  if (op >= Ew::sin && op <= Ew::atanh) return 20;
  return op == Ew::pow || op == Ew::fmod || op == Ew::mod || op == Ew::div ? 15 : 1.5;
}

Result<Work> prepare(const Call& c) {
  Ew op = c.ints.empty() ? Ew::none : static_cast<Ew>(c.ints[0]);
  if (!is_known(op)) return bad(kName, "unknown operator");
  GE_RETURN_IF_ERROR(check(c, op));
  auto s = std::make_shared<State>();
  DType t = c.in[0].dtype;
  bool single = is_variadic(op) && c.in.size() == 1;
  s->fn = row_fn(single ? Ew::clip : op == Ew::mean ? Ew::sum : op, t);
  if (op == Ew::mean && !single) s->last = row_fn(Ew::mean, t);
  if (!s->fn) return bad(kName, format("operator {} does not take {}", c.ints[0], name(t)));
  std::vector<View> operands{c.out[0]};
  size_t followed = op == Ew::clip ? 1 : c.in.size();
  operands.insert(operands.end(), c.in.begin(), c.in.begin() + static_cast<ptrdiff_t>(followed));
  s->nest = collapse(operands);
  s->chunks = cut(s->nest.count, cost(op) * static_cast<double>(followed));
  Work w;
  w.chunks = s->chunks;
  w.state = s;
  return w;
}

// The piece of `n` inner elements at offset[k] of each operand.
void run_piece(const Call& c, const State& s, Ew op, const int64_t* index, int64_t n) {
  int inner = s.nest.rank - 1;
  int64_t size_in = size_of(c.in[0].dtype), size_out = size_of(c.out[0].dtype);
  auto at = [&](size_t k) { return c.in[k].data + s.nest.offset(k + 1, index) * size_in; };
  Row r;
  r.n = n;
  r.o = c.out[0].data + s.nest.offset(0, index) * size_out;
  r.so = s.nest.stride(0, inner);
  r.p0 = c.floats.empty() ? 0 : c.floats[0];
  r.p1 = c.floats.size() < 2 ? 0 : c.floats[1];
  r.a = at(0);
  r.sa = s.nest.stride(1, inner);
  if (op == Ew::clip) {
    r.b = present(c, 1) ? c.in[1].data : nullptr;
    r.c = present(c, 2) ? c.in[2].data : nullptr;
  } else if (c.in.size() > 1) {
    r.b = at(1);
    r.sb = s.nest.stride(2, inner);
  }
  s.fn(r);
  for (size_t k = 2; k < c.in.size() && op != Ew::clip; ++k) {
    r.a = r.o, r.sa = r.so;
    r.b = at(k), r.sb = s.nest.stride(k + 1, inner);
    s.fn(r);
  }
  if (s.last) {
    r.a = r.o, r.sa = r.so;
    r.p0 = static_cast<double>(c.in.size());
    s.last(r);
  }
}

Status run(const Call& c, int64_t chunk) {
  const State& s = *static_cast<const State*>(c.state);
  Ew op = static_cast<Ew>(c.ints[0]);
  Span span = slice(s.nest.count, chunk, s.chunks);
  int64_t inner = s.nest.inner(), index[kMaxRank], linear = span.begin;
  for (int a = s.nest.rank; a-- > 0; linear /= s.nest.dims[a]) index[a] = linear % s.nest.dims[a];
  int64_t limit = is_variadic(op) ? kPiece : inner;
  int64_t& column = index[s.nest.rank - 1];
  for (int64_t i = span.begin; i < span.end;) {
    int64_t n = std::min({inner - column, limit, span.end - i});
    run_piece(c, s, op, index, n);
    i += n;
    column += n;
    for (int a = s.nest.rank - 1; a > 0 && index[a] == s.nest.dims[a]; --a) index[a] = 0, ++index[a - 1];
  }
  return ok();
}

// Not over a third input, which is read after the first step is written; and only where the element
// sizes are equal (the output of a comparison is smaller).
const Register r({.name = kName, .unit = Unit::vector, .prepare = prepare, .run = run, .in_place = 0b11});

}  // namespace
}  // namespace ge::kernels::reference
