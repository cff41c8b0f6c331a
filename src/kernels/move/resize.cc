// move.resize: Resize of any mode; parameters as in resize_taps.h. Nearest of any type is indexed copying.
// Linear and cubic of f32 go axis by axis, outermost first: a weighted sum of slabs of the input makes a
// slab with one axis less, and so on. What does not fit that (other types, axes in different orders of
// memory) is done element by element.
#include <algorithm>

#include "kernels/isa.h"
#include "kernels/move/copy.h"
#include "kernels/move/element_size.h"
#include "kernels/move/resize_taps.h"

namespace ge::kernels::move {
namespace {

constexpr std::string_view kName = "move.resize";

// One axis from the first that is resized to the last that is, in the output's order of memory.
struct Level {
  int64_t in = 1, out = 1, in_step = 0, out_step = 0;  // bytes
  int64_t per = 1;
  bool identity = false;
  bool doubles = false;        // nearest: each position twice
  std::vector<int32_t> index;  // [per][out]
  std::vector<float> weight;   // [per][out]
  int64_t slab = 0;            // elements of the input below this axis, with the inner ones
  bool dense_out = false;      // what lies below one position of the output is contiguous
  int64_t out_slab = 0;        // elements of that
};

using SumRows = void (*)(float* to, const float* const* rows, const float* weights, int64_t per, int64_t n);
using SumGather = void (*)(float* to, const float* from, const int32_t* index, const float* weights, int64_t per, int64_t n);

struct State {
  enum class Kind : uint8_t { copy, nearest, sums, elements } kind = Kind::elements;
  CopyPlan copy;
  std::vector<Taps> axes;        // for elements
  Nest outer;                    // axes outside of the levels; operands in, out
  std::vector<Level> levels;
  int64_t inner = 1;             // contiguous elements below the levels
  int64_t bytes = 4;
  int64_t units = 0, unit_bytes = 1;
  SumRows sum_rows = nullptr;
  SumGather sum_gather = nullptr;
};

template <int kPer>
inline __attribute__((always_inline)) void rows_of(float* __restrict to, const float* const* rows, const float* w, int64_t per, int64_t n) {
  if constexpr (kPer == 2) {
    const float *a = rows[0], *b = rows[1];
    for (int64_t i = 0; i < n; ++i) to[i] = a[i] * w[0] + b[i] * w[1];
  } else if constexpr (kPer == 4) {
    const float *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    for (int64_t i = 0; i < n; ++i) to[i] = (a[i] * w[0] + b[i] * w[1]) + (c[i] * w[2] + d[i] * w[3]);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = rows[0][i] * w[0];
    for (int64_t k = 1; k < per; ++k) {
      const float* r = rows[k];
      for (int64_t i = 0; i < n; ++i) to[i] += r[i] * w[k];
    }
  }
}
inline __attribute__((always_inline)) void sum_rows_body(float* to, const float* const* rows, const float* w, int64_t per, int64_t n) {
  if (per == 2) rows_of<2>(to, rows, w, per, n);
  else if (per == 4) rows_of<4>(to, rows, w, per, n);
  else rows_of<0>(to, rows, w, per, n);
}
inline __attribute__((always_inline)) void sum_gather_body(float* __restrict to, const float* __restrict from, const int32_t* __restrict index,
                                                           const float* __restrict w, int64_t per, int64_t n) {
  if (per == 2) {
    const int32_t* i1 = index + n;
    const float* w1 = w + n;
    for (int64_t i = 0; i < n; ++i) to[i] = from[index[i]] * w[i] + from[i1[i]] * w1[i];
    return;
  }
  for (int64_t i = 0; i < n; ++i) to[i] = from[index[i]] * w[i];
  for (int64_t k = 1; k < per; ++k)
    for (int64_t i = 0; i < n; ++i) to[i] += from[index[k * n + i]] * w[k * n + i];
}

void sum_rows_portable(float* to, const float* const* rows, const float* w, int64_t per, int64_t n) { sum_rows_body(to, rows, w, per, n); }
void sum_gather_portable(float* to, const float* from, const int32_t* index, const float* w, int64_t per, int64_t n) { sum_gather_body(to, from, index, w, per, n); }
#if defined(__x86_64__)
__attribute__((target("avx2"))) void sum_rows_avx2(float* to, const float* const* rows, const float* w, int64_t per, int64_t n) {
  sum_rows_body(to, rows, w, per, n);
}
__attribute__((target("avx2"))) void sum_gather_avx2(float* to, const float* from, const int32_t* index, const float* w, int64_t per, int64_t n) {
  sum_gather_body(to, from, index, w, per, n);
}
#endif

void pick_sums(State& s) {
  s.sum_rows = sum_rows_portable, s.sum_gather = sum_gather_portable;
#if defined(__x86_64__)
  if (isa() >= Isa::avx2) s.sum_rows = sum_rows_avx2, s.sum_gather = sum_gather_avx2;
#endif
}

// Axes ordered by their distance in the output; false when the input's order is another.
bool order_axes(const View& x, const View& y, std::vector<int>& order) {
  for (int i = 0; i < y.rank; ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return magnitude(y.strides[a]) > magnitude(y.strides[b]); });
  uint64_t before = UINT64_MAX;
  for (int a : order) {
    if (x.dims[a] == 1) continue;
    const uint64_t step = magnitude(x.strides[a]);
    if (step > before) return false;
    before = step;
  }
  return true;
}

Level level_of(const Taps& t, int64_t in, int64_t in_step, int64_t out_step) {
  Level l;
  l.in = in, l.out = t.out, l.in_step = in_step, l.out_step = out_step;
  l.per = t.per, l.identity = t.identity;
  l.index.resize(t.index.size()), l.weight.resize(t.weight.size());
  for (int64_t o = 0; o < t.out; ++o)
    for (int64_t k = 0; k < t.per; ++k) {
      l.index[static_cast<size_t>(k * t.out + o)] = static_cast<int32_t>(t.at(o, k));
      l.weight[static_cast<size_t>(k * t.out + o)] = t.weight_at(o, k);
    }
  l.doubles = t.per == 1 && t.out == 2 * in;
  for (int64_t o = 0; l.doubles && o < t.out; ++o) l.doubles = t.at(o, 0) == o / 2;
  return l;
}

// Contiguous elements in the axes order[from..] on both sides; 0 if they are not contiguous.
int64_t contiguous(const View& x, const View& y, const std::vector<int>& order, size_t from) {
  int64_t n = 1;
  for (size_t i = order.size(); i-- > from;) {
    int a = order[i];
    if (x.dims[a] == 1) continue;
    if (x.strides[a] != n || y.strides[a] != n) return 0;
    n *= x.dims[a];
  }
  return n;
}

// Levels, slabs and units; false when the layout does not suit.
bool plan_levels(State& s, const View& x, const View& y) {
  std::vector<int> order;
  if (!order_axes(x, y, order)) return false;
  size_t first = order.size(), last = 0;
  for (size_t i = 0; i < order.size(); ++i)
    if (!s.axes[static_cast<size_t>(order[i])].identity) first = std::min(first, i), last = i;
  s.inner = contiguous(x, y, order, last + 1);
  if (s.inner == 0) last = order.size() - 1, s.inner = 1;
  s.outer.operands = 2;
  for (size_t i = 0; i < first; ++i) {
    int r = s.outer.rank++, a = order[i];
    s.outer.dims[r] = x.dims[a];
    s.outer.steps[0][r] = x.strides[a] * s.bytes, s.outer.steps[1][r] = y.strides[a] * s.bytes;
  }
  for (size_t i = first; i <= last; ++i) {
    int a = order[i];
    s.levels.push_back(level_of(s.axes[static_cast<size_t>(a)], x.dims[a], x.strides[a] * s.bytes, y.strides[a] * s.bytes));
  }
  int64_t slab = s.inner, out_slab = s.inner;
  bool dense_in = true, dense_out = true;
  for (size_t i = s.levels.size(); i-- > 0;) {
    Level& l = s.levels[i];
    l.slab = slab, l.out_slab = out_slab, l.dense_out = dense_out;
    // Sums need the slabs below every level but the last to be contiguous in the input.
    if (s.kind == State::Kind::sums && i + 1 < s.levels.size() && !dense_in) return false;
    dense_in = dense_in && (l.in == 1 || l.in_step == slab * s.bytes);
    dense_out = dense_out && (l.out == 1 || l.out_step == out_slab * s.bytes);
    slab *= l.in, out_slab *= l.out;
  }
  auto& end = s.levels.back();
  if (s.kind == State::Kind::sums && s.inner == 1 && ((end.in > 1 && end.in_step != s.bytes) || (end.out > 1 && end.out_step != s.bytes))) return false;
  int64_t per = s.levels.size() == 1 ? 1 : s.levels[0].out;
  s.units = s.outer.count() * per;
  s.unit_bytes = out_slab / per * s.bytes;
  return true;
}

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_resize(c, kName));
  const View &x = c.in[0], &y = c.out[0];
  auto s = std::make_shared<State>();
  s->bytes = size_of(x.dtype);
  auto p = resize_parameters(c);
  Work w;
  w.chunks = 0;
  if (y.count() == 0) return w;
  bool all_identity = true;
  for (int i = 0; i < x.rank; ++i) {
    s->axes.push_back(resize_taps(p, i, x.dims[i], y.dims[i]));
    all_identity = all_identity && s->axes.back().identity;
  }
  bool crop = p.coordinates == ResizeCoordinates::tf_crop_and_resize;
  if (all_identity) {
    View views[] = {x, y};
    s->kind = State::Kind::copy;
    s->copy = plan_copy(Nest::of(views), s->bytes);
    s->units = s->copy.units, s->unit_bytes = s->copy.unit_bytes;
  } else {
    s->kind = crop ? State::Kind::elements : p.mode == ResizeMode::nearest ? State::Kind::nearest
              : x.dtype == DType::f32 ? State::Kind::sums : State::Kind::elements;
    if (s->kind != State::Kind::elements && !plan_levels(*s, x, y)) {
      s->kind = State::Kind::elements;
      s->levels.clear();
    }
    if (s->kind == State::Kind::elements) s->units = y.count() / y.dims[y.rank - 1], s->unit_bytes = y.dims[y.rank - 1] * 64;
    pick_sums(*s);
  }
  if (s->kind == State::Kind::sums)
    for (auto& l : s->levels) w.scratch += round64(l.slab * 4);
  w.chunks = s->kind == State::Kind::copy ? s->copy.chunks() : chunks_for(s->units, s->unit_bytes);
  w.state = std::move(s);
  return w;
}

