// Indexed moves of whole blocks, cut so that no two chunks write one place:
//   move.gather_nd         ints [batch_dims]; in: data, indices
//   move.scatter_nd        ints [reduction]; in: data, indices, updates. Data may be the output itself.
//                          A chunk owns a range of rows of the output: it copies them, then applies the
//                          updates that fall into them, in their order
//   move.gather_elements   ints [axis]; in: data, indices
//   move.scatter_elements  ints [axis, reduction]; in: data, indices, updates. A chunk owns lines along axis
#include <cstring>
#include <optional>

#include "kernels/move/copy.h"
#include "kernels/move/element_size.h"
#include "kernels/move/reduce_element.h"

namespace ge::kernels::move {
namespace {

// Tuples of indices as positions in data.
struct Tuples {
  Nest outer;               // the axes of the indices but the last; operands: indices, block, data (batch axes)
  int64_t k = 0, tuple_step = 0;
  int64_t sizes[kMaxRank], steps[kMaxRank], rows[kMaxRank];  // data axes that tuples name; rows: flat weight
  CopyPlan block;           // operand 0, 1 as the kernel copies
  int64_t block_bytes = 0;
  DType dtype, index_type;
};

Tuples tuples_of(const View& data, const View& idx, const View& block, int batch, bool from_data) {
  Tuples t;
  int64_t bytes = size_of(data.dtype), index_bytes = size_of(idx.dtype);
  t.dtype = data.dtype, t.index_type = idx.dtype;
  int lead = idx.rank - 1;
  t.k = idx.dims[lead], t.tuple_step = idx.strides[lead] * index_bytes;
  t.outer.operands = 3;
  t.outer.rank = lead;
  for (int i = 0; i < lead; ++i) {
    t.outer.dims[i] = idx.dims[i];
    t.outer.steps[0][i] = idx.strides[i] * index_bytes;
    t.outer.steps[1][i] = block.strides[i] * bytes;
    t.outer.steps[2][i] = i < batch ? data.strides[i] * bytes : 0;
  }
  int64_t weight = 1;
  for (int64_t i = t.k - 1; i >= 0; --i) {
    t.sizes[i] = data.dims[batch + i], t.steps[i] = data.strides[batch + i] * bytes, t.rows[i] = weight;
    weight *= data.dims[batch + i];
  }
  Nest inner;
  inner.operands = 2;
  for (int i = batch + static_cast<int>(t.k); i < data.rank; ++i) {
    int r = inner.rank++;
    inner.dims[r] = data.dims[i];
    inner.steps[from_data ? 0 : 1][r] = data.strides[i] * bytes;
    inner.steps[from_data ? 1 : 0][r] = block.strides[lead + i - batch - static_cast<int>(t.k)] * bytes;
  }
  t.block_bytes = inner.count() * bytes;
  t.block = plan_copy(inner, bytes);
  return t;
}

struct Place {
  int64_t offset = 0, row = 0;  // bytes from the start of data; flat number of the tuple
  int64_t bad = 0, size = 0;
  bool good = true;
};
Place place_of(const Tuples& t, const std::byte* tuple) {
  Place p;
  for (int64_t i = 0; i < t.k; ++i) {
    const std::byte* at = tuple + i * t.tuple_step;
    int64_t v = t.index_type == DType::i64 ? load<int64_t>(at) : load<int32_t>(at);
    p.bad = v, p.size = t.sizes[i];
    if (!wrap_index(&v, t.sizes[i])) {
      p.good = false;
      return p;
    }
    p.offset += v * t.steps[i];
    p.row += v * t.rows[i];
  }
  return p;
}

// ---- move.gather_nd

Result<Work> prepare_gather_nd(const Call& c) {
  GE_RETURN_IF_ERROR(check_gather_nd(c, "move.gather_nd"));
  auto t = std::make_shared<Tuples>(tuples_of(c.in[0], c.in[1], c.out[0], static_cast<int>(c.ints[0]), true));
  Work w;
  w.chunks = t->block_bytes == 0 ? 0 : chunks_for(t->outer.count(), t->block_bytes);
  w.state = std::move(t);
  return w;
}
Status run_gather_nd(const Call& c, int64_t chunk) {
  auto& t = *static_cast<const Tuples*>(c.state);
  int64_t rows = t.outer.count();
  Span s = chunk_span(rows, chunks_for(rows, t.block_bytes), chunk);
  Walker w(t.outer, t.outer.rank, s.begin);
  for (int64_t u = s.begin; u < s.end; ++u, w.next()) {
    Place p = place_of(t, c.in[1].data + w.at[0]);
    if (!p.good) return index_error("GatherND", p.bad, p.size);
    run_copy(t.block, c.in[0].data + w.at[2] + p.offset, c.out[0].data + w.at[1], 0, t.block.units);
  }
  return ok();
}

// ---- move.scatter_nd

struct Scatter {
  Tuples tuples;
  Nest rows;            // the axes that tuples name; operands: data, out
  CopyPlan row;         // a block of data to out
  Nest elements;        // block elements for reductions; operands: update, out
  int64_t count = 0;    // rows
  int64_t chunks = 0;   // each looks at every tuple, so many tuples mean few chunks
};

Result<Work> prepare_scatter_nd(const Call& c) {
  GE_RETURN_IF_ERROR(check_scatter_nd(c, "move.scatter_nd"));
  const View &x = c.in[0], &y = c.out[0];
  auto s = std::make_shared<Scatter>();
  s->tuples = tuples_of(y, c.in[1], c.in[2], 0, false);
  int64_t bytes = size_of(x.dtype);
  int k = static_cast<int>(s->tuples.k), lead = c.in[1].rank - 1;
  Nest inner;
  s->rows.operands = inner.operands = s->elements.operands = 2;
  for (int i = 0; i < x.rank; ++i) {
    Nest& n = i < k ? s->rows : inner;
    int r = n.rank++;
    n.dims[r] = x.dims[i], n.steps[0][r] = x.strides[i] * bytes, n.steps[1][r] = y.strides[i] * bytes;
    if (i >= k) {
      int e = s->elements.rank++;
      s->elements.dims[e] = x.dims[i];
      s->elements.steps[0][e] = c.in[2].strides[lead + i - k] * bytes, s->elements.steps[1][e] = y.strides[i] * bytes;
    }
  }
  s->row = plan_copy(inner, bytes);
  s->count = s->tuples.block_bytes == 0 ? 0 : s->rows.count();
  constexpr int64_t kLooks = 1 << 20;
  int64_t most = std::max<int64_t>(1, kLooks / std::max<int64_t>(1, s->tuples.outer.count()));
  s->chunks = std::min(chunks_for(s->count, s->tuples.block_bytes), most);
  Work w;
  w.chunks = s->chunks;
  w.state = std::move(s);
  return w;
}

Status run_scatter_nd(const Call& c, int64_t chunk) {
  auto& s = *static_cast<const Scatter*>(c.state);
  auto& t = s.tuples;
  Span own = chunk_span(s.count, s.chunks, chunk);
  if (c.in[0].data != c.out[0].data) {
    Walker w(s.rows, s.rows.rank, own.begin);
    for (int64_t u = own.begin; u < own.end; ++u, w.next())
      run_copy(s.row, c.in[0].data + w.at[0], c.out[0].data + w.at[1], 0, s.row.units);
  }
  int64_t updates = t.outer.count();
  auto reduction = static_cast<Reduction>(c.ints[0]);
  if (updates == 0) return ok();
  Walker w(t.outer, t.outer.rank, 0);
  for (int64_t u = 0; u < updates; ++u, w.next()) {
    Place p = place_of(t, c.in[1].data + w.at[0]);
    if (!p.good) return index_error("ScatterND", p.bad, p.size);
    if (p.row < own.begin || p.row >= own.end) continue;
    const std::byte* from = c.in[2].data + w.at[1];
    std::byte* to = c.out[0].data + p.offset;
    if (reduction == Reduction::none && t.block_bytes == size_of(t.dtype)) {
      std::memcpy(to, from, static_cast<size_t>(t.block_bytes));
    } else if (reduction == Reduction::none) {
      run_copy(t.block, from, to, 0, t.block.units);
    } else {
      Walker e(s.elements, s.elements.rank, 0);
      for (int64_t i = 0, n = s.elements.count(); i < n; ++i, e.next()) reduce_element(t.dtype, reduction, to + e.at[1], from + e.at[0]);
    }
  }
  return ok();
}

// ---- move.gather_elements, move.scatter_elements

// Lines along the axis. Operands of `lines`: data, indices, updates or out, (scatter) out.
struct Lines {
  Nest lines;
  int64_t count = 0, bytes = 1, index_bytes = 8;
  int64_t size = 0, length = 0;        // of data and of the indices along the axis
  int64_t steps[4] = {};               // along the axis
};

void add_line_axis(Nest& n, int64_t dim, std::initializer_list<int64_t> steps) {
  int r = n.rank++, k = 0;
  n.dims[r] = dim;
  for (int64_t s : steps) n.steps[k++][r] = s;
}

Result<Work> prepare_gather_elements(const Call& c) {
  GE_RETURN_IF_ERROR(check_gather_elements(c, "move.gather_elements"));
  const View &x = c.in[0], &idx = c.in[1], &y = c.out[0];
  auto s = std::make_shared<Lines>();
  s->bytes = size_of(x.dtype), s->index_bytes = size_of(idx.dtype);
  s->lines.operands = 3;
  for (int i = 0; i < x.rank; ++i) {
    int64_t a = x.strides[i] * s->bytes, b = idx.strides[i] * s->index_bytes, d = y.strides[i] * s->bytes;
    if (i == c.ints[0]) s->size = x.dims[i], s->length = idx.dims[i], s->steps[0] = a, s->steps[1] = b, s->steps[2] = d;
    else add_line_axis(s->lines, idx.dims[i], {a, b, d});
  }
  s->count = s->length == 0 ? 0 : s->lines.count();
  Work w;
  w.chunks = chunks_for(s->count, s->length * (s->bytes + s->index_bytes));
  w.state = std::move(s);
  return w;
}

template <class I, class T>
int64_t gather_line(const Lines& s, const std::byte* x, const std::byte* idx, std::byte* y) {
  for (int64_t i = 0; i < s.length; ++i) {
    int64_t v = load<I>(idx + i * s.steps[1]);
    if (!wrap_index(&v, s.size)) return i;
    store(y + i * s.steps[2], load<T>(x + v * s.steps[0]));
  }
  return -1;
}

int64_t load_index_at(DType t, const std::byte* p) { return t == DType::i64 ? load<int64_t>(p) : load<int32_t>(p); }

Status run_gather_elements(const Call& c, int64_t chunk) {
  auto& s = *static_cast<const Lines*>(c.state);
  Span span = chunk_span(s.count, chunks_for(s.count, s.length * (s.bytes + s.index_bytes)), chunk);
  Walker w(s.lines, s.lines.rank, span.begin);
  for (int64_t u = span.begin; u < span.end; ++u, w.next()) {
    const std::byte *x = c.in[0].data + w.at[0], *idx = c.in[1].data + w.at[1];
    std::byte* y = c.out[0].data + w.at[2];
    int64_t bad = with_element(s.bytes, [&](auto tag) {
      using T = decltype(tag);
      return c.in[1].dtype == DType::i64 ? gather_line<int64_t, T>(s, x, idx, y) : gather_line<int32_t, T>(s, x, idx, y);
    });
    if (bad >= 0) return index_error("GatherElements", load_index_at(c.in[1].dtype, idx + bad * s.steps[1]), s.size);
  }
  return ok();
}

// Lines of the output; those that the indices do not reach are only copied.
Result<Work> prepare_scatter_elements(const Call& c) {
  GE_RETURN_IF_ERROR(check_scatter_elements(c, "move.scatter_elements"));
  const View &x = c.in[0], &idx = c.in[1], &up = c.in[2], &y = c.out[0];
  auto s = std::make_shared<Lines>();
  s->bytes = size_of(x.dtype), s->index_bytes = size_of(idx.dtype);
  s->lines.operands = 4;
  for (int i = 0; i < x.rank; ++i) {
    int64_t a = x.strides[i] * s->bytes, b = idx.strides[i] * s->index_bytes, u = up.strides[i] * s->bytes, d = y.strides[i] * s->bytes;
    if (i == c.ints[0]) s->size = x.dims[i], s->length = idx.dims[i], s->steps[0] = a, s->steps[1] = b, s->steps[2] = u, s->steps[3] = d;
    else add_line_axis(s->lines, x.dims[i], {a, b, u, d});
  }
  s->count = s->size == 0 ? 0 : s->lines.count();
  Work w;
  w.chunks = chunks_for(s->count, s->size * s->bytes + s->length * s->index_bytes);
  // An axis without elements takes no index at all.
  if (s->size == 0 && idx.count() > 0) w.chunks = 1;
  w.state = std::move(s);
  return w;
}

// Lines next to one another along the last of the other axes; lane steps of the four operands.
struct Run {
  int64_t lanes = 0, reached = 0;      // reached: those that the indices have
  int64_t step[4] = {};
};

// to[v][lane] = reduction(to[v][lane], from[i][lane]) for each i in turn, v the index at [i][lane]. Gives the first bad
// index, or none.
template <class I, class T, class Reduce>
std::optional<int64_t> scatter_run(const Lines& s, const Run& r, const std::byte* idx, const std::byte* from, std::byte* to, Reduce reduce) {
  for (int64_t i = 0; i < s.length; ++i, idx += s.steps[1], from += s.steps[2]) {
    if (r.step[1] == 0) {  // one index for the whole run: rows, as torch's index_add is exported
      int64_t v = load<I>(idx);
      if (!wrap_index(&v, s.size)) return load<I>(idx);
      std::byte* row = to + v * s.steps[3];
      for (int64_t j = 0; j < r.reached; ++j) reduce(row + j * r.step[3], from + j * r.step[2]);
      continue;
    }
    for (int64_t j = 0; j < r.reached; ++j) {
      int64_t v = load<I>(idx + j * r.step[1]);
      if (!wrap_index(&v, s.size)) return load<I>(idx + j * r.step[1]);
      reduce(to + v * s.steps[3] + j * r.step[3], from + j * r.step[2]);
    }
  }
  return std::nullopt;
}

template <class I>
std::optional<int64_t> scatter_run(const Lines& s, const Run& r, DType dtype, Reduction reduction, const std::byte* idx, const std::byte* from, std::byte* to) {
  if (reduction == Reduction::none)
    return with_element(s.bytes, [&](auto tag) {
      using T = decltype(tag);
      return scatter_run<I, T>(s, r, idx, from, to, [](std::byte* a, const std::byte* b) { store(a, load<T>(b)); });
    });
  if (dtype == DType::f32 && reduction == Reduction::add)
    return scatter_run<I, float>(s, r, idx, from, to, [](std::byte* a, const std::byte* b) { store(a, load<float>(a) + load<float>(b)); });
  return scatter_run<I, float>(s, r, idx, from, to, [&](std::byte* a, const std::byte* b) { reduce_element(dtype, reduction, a, b); });
}

// The run of lines from w on, at most `most`.
Run run_at(const Lines& s, const Walker& w, const View& idx, int64_t axis, int64_t most) {
  Run r;
  r.lanes = r.reached = 1;
  bool reached = true;
  for (int i = 0, a = 0; i < s.lines.rank; ++i, ++a) {
    if (a == axis) ++a;
    const int64_t left = idx.dims[a] - w.index[i];
    if (i + 1 < s.lines.rank) {
      reached = reached && left > 0;
      continue;
    }
    r.lanes = std::min(most, s.lines.dims[i] - w.index[i]);
    r.reached = std::clamp<int64_t>(left, 0, r.lanes);
    for (int k = 0; k < 4; ++k) r.step[k] = s.lines.steps[k][i];
  }
  if (!reached) r.reached = 0;
  return r;
}

Status run_scatter_elements(const Call& c, int64_t chunk) {
  auto& s = *static_cast<const Lines*>(c.state);
  const View &idx = c.in[1], &y = c.out[0];
  if (s.size == 0) return index_error("ScatterElements", load_index(idx, 0), 0);
  Span span = chunk_span(s.count, chunks_for(s.count, s.size * s.bytes + s.length * s.index_bytes), chunk);
  auto reduction = static_cast<Reduction>(c.ints[1]);
  for (int64_t u = span.begin; u < span.end;) {
    Walker w(s.lines, s.lines.rank, u);
    const Run r = run_at(s, w, idx, c.ints[0], span.end - u);
    u += r.lanes;
    const std::byte* x = c.in[0].data + w.at[0];
    std::byte* out = y.data + w.at[3];
    if (c.in[0].data != y.data)
      with_element(s.bytes, [&](auto tag) {
        for (int64_t i = 0; i < s.size; ++i)
          for (int64_t j = 0; j < r.lanes; ++j) store(out + i * s.steps[3] + j * r.step[3], load<decltype(tag)>(x + i * s.steps[0] + j * r.step[0]));
      });
    if (r.reached == 0) continue;
    const std::byte *from = c.in[2].data + w.at[2], *at = idx.data + w.at[1];
    auto bad = idx.dtype == DType::i64 ? scatter_run<int64_t>(s, r, y.dtype, reduction, at, from, out)
                                       : scatter_run<int32_t>(s, r, y.dtype, reduction, at, from, out);
    if (bad) return index_error("ScatterElements", *bad, s.size);
  }
  return ok();
}

const Register registered[] = {
    Register({.name = "move.gather_nd", .prepare = prepare_gather_nd, .run = run_gather_nd}),
    Register({.name = "move.scatter_nd", .prepare = prepare_scatter_nd, .run = run_scatter_nd, .in_place = 1}),
    Register({.name = "move.gather_elements", .prepare = prepare_gather_elements, .run = run_gather_elements}),
    Register({.name = "move.scatter_elements", .prepare = prepare_scatter_elements, .run = run_scatter_elements, .in_place = 1}),
};

}  // namespace
}  // namespace ge::kernels::move
