// Ops along one axis that compare or accumulate, any strides. Parameters in ints:
//   ref.TopK    axis, largest; in: x; out: values, indices (i64), either may be absent. Sorted; equal
//               elements in the order of their index; NaN counts as the largest
//   ref.ArgMax  axis, largest (0: ArgMin), last; in: x; out: i64 without the axis, or with size 1.
//               The first NaN wins
//   ref.CumSum  axis, exclusive, reverse, product; in: x. Floats accumulate in double
#include "kernels/move/lines.h"

namespace ge::kernels::move {
namespace {

Result<int> axis_of(const Call& c, std::string_view kernel, size_t parameters) {
  if (c.ints.size() != parameters) return bad_call(kernel, "has a wrong number of parameters");
  if (c.ints[0] < 0 || c.ints[0] >= c.in[0].rank) return bad_call(kernel, format("there is no axis {} in {}", c.ints[0], dims_text(c.in[0])));
  if (!is_number(c.in[0].dtype)) return bad_call(kernel, format("cannot order {}", name(c.in[0].dtype)));
  return static_cast<int>(c.ints[0]);
}

template <class F>
void each_line(const LineSet& s, int64_t chunk, F f) {
  Span span = chunk_span(s.count, s.chunks, chunk);
  Walker w(s.nest, s.nest.rank, span.begin);
  for (int64_t u = span.begin; u < span.end; ++u, w.next()) f(w.at);
}

Work work_of(LineSet s, int64_t scratch = 0) {
  Work w;
  w.chunks = s.chunks;
  w.scratch = scratch;
  w.state = std::make_shared<LineSet>(s);
  return w;
}

// ---- ref.TopK

struct Entry {
  int64_t key, index;
};

Result<Work> prepare_top_k(const Call& c) {
  constexpr std::string_view kName = "ref.TopK";
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 0, 2));
  GE_TRY(int axis, axis_of(c, kName, 2));
  const View& x = c.in[0];
  View values = has_output(c, 0) ? c.out[0] : View{}, indices = has_output(c, 1) ? c.out[1] : View{};
  if (!has_output(c, 0) && !has_output(c, 1)) return bad_call(kName, "has no output");
  if (has_output(c, 0) && values.dtype != x.dtype) return bad_call(kName, "values and input differ in type");
  if (has_output(c, 1) && indices.dtype != DType::i64) return bad_call(kName, "indices are not i64");
  if (!has_output(c, 0)) values = indices;
  if (!has_output(c, 1)) indices = values;
  if (!fits_but_for(x, values, axis, false) || !same_dims(values, indices) || values.dims[axis] > x.dims[axis])
    return bad_call(kName, format("{} cannot be taken of {}: k is at most what the axis has, and other axes stay", dims_text(values), dims_text(x)));
  View views[] = {x, values, indices};
  LineSet s = LineSet::of(views, axis);
  if (s.length[1] == 0) s.chunks = 0;
  return work_of(s, x.dims[axis] * static_cast<int64_t>(sizeof(Entry)));
}

Status run_top_k(const Call& c, int64_t chunk) {
  auto& s = *static_cast<const LineSet*>(c.state);
  DType t = c.in[0].dtype;
  bool largest = c.ints[1] != 0;
  int64_t n = s.length[0], k = s.length[1];
  auto* e = reinterpret_cast<Entry*>(c.scratch);
  auto before = [](const Entry& a, const Entry& b) { return a.key != b.key ? a.key < b.key : a.index < b.index; };
  each_line(s, chunk, [&](const int64_t* at) {
    const std::byte* x = c.in[0].data + at[0];
    for (int64_t i = 0; i < n; ++i) {
      int64_t key = order_key(t, x + i * s.step[0]);
      e[i] = {largest ? ~key : key, i};
    }
    if (k < n && k * 8 > n) std::nth_element(e, e + k, e + n, before), std::sort(e, e + k, before);
    else std::partial_sort(e, e + k, e + n, before);
    for (int64_t i = 0; i < k; ++i) {
      if (has_output(c, 0)) {
        const std::byte* from = x + e[i].index * s.step[0];
        std::copy(from, from + size_of(t), c.out[0].data + at[1] + i * s.step[1]);
      }
      if (has_output(c, 1)) store(c.out[1].data + at[2] + i * s.step[2], e[i].index);
    }
  });
  return ok();
}

