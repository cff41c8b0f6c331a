// move.splice: a part between the first rows of a tensor and its last ones. ints [axis, lead, rest]; in: data, part; out:
// `lead` rows of data, the part, the last `rest` rows of data, one behind the other along the axis. Data may be the output
// itself where both are equally large: then the rows around the part stay, and only the part is written. Any strides.
#include <algorithm>

#include "kernels/move/check.h"
#include "kernels/move/copy.h"

namespace ge::kernels::move {
namespace {

constexpr std::string_view kName = "move.splice";

struct Piece {
  CopyPlan copy;
  int64_t from = 0, to = 0;   // bytes from where the operands begin
};
struct Plan {
  Piece part, around[2];
  int64_t chunks = 0;
  bool in_place = false;      // allowed, as all that stays lies where it did
};

// `count` rows from row `first` on become those from row `at` on.
Piece piece(const View& from, int64_t first, const View& to, int64_t at, int64_t count, int64_t axis) {
  const View views[] = {from, to};
  Nest nest = Nest::of(views);
  nest.dims[axis] = count;
  return {plan_copy(nest, size_of(to.dtype)), first * nest.steps[0][axis], at * nest.steps[1][axis]};
}

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 2, 2, 1, 1));
  const View &x = c.in[0], &part = c.in[1], &y = c.out[0];
  if (c.ints.size() != 3 || c.ints[0] < 0 || c.ints[0] >= y.rank) return bad_call(kName, "its axis is not one of the output");
  const int64_t axis = c.ints[0], lead = c.ints[1], rest = c.ints[2];
  if (x.rank != y.rank || part.rank != y.rank || x.dtype != y.dtype || part.dtype != y.dtype) return bad_call(kName, "its operands do not fit");
  for (int i = 0; i < y.rank; ++i)
    if (i != axis && (x.dims[i] != y.dims[i] || part.dims[i] != y.dims[i])) return bad_call(kName, "its operands do not fit");
  const int64_t had = x.dims[axis], fresh = part.dims[axis];
  if (lead < 0 || rest < 0 || lead > had || rest > had || fresh > y.dims[axis] || y.dims[axis] - fresh != lead + rest)
    return bad_call(kName, "its rows do not fill the output");
  auto p = std::make_shared<Plan>();
  p->part = piece(part, 0, y, lead, fresh, axis);
  p->around[0] = piece(x, 0, y, 0, lead, axis);
  p->around[1] = piece(x, had - rest, y, lead + fresh, rest, axis);
  p->in_place = same_dims(x, y) && std::equal(x.strides, x.strides + x.rank, y.strides);
  for (auto* q : {&p->part, &p->around[0], &p->around[1]}) p->chunks = std::max(p->chunks, q->copy.chunks());
  Work w;
  w.chunks = p->chunks;
  w.state = std::move(p);
  return w;
}

void copy(const Piece& p, const std::byte* from, std::byte* to, int64_t chunks, int64_t chunk) {
  Span s = chunk_span(p.copy.units, chunks, chunk);
  run_copy(p.copy, from + p.from, to + p.to, s.begin, s.end);
}

Status run(const Call& c, int64_t chunk) {
  const Plan& p = *static_cast<const Plan*>(c.state);
  const bool there = c.in[0].data == c.out[0].data;
  if (there && !p.in_place) return bad_call(kName, "its output lies where rows lie that move");
  copy(p.part, c.in[1].data, c.out[0].data, p.chunks, chunk);
  if (!there)
    for (auto& q : p.around) copy(q, c.in[0].data, c.out[0].data, p.chunks, chunk);
  return ok();
}

const Register r({.name = kName, .prepare = prepare, .run = run, .in_place = 1});

}  // namespace
}  // namespace ge::kernels::move
