// move.pad: out 0 = in 0 padded (or cropped, where begin or end is negative) along every axis.
// in 1: the constant, one element of the input's type; absent: zero bytes.
// ints: mode (0 constant, 1 reflect, 2 edge, 3 wrap), then begin for each axis; the end follows from the
// output's size. Any strides. The input may be the part of the output that it is copied to: then only the rest is made.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "kernels/move/copy.h"
#include "kernels/move/element_size.h"
#include "kernels/move/nest.h"
#include "kernels/move/pad_index.h"

namespace ge::kernels::move {
namespace {

constexpr std::string_view kName = "move.pad";

// Works row by row along one axis of the output: what lies inside is copied, the rest is made.
struct State {
  PadMode mode;
  int64_t bytes = 1;
  int rank = 0;
  int64_t in_dims[kMaxRank], in_steps[kMaxRank], begins[kMaxRank];
  Nest rows;           // the output's axes but the row axis; operand 0: out
  int axes[kMaxRank];  // of the input, for each axis of `rows`
  int64_t row_in = 1, row_out = 1, row_begin = 0, row_in_step = 0, row_out_step = 0;
  int64_t units = 0;
  int64_t inside = 0;  // from the output's first element to where the input's goes, bytes
  bool alike = true;   // no axis is cropped and the input steps as the output does
};

// The axis that is contiguous in the output, or the last.
int row_axis(const View& y) {
  for (int i = y.rank - 1; i >= 0; --i)
    if (y.strides[i] == 1 && y.dims[i] > 1) return i;
  return y.rank - 1;
}

// The operands with axes that are not padded merged into the one before, where both lie so. Of a constant mode:
// others look at elements of the padded axis alone.
struct Merged {
  int32_t rank = 0;
  int64_t in[kMaxRank], out[kMaxRank], in_strides[kMaxRank], out_strides[kMaxRank], begins[kMaxRank];
};

Merged merged(const Call& c) {
  const View &x = c.in[0], &y = c.out[0];
  const bool constant = static_cast<PadMode>(c.ints[0]) == PadMode::constant;
  constexpr int64_t kSmall = int64_t{1} << 31;
  Merged m;
  for (int i = 0; i < x.rank; ++i) {
    const int64_t begin = c.ints[static_cast<size_t>(1 + i)];
    const int p = m.rank - 1;
    if (constant && p >= 0 && begin == 0 && x.dims[i] == y.dims[i] && magnitude(m.begins[p]) < uint64_t{kSmall} && x.dims[i] < kSmall &&
        m.in_strides[p] == x.strides[i] * x.dims[i] &&
        m.out_strides[p] == y.strides[i] * y.dims[i]) {
      m.in[p] *= x.dims[i], m.out[p] *= x.dims[i], m.begins[p] *= x.dims[i];
      m.in_strides[p] = x.strides[i], m.out_strides[p] = y.strides[i];
      continue;
    }
    const int r = m.rank++;
    m.in[r] = x.dims[i], m.out[r] = y.dims[i], m.in_strides[r] = x.strides[i], m.out_strides[r] = y.strides[i];
    m.begins[r] = begin;
  }
  return m;
}

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_pad(c, kName));
  const Merged m = merged(c);
  const View x{nullptr, c.in[0].dtype, m.rank, m.in, m.in_strides}, y{nullptr, c.out[0].dtype, m.rank, m.out, m.out_strides};
  auto s = std::make_shared<State>();
  s->mode = static_cast<PadMode>(c.ints[0]);
  s->bytes = size_of(x.dtype);
  s->rank = x.rank;
  s->rows.operands = 1;
  int row = row_axis(y);
  for (int i = 0; i < x.rank; ++i) {
    s->in_dims[i] = x.dims[i];
    s->in_steps[i] = x.strides[i] * s->bytes;
    s->begins[i] = m.begins[i];
    s->inside += s->begins[i] * y.strides[i] * s->bytes;
    s->alike &= s->begins[i] >= 0 && s->begins[i] + x.dims[i] <= y.dims[i] && (x.strides[i] == y.strides[i] || x.dims[i] == 1);
    if (i == row) {
      s->row_in = x.dims[i], s->row_out = y.dims[i], s->row_begin = s->begins[i];
      s->row_in_step = s->in_steps[i], s->row_out_step = y.strides[i] * s->bytes;
    } else {
      int r = s->rows.rank++;
      s->axes[r] = i;
      s->rows.dims[r] = y.dims[i];
      s->rows.steps[0][r] = y.strides[i] * s->bytes;
    }
  }
  s->units = y.count() == 0 ? 0 : y.count() / s->row_out;
  Work w;
  w.chunks = chunks_for(s->units, s->row_out * s->bytes);
  w.state = std::move(s);
  return w;
}