// ---- ref.ArgMax

Result<Work> prepare_arg_max(const Call& c) {
  constexpr std::string_view kName = "ref.ArgMax";
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1, 1));
  GE_TRY(int axis, axis_of(c, kName, 3));
  const View &x = c.in[0], &y = c.out[0];
  if (y.dtype != DType::i64) return bad_call(kName, "the output is not i64");
  if (!fits_but_for(x, y, axis, true) || (y.rank == x.rank && y.dims[axis] != 1))
    return bad_call(kName, format("an input {} cannot give an output {}", dims_text(x), dims_text(y)));
  if (x.dims[axis] == 0 && y.count() > 0) return bad_call(kName, "the axis has no elements");
  View views[] = {x, y};
  return work_of(LineSet::of(views, axis));
}

Status run_arg_max(const Call& c, int64_t chunk) {
  auto& s = *static_cast<const LineSet*>(c.state);
  DType t = c.in[0].dtype;
  bool largest = c.ints[1] != 0, last = c.ints[2] != 0;
  each_line(s, chunk, [&](const int64_t* at) {
    int64_t best = 0, best_key = 0;
    for (int64_t i = 0; i < s.length[0]; ++i) {
      const std::byte* p = c.in[0].data + at[0] + i * s.step[0];
      int64_t key = order_key(t, p);
      if (is_float(t) && key == INT64_MAX) {
        best = i;
        break;
      }
      if (!largest) key = ~key;
      if (i == 0 || key > best_key || (last && key == best_key)) best = i, best_key = key;
    }
    store(c.out[0].data + at[1], best);
  });
  return ok();
}

// ---- ref.CumSum

Result<Work> prepare_cum_sum(const Call& c) {
  constexpr std::string_view kName = "ref.CumSum";
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1, 1));
  GE_TRY(int axis, axis_of(c, kName, 4));
  if (!same_dims(c.in[0], c.out[0]) || c.in[0].dtype != c.out[0].dtype) return bad_call(kName, "input and output differ");
  View views[] = {c.in[0], c.out[0]};
  LineSet s = LineSet::of(views, axis);
  if (s.length[0] == 0) s.chunks = 0;
  return work_of(s);
}

template <class T, class Load, class Store>
void accumulate(const Call& c, const LineSet& s, const int64_t* at, Load load_one, Store store_one) {
  bool exclusive = c.ints[1] != 0, reverse = c.ints[2] != 0, product = c.ints[3] != 0;
  T sum = product ? T(1) : T(0);
  for (int64_t k = 0; k < s.length[0]; ++k) {
    int64_t i = reverse ? s.length[0] - 1 - k : k;
    T v = load_one(c.in[0].data + at[0] + i * s.step[0]);
    T next = product ? sum * v : sum + v;
    store_one(c.out[0].data + at[1] + i * s.step[1], exclusive ? sum : next);
    sum = next;
  }
}

Status run_cum_sum(const Call& c, int64_t chunk) {
  auto& s = *static_cast<const LineSet*>(c.state);
  DType t = c.in[0].dtype;
  each_line(s, chunk, [&](const int64_t* at) {
    if (t == DType::f32) {
      accumulate<double>(c, s, at, [](const std::byte* p) { return static_cast<double>(load<float>(p)); },
                         [](std::byte* p, double v) { store(p, static_cast<float>(v)); });
    } else if (is_float(t)) {
      accumulate<double>(c, s, at, [&](const std::byte* p) { return load_f64(t, p); }, [&](std::byte* p, double v) { store_f64(t, p, v); });
    } else {
      // Unsigned, so that overflow wraps.
      accumulate<uint64_t>(c, s, at, [&](const std::byte* p) { return static_cast<uint64_t>(load_i64(t, p)); },
                           [&](std::byte* p, uint64_t v) { store_i64(t, p, static_cast<int64_t>(v)); });
    }
  });
  return ok();
}

const Register registered[] = {
    Register({.name = "ref.TopK", .prepare = prepare_top_k, .run = run_top_k}),
    Register({.name = "ref.ArgMax", .prepare = prepare_arg_max, .run = run_arg_max}),
    Register({.name = "ref.CumSum", .prepare = prepare_cum_sum, .run = run_cum_sum}),
};

}  // namespace
}  // namespace ge::kernels::move
