// move.gather: out 0 = in 0 (data) taken at in 1 (indices, i32 or i64) along an axis, as ONNX's Gather:
// out dims = data[:axis] + indices + data[axis+1:]. Negative indices count from the end; one out of range
// is an error. All views of any strides. ints: [axis].
#include <algorithm>

#include "kernels/move/check.h"
#include "kernels/move/copy.h"
#include "kernels/move/element_size.h"

namespace ge::kernels::move {
namespace {

constexpr std::string_view kName = "move.gather";

struct State {
  Nest outer;          // data axes before `axis`, then index axes; operands data, indices, out
  CopyPlan block;      // what one index selects
  int64_t block_bytes = 0;
  int64_t rows = 0;    // positions of `outer`
  int64_t splits = 1;  // pieces that each block is cut into
  int64_t axis_size = 0, axis_step = 0;
  enum class Block : uint8_t { element, row, any } kind = Block::any;
};

void add_axis(Nest& n, int64_t dim, int64_t s0, int64_t s1, int64_t s2) {
  n.dims[n.rank] = dim;
  n.steps[0][n.rank] = s0, n.steps[1][n.rank] = s1, n.steps[2][n.rank] = s2;
  ++n.rank;
}

Status check(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 2, 2, 1, 1));
  const View &x = c.in[0], &idx = c.in[1], &y = c.out[0];
  if (!is_index(idx.dtype)) return bad_call(kName, format("indices are {}", name(idx.dtype)));
  if (x.dtype != y.dtype) return bad_call(kName, "data and output differ in type");
  if (c.ints.size() != 1 || c.ints[0] < 0 || c.ints[0] >= x.rank) return bad_call(kName, "the axis is wrong");
  int axis = static_cast<int>(c.ints[0]);
  bool fits = y.rank == x.rank - 1 + idx.rank;
  for (int i = 0; fits && i < y.rank; ++i) {
    int64_t want = i < axis ? x.dims[i] : i < axis + idx.rank ? idx.dims[i - axis] : x.dims[i - idx.rank + 1];
    fits = y.dims[i] == want;
  }
  if (!fits)
    return bad_call(kName, format("data {} at indices {} along axis {} are not {}", dims_text(x), dims_text(idx), axis, dims_text(y)));
  return ok();
}

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check(c));
  const View &x = c.in[0], &idx = c.in[1], &y = c.out[0];
  int axis = static_cast<int>(c.ints[0]);
  int64_t bytes = size_of(x.dtype), index_bytes = size_of(idx.dtype);
  auto s = std::make_shared<State>();
  Nest inner;
  inner.operands = 2;
  for (int i = axis + 1; i < x.rank; ++i) {
    int r = inner.rank++;
    inner.dims[r] = x.dims[i];
    inner.steps[0][r] = x.strides[i] * bytes;
    inner.steps[1][r] = y.strides[i + idx.rank - 1] * bytes;
  }
  s->block_bytes = inner.count() * bytes;
  s->outer.operands = 3;
  for (int i = 0; i < axis; ++i) add_axis(s->outer, x.dims[i], x.strides[i] * bytes, 0, y.strides[i] * bytes);
  for (int i = 0; i < idx.rank; ++i)
    add_axis(s->outer, idx.dims[i], 0, idx.strides[i] * index_bytes, y.strides[axis + i] * bytes);
  s->outer.simplify();
  if (s->outer.rank == 0) add_axis(s->outer, 1, 0, 0, 0);
  s->rows = s->block_bytes == 0 ? 0 : s->outer.count();
  s->axis_size = x.dims[axis];
  s->axis_step = x.strides[axis] * bytes;
  s->block = plan_copy(inner, bytes);
  auto& b = s->block;
  bool one_row = b.kind == CopyPlan::Kind::rows && b.pieces == 1 && b.units == 1;
  s->kind = s->block_bytes == bytes ? State::Block::element : one_row ? State::Block::row : State::Block::any;
  if (s->kind == State::Block::any) s->splits = std::max<int64_t>(1, b.chunks());
  Work w;
  w.chunks = chunks_for(s->rows * s->splits, s->block_bytes / s->splits);
  w.state = std::move(s);
  return w;
}