template <class T>
void pad_row(const State& s, const std::byte* in, std::byte* out, const std::byte* constant, bool there) {
  constexpr int64_t kSize = sizeof(T);
  int64_t left = in ? std::clamp<int64_t>(s.row_begin, 0, s.row_out) : s.row_out;
  int64_t right = in ? std::clamp<int64_t>(s.row_begin + s.row_in, left, s.row_out) : s.row_out;
  // In runs that walk the input one by one, forward, backward, or not at all.
  auto make = [&](int64_t from, int64_t to) {
    auto source = [&](int64_t i) { return in ? pad_source(s.mode, i - s.row_begin, s.row_in) : -1; };
    while (from < to) {
      const int64_t at = source(from), way = from + 1 < to ? source(from + 1) - at : 0;
      int64_t n = way == 0 ? to - from : way == 1 ? s.row_in - at : way == -1 ? at + 1 : 1;
      n = std::min(n, to - from);
      const std::byte* p = at < 0 ? constant : in + at * s.row_in_step;
      for (int64_t i = 0; i < n; ++i) store(out + (from + i) * s.row_out_step, load<T>(p + i * way * s.row_in_step));
      from += n;
    }
  };
  auto fill = [&](int64_t from, int64_t to) {
    T v = load<T>(constant);
    for (int64_t i = from; i < to; ++i) store(out + i * kSize, v);
  };
  bool plain = s.mode == PadMode::constant && s.row_out_step == kSize;
  plain ? fill(0, left) : make(0, left);
  if (right > left && !there) {
    const std::byte* p = in + (left - s.row_begin) * s.row_in_step;
    if (s.row_in_step == kSize && s.row_out_step == kSize) copy_row(out + left * kSize, p, (right - left) * kSize);
    else
      for (int64_t i = left; i < right; ++i) store(out + i * s.row_out_step, load<T>(p + (i - left) * s.row_in_step));
  }
  plain ? fill(right, s.row_out) : make(right, s.row_out);
}

Status run(const Call& c, int64_t chunk) {
  auto& s = *static_cast<const State*>(c.state);
  static constexpr std::array<std::byte, 16> kZero{};
  const std::byte* constant = has_input(c, 1) ? c.in[1].data : kZero.data();
  Span span = chunk_span(s.units, chunks_for(s.units, s.row_out * s.bytes), chunk);
  const bool made_there = s.alike && c.in[0].data == c.out[0].data + s.inside;
  Walker w(s.rows, s.rows.rank, span.begin);
  for (int64_t u = span.begin; u < span.end; ++u, w.next()) {
    const std::byte* in = c.in[0].data;
    bool there = made_there;
    for (int i = 0; i < s.rows.rank && in; ++i) {
      int axis = s.axes[i];
      const int64_t from = w.index[i] - s.begins[axis], at = pad_source(s.mode, from, s.in_dims[axis]);
      there &= at == from;
      in = at < 0 ? nullptr : in + at * s.in_steps[axis];
    }
    // A constant pad of an axis without elements has no row to look at.
    if (s.row_in == 0) in = nullptr;
    with_element(s.bytes, [&](auto tag) { pad_row<decltype(tag)>(s, in, c.out[0].data + w.at[0], constant, there); });
  }
  return ok();
}

const Register r({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::move