// ---- nearest

// The last axis, single elements.
template <class T>
void nearest_line(const Level& l, const std::byte* in, std::byte* out) {
  constexpr int64_t kSize = sizeof(T);
  const int32_t* index = l.index.data();
  bool even = l.in_step == kSize && l.out_step == kSize;
  if constexpr (kSize <= 4) {
    if (even && l.doubles) {
      using Pair = std::conditional_t<kSize == 4, uint64_t, std::conditional_t<kSize == 2, uint32_t, uint16_t>>;
      for (int64_t i = 0; i < l.in; ++i) {
        Pair v = load<T>(in + i * kSize);
        store(out + i * 2 * kSize, static_cast<Pair>(v | v << (8 * kSize)));
      }
      return;
    }
  }
  if (even) {
    for (int64_t o = 0; o < l.out; ++o) store(out + o * kSize, load<T>(in + index[o] * kSize));
  } else {
    for (int64_t o = 0; o < l.out; ++o) store(out + o * l.out_step, load<T>(in + index[o] * l.in_step));
  }
}

// Positions [begin, end) of a level.
void nearest_range(const State& s, size_t level, const std::byte* in, std::byte* out, int64_t begin, int64_t end) {
  const Level& l = s.levels[level];
  bool last = level + 1 == s.levels.size();
  if (last && s.inner == 1) {  // all of it: only levels with others below are cut
    with_element(s.bytes, [&](auto tag) { nearest_line<decltype(tag)>(l, in, out); });
    return;
  }
  for (int64_t o = begin; o < end; ++o) {
    auto at = static_cast<size_t>(o);
    const std::byte* from = in + l.index[at] * l.in_step;
    std::byte* to = out + o * l.out_step;
    // Below the same position of the input comes the same output.
    if (o > begin && l.dense_out && l.index[at] == l.index[at - 1]) copy_row(to, to - l.out_step, l.out_slab * s.bytes);
    else if (last) copy_row(to, from, s.inner * s.bytes);
    else nearest_range(s, level + 1, from, to, 0, s.levels[level + 1].out);
  }
}