// Loads index i of a row of indices, wrapped; -1 when out of range.
template <class I>
inline int64_t wrapped(const std::byte* p, int64_t size) {
  int64_t v = load<I>(p);
  if (v < 0) v += size;
  return static_cast<uint64_t>(v) < static_cast<uint64_t>(size) ? v : -1;
}

template <class I>
Error out_of_range(const std::byte* p, const State& s) {
  return error(code::kRunFailed, format("Gather: index {} is outside -{}..{}", static_cast<int64_t>(load<I>(p)),
                                        s.axis_size, s.axis_size - 1));
}

// n positions along the last axis of the outer nest. Returns the first bad one, or -1.
template <class I, class MoveBlock>
int64_t gather_line(const State& s, const std::byte* data, const std::byte* idx, std::byte* to, int64_t n, MoveBlock move) {
  int last = s.outer.rank - 1;
  int64_t step0 = s.outer.steps[0][last], step1 = s.outer.steps[1][last], step2 = s.outer.steps[2][last];
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = wrapped<I>(idx + i * step1, s.axis_size);
    if (at < 0) return i;
    move(data + i * step0 + at * s.axis_step, to + i * step2);
  }
  return -1;
}

template <class I, class MoveBlock>
Status gather_rows(const State& s, const Call& c, Span span, MoveBlock move) {
  int last = s.outer.rank - 1;
  int64_t per = s.outer.dims[last];
  Walker w(s.outer, last, span.begin / per);
  int64_t k = span.begin % per;
  for (int64_t u = span.begin; u < span.end;) {
    int64_t n = std::min(per - k, span.end - u);
    const std::byte* idx = c.in[1].data + w.at[1] + k * s.outer.steps[1][last];
    int64_t bad = gather_line<I>(s, c.in[0].data + w.at[0] + k * s.outer.steps[0][last], idx,
                                 c.out[0].data + w.at[2] + k * s.outer.steps[2][last], n, move);
    if (bad >= 0) return out_of_range<I>(idx + bad * s.outer.steps[1][last], s);
    u += n;
    k = 0;
    w.next();
  }
  return ok();
}

template <class I>
Status run_typed(const State& s, const Call& c, Span span) {
  switch (s.kind) {
    case State::Block::element: {
      Status status;
      with_element(s.block_bytes, [&](auto tag) {
        using T = decltype(tag);
        status = gather_rows<I>(s, c, span, [](const std::byte* from, std::byte* to) { store(to, load<T>(from)); });
      });
      return status;
    }
    case State::Block::row:
      return gather_rows<I>(s, c, span, [n = s.block_bytes](const std::byte* from, std::byte* to) { copy_row(to, from, n); });
    case State::Block::any: break;
  }
  if (s.splits == 1)
    return gather_rows<I>(s, c, span, [&](const std::byte* from, std::byte* to) { run_copy(s.block, from, to, 0, s.block.units); });
  for (int64_t u = span.begin; u < span.end; ++u) {
    Walker w(s.outer, s.outer.rank, u / s.splits);
    int64_t at = wrapped<I>(c.in[1].data + w.at[1], s.axis_size);
    if (at < 0) return out_of_range<I>(c.in[1].data + w.at[1], s);
    Span part = chunk_span(s.block.units, s.splits, u % s.splits);
    run_copy(s.block, c.in[0].data + w.at[0] + at * s.axis_step, c.out[0].data + w.at[2], part.begin, part.end);
  }
  return ok();
}

Status run(const Call& c, int64_t chunk) {
  auto& s = *static_cast<const State*>(c.state);
  int64_t units = s.rows * s.splits;
  Span span = chunk_span(units, chunks_for(units, s.block_bytes / s.splits), chunk);
  return c.in[1].dtype == DType::i64 ? run_typed<int64_t>(s, c, span) : run_typed<int32_t>(s, c, span);
}

const Register r({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::move
