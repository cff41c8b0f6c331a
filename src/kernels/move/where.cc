// move.where: out 0 = in 0 (bool) ? in 1 : in 2, each broadcast to the output; any type, any strides. No
// parameters.
#include <algorithm>

#include "kernels/move/check.h"
#include "kernels/move/element_size.h"
#include "kernels/move/nest.h"

namespace ge::kernels::move {
namespace {

constexpr std::string_view kName = "move.where";
constexpr int64_t kPiece = 4096;

struct State {
  Nest nest;  // condition, x, y, out
  int64_t bytes = 1, pieces = 1, units = 0, unit_bytes = 1;
};

// v with the axes of `space`; broadcast axes have stride 0. `strides` holds them.
View broadcast_to(const View& v, const View& space, int64_t* strides) {
  for (int i = 0; i < space.rank; ++i) {
    int a = i - (space.rank - v.rank);
    strides[i] = a < 0 || v.dims[a] == 1 ? 0 : v.strides[a];
  }
  return {v.data, v.dtype, space.rank, space.dims, strides};
}

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 3, 3, 1, 1));
  const View& y = c.out[0];
  if (c.in[0].dtype != DType::boolean) return bad_call(kName, "the condition is not bool");
  int64_t strides[3][kMaxRank];
  View views[4];
  for (size_t i = 0; i < 3; ++i) {
    const View& v = c.in[i];
    if (i && v.dtype != y.dtype) return bad_call(kName, "inputs and output differ in type");
    bool fits = v.rank <= y.rank;
    for (int a = 0; fits && a < v.rank; ++a) fits = v.dims[a] == 1 || v.dims[a] == y.dims[y.rank - v.rank + a];
    if (!fits) return bad_call(kName, format("{} does not broadcast to {}", dims_text(v), dims_text(y)));
    views[i] = broadcast_to(v, y, strides[i]);
  }
  views[3] = y;
  auto s = std::make_shared<State>();
  s->bytes = size_of(y.dtype);
  s->nest = Nest::of(views);
  s->nest.simplify();
  s->nest.sort_for(3);
  s->nest.simplify();
  if (s->nest.rank == 0) {
    s->nest.rank = 1, s->nest.dims[0] = 1;
    for (auto& step : s->nest.steps) step[0] = 0;
  }
  int64_t n = s->nest.dims[s->nest.rank - 1], count = s->nest.count();
  if (count > 0) {
    s->pieces = (n + kPiece - 1) / kPiece;
    s->units = count / n * s->pieces;
    s->unit_bytes = std::min(n, kPiece) * s->bytes;
  }
  Work w;
  w.chunks = chunks_for(s->units, s->unit_bytes);
  w.state = std::move(s);
  return w;
}

struct Line {
  const std::byte *condition, *x, *y;
  std::byte* out;
  int64_t steps[4];
  int64_t n;
};

template <class T, bool kX, bool kY>
void select_line(const Line& l) {
  constexpr int64_t kSize = sizeof(T);
  for (int64_t i = 0; i < l.n; ++i) {
    T a = load<T>(l.x + (kX ? i * kSize : 0)), b = load<T>(l.y + (kY ? i * kSize : 0));
    if constexpr (std::is_integral_v<T>) store(l.out + i * kSize, l.condition[i] != std::byte{0} ? a : b);
    else store(l.out + i * kSize, load<T>(l.condition[i] != std::byte{0} ? l.x + (kX ? i * kSize : 0) : l.y + (kY ? i * kSize : 0)));
  }
}

template <class T>
void run_line(const Line& l) {
  constexpr int64_t kSize = sizeof(T);
  auto even = [](int64_t step) { return step == 0 || step == kSize; };
  if (l.steps[0] == 1 && l.steps[3] == kSize && even(l.steps[1]) && even(l.steps[2])) {
    bool x = l.steps[1] != 0, y = l.steps[2] != 0;
    return x ? (y ? select_line<T, true, true>(l) : select_line<T, true, false>(l))
             : (y ? select_line<T, false, true>(l) : select_line<T, false, false>(l));
  }
  for (int64_t i = 0; i < l.n; ++i)
    store(l.out + i * l.steps[3],
          load<T>(l.condition[i * l.steps[0]] != std::byte{0} ? l.x + i * l.steps[1] : l.y + i * l.steps[2]));
}

Status run(const Call& c, int64_t chunk) {
  auto& s = *static_cast<const State*>(c.state);
  Span span = chunk_span(s.units, chunks_for(s.units, s.unit_bytes), chunk);
  int last = s.nest.rank - 1;
  Walker w(s.nest, last, span.begin / s.pieces);
  int64_t k = span.begin % s.pieces;
  for (int64_t u = span.begin; u < span.end; ++u) {
    int64_t i = k * kPiece;
    auto step = [&](int o) { return s.nest.steps[o][last]; };
    Line l{c.in[0].data + w.at[0] + i * step(0), c.in[1].data + w.at[1] + i * step(1), c.in[2].data + w.at[2] + i * step(2),
           c.out[0].data + w.at[3] + i * step(3), {step(0), step(1), step(2), step(3)}, std::min(kPiece, s.nest.dims[last] - i)};
    with_element(s.bytes, [&](auto tag) { run_line<decltype(tag)>(l); });
    if (++k == s.pieces) k = 0, w.next();
  }
  return ok();
}

const Register r({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::move