// ---- sums

constexpr int64_t kRows = 64;

// Sum of `per` slabs of n floats; more than kRows of them in several steps.
void sum_slabs(const State& s, const Level& l, int64_t o, const std::byte* in, float* to, int64_t n) {
  const float* rows[kRows];
  float weights[kRows];
  for (int64_t k0 = 0; k0 < l.per; k0 += kRows - 1) {
    int64_t m = 0;
    if (k0 > 0) rows[m] = to, weights[m++] = 1;
    for (int64_t k = k0; k < std::min(l.per, k0 + kRows - 1); ++k, ++m) {
      auto at = static_cast<size_t>(k * l.out + o);
      rows[m] = reinterpret_cast<const float*>(in + l.index[at] * l.in_step);
      weights[m] = l.weight[at];
    }
    s.sum_rows(to, rows, weights, m, n);
  }
}

void sums_range(const State& s, size_t level, const std::byte* in, std::byte* out, int64_t begin, int64_t end, std::byte* scratch) {
  const Level& l = s.levels[level];
  bool last = level + 1 == s.levels.size();
  if (last && s.inner == 1) {  // all of it: begin and end cut levels with others below only
    auto* to = reinterpret_cast<float*>(out);
    if (l.identity) copy_row(out, in, l.out * s.bytes);
    else s.sum_gather(to, reinterpret_cast<const float*>(in), l.index.data(), l.weight.data(), l.per, l.out);
    return;
  }
  for (int64_t o = begin; o < end; ++o) {
    const std::byte* from = in + o * l.in_step;
    std::byte* to = out + o * l.out_step;
    auto* slab = reinterpret_cast<float*>(last ? to : scratch);
    if (!l.identity) {
      sum_slabs(s, l, o, in, slab, l.slab);
      from = scratch;
    } else if (last) {
      copy_row(to, from, l.slab * s.bytes);
    }
    if (!last) sums_range(s, level + 1, from, to, 0, s.levels[level + 1].out, scratch + round64(l.slab * 4));
  }
}

