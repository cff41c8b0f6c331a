// move.reshape: in 0 (any strides) to out 0 (any strides) of other sizes but the same count, in flat
// row-major order; types of equal bytes. No parameters.
#include <algorithm>

#include "kernels/move/check.h"
#include "kernels/move/copy.h"
#include "kernels/move/element_size.h"

namespace ge::kernels::move {
namespace {

constexpr std::string_view kName = "move.reshape";

// Either one nest (the sizes have a common refinement), or two that are walked side by side.
struct State {
  bool refined = false;
  CopyPlan plan;
  Nest from, to;      // one operand each; the last axis is the run
  int64_t element = 1;
  int64_t count = 0, units = 0;  // a unit is kUnit elements of the flat order
};
constexpr int64_t kUnit = 4096;

struct Axis {
  int64_t dim, step;
};

// Splits the axes of a and b until they agree: [6,4] and [3,2,4] both become [3,2,4]. False when no
// size divides the other, as in [4,6] against [3,8].
bool refine(const Nest& a, const Nest& b, Nest* out) {
  std::array<Axis, kNestRank> x, y;
  int nx = 0, ny = 0;
  for (int i = 0; i < a.rank; ++i) x[static_cast<size_t>(nx++)] = {a.dims[i], a.steps[0][i]};
  for (int i = 0; i < b.rank; ++i) y[static_cast<size_t>(ny++)] = {b.dims[i], b.steps[0][i]};
  Nest n;
  n.operands = 2;
  // From the innermost axis outwards: the inner part of a split axis keeps the step.
  std::array<std::array<int64_t, 3>, 2 * kNestRank> joint;
  int count = 0;
  while (nx > 0 && ny > 0) {
    Axis &p = x[static_cast<size_t>(nx - 1)], &q = y[static_cast<size_t>(ny - 1)];
    int64_t d = std::min(p.dim, q.dim);
    if (p.dim % d != 0 || q.dim % d != 0) return false;
    joint[static_cast<size_t>(count++)] = {d, p.step, q.step};
    p = {p.dim / d, p.step * d};
    q = {q.dim / d, q.step * d};
    if (p.dim == 1) --nx;
    if (q.dim == 1) --ny;
  }
  if (count > kNestRank) return false;
  n.rank = count;
  for (int i = 0; i < count; ++i) {
    auto& j = joint[static_cast<size_t>(count - 1 - i)];
    n.dims[i] = j[0], n.steps[0][i] = j[1], n.steps[1][i] = j[2];
  }
  *out = n;
  return true;
}

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1, 1));
  const View &x = c.in[0], &y = c.out[0];
  if (x.count() != y.count())
    return bad_call(kName, format("{} cannot become {}: the numbers of elements differ", dims_text(x), dims_text(y)));
  if (size_of(x.dtype) != size_of(y.dtype)) return bad_call(kName, "element sizes differ");
  auto s = std::make_shared<State>();
  s->element = size_of(x.dtype);
  s->from = Nest::of({&x, 1});
  s->to = Nest::of({&y, 1});
  s->from.simplify();
  s->to.simplify();
  s->count = x.count();
  Work w;
  w.chunks = 0;
  if (s->count > 0) {
    Nest joint;
    s->refined = refine(s->from, s->to, &joint);
    if (s->refined) {
      s->plan = plan_copy(joint, s->element);
      w.chunks = s->plan.chunks();
    } else {
      s->units = (s->count + kUnit - 1) / kUnit;
      w.chunks = chunks_for(s->units, kUnit * s->element);
    }
  }
  w.state = std::move(s);
  return w;
}

// Position in one nest's flat order, as the run that starts there.
struct Runner {
  Walker walker;
  int64_t length, step, at;  // of a run; position inside it
  Runner(const Nest& n, int64_t flat)
      : walker(n, n.rank - 1, flat / n.dims[n.rank - 1]),
        length(n.dims[n.rank - 1]),
        step(n.steps[0][n.rank - 1]),
        at(flat % length) {}
  int64_t left() const { return length - at; }
  int64_t offset() const { return walker.at[0] + at * step; }
  void advance(int64_t n) {
    at += n;
    if (at == length) at = 0, walker.next();
  }
};

template <class T>
void copy_runs(const State& s, const std::byte* from, std::byte* to, int64_t begin, int64_t end) {
  constexpr int64_t kSize = sizeof(T);
  Runner a(s.from, begin), b(s.to, begin);
  for (int64_t i = begin; i < end;) {
    int64_t n = std::min({a.left(), b.left(), end - i});
    const std::byte* p = from + a.offset();
    std::byte* q = to + b.offset();
    if (a.step == kSize && b.step == kSize) {
      copy_row(q, p, n * kSize);
    } else {
      for (int64_t k = 0; k < n; ++k) store(q + k * b.step, load<T>(p + k * a.step));
    }
    a.advance(n), b.advance(n);
    i += n;
  }
}

Status run(const Call& c, int64_t chunk) {
  auto& s = *static_cast<const State*>(c.state);
  if (s.refined) {
    run_copy_chunk(s.plan, c.in[0].data, c.out[0].data, chunk);
    return ok();
  }
  Span span = chunk_span(s.units, chunks_for(s.units, kUnit * s.element), chunk);
  with_element(s.element, [&](auto tag) {
    copy_runs<decltype(tag)>(s, c.in[0].data, c.out[0].data, span.begin * kUnit, std::min(s.count, span.end * kUnit));
  });
  return ok();
}

const Register r({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::move