// ---- all

void run_elements(const State& s, const Call& c, Span span) {
  const View& y = c.out[0];
  auto p = resize_parameters(c);
  int64_t index[kMaxRank], n = y.dims[y.rank - 1];
  for (int64_t u = span.begin; u < span.end; ++u) {
    int64_t left = u;
    for (int i = y.rank - 2; i >= 0; --i) index[i] = left % y.dims[i], left /= y.dims[i];
    for (int64_t k = 0; k < n; ++k) {
      index[y.rank - 1] = k;
      int64_t at = 0;
      for (int i = 0; i < y.rank; ++i) at += index[i] * y.strides[i];
      resize_element(p, s.axes, c.in[0], index, y.dtype, y.data + at * s.bytes);
    }
  }
}

Status run(const Call& c, int64_t chunk) {
  auto& s = *static_cast<const State*>(c.state);
  if (s.kind == State::Kind::copy) {
    run_copy_chunk(s.copy, c.in[0].data, c.out[0].data, chunk);
    return ok();
  }
  Span span = chunk_span(s.units, chunks_for(s.units, s.unit_bytes), chunk);
  if (s.kind == State::Kind::elements) {
    run_elements(s, c, span);
    return ok();
  }
  // One level is done whole; of more, the positions of the outermost are dealt out.
  int64_t all = s.levels[0].out, per = s.levels.size() == 1 ? 1 : all;
  Walker w(s.outer, s.outer.rank, span.begin / per);
  int64_t o = span.begin % per;
  for (int64_t u = span.begin; u < span.end; w.next(), o = 0) {
    int64_t n = std::min(per - o, span.end - u), end = per == 1 ? all : o + n;
    const std::byte* in = c.in[0].data + w.at[0];
    std::byte* out = c.out[0].data + w.at[1];
    if (s.kind == State::Kind::nearest) nearest_range(s, 0, in, out, o, end);
    else sums_range(s, 0, in, out, o, end, c.scratch);
    u += n;
  }
  return ok();
}

const Register r({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::move
