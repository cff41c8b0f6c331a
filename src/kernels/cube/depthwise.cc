// cube.depthwise: one filter a channel (or several, M = multiplier * C), 1 to 3 spatial axes; and
// the narrow groups of cube.conv. Channels-last operands are read and written in place; others, and
// multipliers, go through a buffer of the input rows that an output row needs, 64 channels at a
// time.
#include "kernels/cube/depthwise.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/text.h"
#include "kernels/cube/bf16.h"
#include "kernels/cube/conv_epilogue.h"
#include "kernels/cube/pack.h"

#define GE_TARGET_BODY "kernels/cube/depthwise-inl.h"
#include "kernels/cube/conv_targets.h"

namespace ge::kernels::cube {
namespace {

constexpr std::string_view kName = "cube.depthwise";
constexpr int64_t kMaxRows = 8;  // input rows of the output rows that are computed together
constexpr int64_t kBlock = 64;  // channels of a block
constexpr int64_t kApart = 2048;  // pixels a multiple of so many bytes apart share two sets of a first-level cache, or one
constexpr int64_t kPackedBytes = 32 << 10;  // of a copy in which they do not,
constexpr int64_t kGap = 16;                // with so many floats between them
constexpr int64_t kSumsBytes = 64 << 10;  // of sums that wait for the vector program

struct State {
  ConvShape s;
  ConvTail tail;
  RowStrides y, residual;
  bool in_place = false;  // x is read where it lies
  bool scatter = false;   // y has no contiguous channels
  bool gather_residual = false;
  bool x16 = false, y16 = false, residual16 = false;  // these are bf16
  bool sums_apart = false;  // y is made from f32 sums in scratch
  int64_t sum_rows = 1;     // output rows of which
  int64_t group = 1;  // channels of a group
  int64_t channel_pieces = 1;
  bool rows_together = false;  // several output rows at once: dw_rows()
  bool pairs = false;          // of two vectors of channels
  int64_t packed_rows = 0;     // output rows whose part of x is copied together; 0: it is read where it lies
  int64_t packed_step = 0;     // floats from pixel to pixel of the copy
  int64_t block = kBlock;  // channels that go down the rows of a chunk together
  std::vector<DepthwiseTile> tiles;
  // Parts of the scratch. The residual has its own: overlapping vectors are computed twice.
  int64_t rows_bytes = 0, input_bytes = 0, output_bytes = 0, residual_bytes = 0;
  int64_t bytes() const { return rows_bytes + input_bytes + output_bytes + residual_bytes; }
};


// What all rows of a task share.
DepthwiseRow geometry(const State& st) {
  const ConvShape& s = st.s;
  const int64_t tile = st.rows_together ? kMaxRowsTile : kMaxTile;
  DepthwiseRow r;
  r.width = s.in[2];
  r.kw = s.k[2], r.stride = s.stride[2], r.dilation = s.dilation[2], r.pad = s.pad[2];
  r.out = s.out[2];
  r.tile_count = (s.out[2] + tile - 1) / tile;
  return r;
}

bool scatters(const ConvShape& s) { return !(s.yc == 1 || s.m == 1); }

// True if a window lies in one plane of the input.
bool one_plane(const ConvShape& s) { return s.k[0] == 1 && s.pad[0] == 0 && (s.out[0] - 1) * s.stride[0] < s.in[0]; }

// The most input rows inside of it that n output rows of a plane read.
int64_t rows_of(const ConvShape& s, int64_t n) { return std::min((n - 1) * s.stride[1] + (s.k[1] - 1) * s.dilation[1] + 1, s.in[1]); }

// True if the input can be copied for several output rows at a time: pack().
bool packs(const State& st) {
  return st.s.m == st.s.c && (st.s.xc == 1 || st.s.c == 1) && !st.scatter && !st.gather_residual && st.group == 1 && one_plane(st.s) &&
         product_within({st.s.in[1], st.s.in[2]}, int64_t{1} << 40);
}

// Chooses packed_rows, and with it the block. bf16 is widened so. Where pixels of x push each other out of the cache
// before the windows that share them are computed, a copy pays if it takes the whole map, in pieces of some lines, and
// if windows share much.
void pack_input(State& st) {
  const ConvShape& s = st.s;
  if (!packs(st) || s.in[1] <= 0 || s.in[2] <= 0) return;
  const int64_t row = s.in[2] * 4, all = rows_of(s, s.out[1]), fits = kPackedBytes / (all * row) - kGap;
  const bool collides = s.xs[2] * 4 % kApart == 0 && s.in[2] >= 4;
  if (!st.x16 && !(collides && fits >= kBlock && s.k[1] * s.k[2] >= 4 * s.stride[1] * s.stride[2])) return;
  st.block = std::clamp<int64_t>(fits / 16, 2, panels(s.m)) * 16;
  st.packed_step = st.block + kGap;
  const int64_t most = kPackedBytes / row / st.packed_step;  // input rows
  st.packed_rows = all <= most ? s.out[1] : 1;
  if (all > most)
    while (rows_of(s, st.packed_rows + 1) <= most) ++st.packed_rows;
  st.input_bytes = round64(rows_of(s, st.packed_rows) * row * st.packed_step);
}

// True if dw_rows() computes this: then no tile has more than one column outside of the input.
bool takes_rows_together(const State& st) {
  const ConvShape& s = st.s;
  bool window = s.k[1] == 3 && s.k[2] == 3 && s.dilation[1] == 1 && s.dilation[2] == 1 &&
                s.stride[1] == s.stride[2] && s.stride[1] <= 2;
  int64_t right = (s.out[2] - 1) * s.stride[2] - s.pad[2] + 3 - s.in[2];
  return one_plane(s) && st.group == 1 && st.in_place && !st.scatter && !st.gather_residual && window && s.pad[2] <= 1 && right <= 1;
}

// True if two vectors of channels at a time are faster: what an output row reads of x is far apart.
bool takes_pairs(const State& st) {
  const ConvShape& s = st.s;
  return st.rows_together && st.packed_rows == 0 && s.out[2] >= kMinPairsTile && s.xs[2] * s.stride[2] * 4 % kApart == 0;
}

// Fills st; the numbers are known to be sane.
Status plan(const Call& call, State& st, std::string_view kernel) {
  const ConvShape& s = st.s;
  st.y = pixel_strides(s, row_strides(call.out[0]));
  if (present(call, 3)) st.residual = pixel_strides(s, row_strides(call.in[3]));
  st.x16 = call.in[0].dtype == DType::bf16, st.y16 = call.out[0].dtype == DType::bf16;
  st.residual16 = present(call, 3) && call.in[3].dtype == DType::bf16;
  st.scatter = scatters(s);
  st.sums_apart = st.scatter || (st.y16 && st.tail.program);
  st.gather_residual = present(call, 3) && (st.scatter || st.residual16 || !(st.residual.c == 1 || s.m == 1));
  st.in_place = s.m == s.c && (s.xc == 1 || s.c == 1) && (!st.x16 || packs(st));
  if (st.in_place && !st.scatter && !st.gather_residual) {
    // With tall windows, few enough that an input row is still in the first level cache when the
    // next output row needs it; else all.
    int64_t bytes =
        std::min<int64_t>(s.k[0] * s.k[1] + 1, 1 << 10) * s.in[2] * 64;  // of 16 channels
    st.block = s.k[0] * s.k[1] < 7 ? panels(s.m) * 16 : std::max<int64_t>(2, 40960 / bytes) * 16;
  }
  st.rows_together = takes_rows_together(st);
  pack_input(st);
  st.pairs = takes_pairs(st);
  st.sum_rows = st.rows_together ? 3 : 1;
  if (st.sums_apart && !st.scatter && !st.gather_residual)
    st.block = std::clamp<int64_t>(kSumsBytes / 64 / s.out[2] / st.sum_rows, 1, std::max<int64_t>(1, st.block / 16)) * 16;
  // Kept while there are few; in wide rows the arithmetic is soon forgotten.
  DepthwiseRow r = geometry(st);
  if (r.tile_count <= 256)
    for (int64_t i = 0; i < r.tile_count; ++i) st.tiles.push_back(depthwise_tile(r, i));
  int64_t window_rows = s.k[0] * s.k[1];
  if (!product_within({window_rows, s.in[2], kBlock * 4}, int64_t{1} << 40) ||
      !product_within({window_rows, 16}, int64_t{1} << 40))
    return error(code::kTooLarge, format("{}: the window is too large", kernel));
  st.rows_bytes = round64((window_rows + kMaxRows) * 16);
  if (!st.in_place) st.input_bytes = round64(window_rows * s.in[2] * kBlock * 4);
  if (st.sums_apart) st.output_bytes = round64(st.sum_rows * s.out[2] * std::max(kBlock, st.block) * 4);
  if (st.gather_residual) st.residual_bytes = round64(s.out[2] * kBlock * 4);
  // Few rows: cut the channels as well.
  int64_t blocks = (s.m + kBlock - 1) / kBlock;
  st.channel_pieces = s.out_rows() >= 64 ? 1 : std::min(blocks, 64 / s.out_rows());
  return ok();
}

int64_t units(const State& st) { return st.s.out_rows() * st.channel_pieces; }

int64_t chunks(const State& st) {
  const ConvShape& s = st.s;
  double vectors = static_cast<double>(s.m) / static_cast<double>(st.channel_pieces) / 16 + 0.5;
  double pixel = vectors * (static_cast<double>(s.taps() * st.group) + 2 + 16 * st.tail.cycles);
  if (!st.in_place) pixel += vectors * static_cast<double>(s.taps()) * 4;
  return chunk_count(units(st), pixel * static_cast<double>(s.out[2]) + 50);
}

// Copies one input row, output channels [m0, m0 + n) of it, to dst [width][n].
template <class X>
void gather_row(const ConvShape& s, const X* x, int64_t m0, int64_t n, float* dst) {
  int64_t multiplier = s.m / s.c;
  for (int64_t j = 0; j < n; ++j) {
    const X* p = x + (m0 + j) / multiplier * s.xc;
    for (int64_t i = 0; i < s.in[2]; ++i) dst[i * n + j] = as_f32(p[i * s.xs[2]]);
  }
}

// A worker's part of a chunk: channels [m0, m0 + n), row after row. `row` holds what all rows
// share.
struct Strip {
  const State& st;
  const Call& call;
  int64_t m0, n;
  const float** x;
  const float** w;
  float *input, *output, *residual;
  DepthwiseRow row;
  int64_t first_packed = 0;  // the copy's first input row

  // Input row ih of plane id, at the strip's first channel.
  const float* x_row(int64_t image, int64_t id, int64_t ih) const {
    const ConvShape& s = st.s;
    if (st.packed_rows) return input + (ih - first_packed) * s.in[2] * st.packed_step;
    return call.in[0].as<float>() + image * s.xn + id * s.xs[0] + ih * s.xs[1] + m0 * s.xc;
  }
};

Strip make_strip(const State& st, const Call& call, int64_t m0, int64_t n) {
  const ConvShape& s = st.s;
  auto** x = reinterpret_cast<const float**>(call.scratch);
  auto* input = reinterpret_cast<float*>(call.scratch + st.rows_bytes);
  float* output = input + st.input_bytes / 4;
  Strip p{
      st, call, m0, n, x, x + s.k[0] * s.k[1] + kMaxRows, input, output, output + st.output_bytes / 4,
      geometry(st)};
  Epilogue e = register_epilogue(call, s);
  DepthwiseRow& r = p.row;
  r.x = p.x, r.w = p.w;
  r.x_step = st.packed_rows ? st.packed_step : st.in_place ? s.xs[2] : n;
  r.weight_step = panels(s.m) * 16;
  if (present(call, 2)) r.bias = call.in[2].as<float>() + m0;
  r.y16 = st.y16 && !st.sums_apart;
  r.y_step = st.sums_apart ? n : st.y.s[2];
  r.residual_step = st.gather_residual ? n : st.residual.s[2];
  r.channels = n;
  r.pairs = st.pairs && n >= 32;
  r.group = st.group;
  r.act = e.act, r.lo = e.lo, r.hi = e.hi, r.alpha = e.alpha;
  if (!st.tiles.empty()) r.tiles = st.tiles.data();
  return p;
}

// Copies what the output rows [at.h, at.h + count) read.
void pack(Strip& p, const Pixel& at, int64_t count) {
  const ConvShape& s = p.st.s;
  const View& x = p.call.in[0];
  const int64_t first = at.h * s.stride[1] - s.pad[1], last = first + (count - 1) * s.stride[1] + (s.k[1] - 1) * s.dilation[1];
  const int64_t end = std::min(last + 1, s.in[1]);
  p.first_packed = std::max<int64_t>(first, 0);
  float* to = p.input;
  for (int64_t ih = p.first_packed; ih < end; ++ih) {
    int64_t from = at.n * s.xn + at.d * s.stride[0] * s.xs[0] + ih * s.xs[1] + p.m0 * s.xc;
    for (int64_t w = 0; w < s.in[2]; ++w, from += s.xs[2], to += p.st.packed_step) {
      if (p.st.x16) widen_bf16(x.as<uint16_t>() + from, p.n, to);
      else std::memcpy(to, x.as<float>() + from, static_cast<size_t>(p.n) * 4);
    }
  }
}

// Output rows [at.h, at.h + count) of one plane, together.
void run_rows(Strip& p, const Pixel& at, int64_t count) {
  const State& st = p.st;
  const ConvShape& s = st.s;
  DepthwiseRow& r = p.row;
  const int64_t first = at.h * s.stride[1] - s.pad[1], rows = (count - 1) * s.stride[1] + 3;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t ih = first + i;
    p.x[i] = ih >= 0 && ih < s.in[1] ? p.x_row(at.n, at.d * s.stride[0], ih) : nullptr;
  }
  for (int64_t i = 0; i < 3; ++i) p.w[i] = p.call.in[1].as<float>() + i * 3 * r.weight_step + p.m0;
  const View& out = p.call.out[0];
  const int64_t y_row = st.y.s[1] * size_of(out.dtype);
  std::byte* y = out.data + (pixel_offset(st.y, at) + p.m0 * s.yc) * size_of(out.dtype);
  r.y = st.sums_apart ? static_cast<void*>(p.output) : y;
  r.y_row = st.sums_apart ? s.out[2] * p.n : st.y.s[1];
  if (present(p.call, 3)) {
    r.residual = p.call.in[3].as<float>() + pixel_offset(st.residual, at) + p.m0 * st.residual.c;
    r.residual_row = st.residual.s[1];
  }
  GE_ON_ISA(dw_rows)(r, count);
  if (!st.tail.program) return;
  const int64_t row = (at.n * s.out[0] + at.d) * s.out[1] + at.h;
  for (int64_t i = 0; i < count; ++i)
    finish_tile(st.tail, s, p.call, static_cast<float*>(r.y) + i * r.y_row, r.y_step, (row + i) * s.out[2], s.out[2], p.m0, p.n,
                p.call.scratch + st.bytes(), 1, st.sums_apart ? y + i * y_row : nullptr, st.y.s[2] * size_of(out.dtype));
}

// Points x and w at the kernel rows of output row `at` that lie inside the input; gives their
// number.
int64_t point_rows(Strip& p, const Pixel& at) {
  const ConvShape& s = p.st.s;
  TapRange d = valid_taps(s, 0, at.d), h = valid_taps(s, 1, at.h);
  int64_t rows = 0;
  for (int64_t kd = d.first; kd < d.last; ++kd)
    for (int64_t kh = h.first; kh < h.last; ++kh, ++rows) {
      int64_t id = at.d * s.stride[0] - s.pad[0] + kd * s.dilation[0];
      int64_t ih = at.h * s.stride[1] - s.pad[1] + kh * s.dilation[1];
      if (p.st.in_place) {
        p.x[rows] = p.x_row(at.n, id, ih);
      } else {
        const View& x = p.call.in[0];
        const int64_t offset = at.n * s.xn + id * s.xs[0] + ih * s.xs[1];
        float* dst = p.input + rows * s.in[2] * p.n;
        if (p.st.x16) gather_row(s, x.as<uint16_t>() + offset, p.m0, p.n, dst);
        else gather_row(s, x.as<float>() + offset, p.m0, p.n, dst);
        p.x[rows] = dst;
      }
      p.w[rows] = p.call.in[1].as<float>() +
                  (kd * s.k[1] + kh) * s.k[2] * p.st.group * p.row.weight_step + p.m0;
    }
  return rows;
}

// The residual of an output row as dense f32.
template <class E>
const float* gather(const Strip& p, const E* from) {
  const RowStrides& r = p.st.residual;
  for (int64_t i = 0; i < p.st.s.out[2]; ++i)
    for (int64_t j = 0; j < p.n; ++j) p.residual[i * p.n + j] = as_f32(from[i * r.s[2] + j * r.c]);
  return p.residual;
}

template <class E>
void scatter(const Strip& p, E* y) {
  for (int64_t j = 0; j < p.n; ++j)
    for (int64_t i = 0; i < p.st.s.out[2]; ++i) assign(y[i * p.st.y.s[2] + j * p.st.s.yc], p.output[i * p.n + j]);
}

// Fewer channels than lanes go one pixel at a time: narrower vectors are faster where they are full.
void on_row(const DepthwiseRow& r) {
#if defined(__x86_64__)
  if (isa() == Isa::avx512 && r.channels < 16 && r.channels >= 8) return avx2::dw_row(r);
#endif
  GE_ON_ISA(dw_row)(r);
}

void run_row(Strip& p, const Pixel& at) {
  const State& st = p.st;
  const ConvShape& s = st.s;
  DepthwiseRow& r = p.row;
  r.rows = point_rows(p, at);
  const View& out = p.call.out[0];
  std::byte* y = out.data + (pixel_offset(st.y, at) + p.m0 * s.yc) * size_of(out.dtype);
  r.y = st.sums_apart ? static_cast<void*>(p.output) : y;
  if (present(p.call, 3)) {
    const View& residual = p.call.in[3];
    const int64_t offset = pixel_offset(st.residual, at) + p.m0 * st.residual.c;
    if (!st.gather_residual) r.residual = residual.as<float>() + offset;
    else if (st.residual16) r.residual = gather(p, residual.as<uint16_t>() + offset);
    else r.residual = gather(p, residual.as<float>() + offset);
  }
  on_row(r);
  if (st.tail.program) {
    int64_t row = (at.n * s.out[0] + at.d) * s.out[1] + at.h;
    const bool direct = st.sums_apart && !st.scatter;
    finish_tile(st.tail, s, p.call, static_cast<float*>(r.y), r.y_step, row * s.out[2], s.out[2], p.m0, p.n,
                p.call.scratch + st.bytes(), 1, direct ? y : nullptr, st.y.s[2] * size_of(out.dtype));
  }
  if (st.scatter && st.y16) scatter(p, reinterpret_cast<uint16_t*>(y));
  else if (st.scatter) scatter(p, reinterpret_cast<float*>(y));
}

// How many of the `left` output rows to compute together, at most `most`.
int64_t next_rows(int64_t most, int64_t left) {
  return left == most + 1 && most > 2 ? 2 : std::min(left, most);
}

Result<Work> prepare(const Call& call) {
  GE_TRY(ConvShape s, conv_shape(call, kName, true));
  if (s.groups != s.c) return error(code::kBadOp, format("{}: needs a group a channel", kName));
  return prepare_by_rows(call, s, kName);
}

Status run(const Call& call, int64_t chunk) { return run_by_rows(call, call.state, chunk); }

// in: x [N, C, spatial], packed weights (conv_pack.h), bias [M] or none, residual of y's dims or
// none, operands of the vector program. out: y [N, M, spatial]. ints: [spatial rank, groups = C,
// k[], stride[], dilation[], pad_begin[], act]. floats: clip [lo, hi], leaky [alpha]. blob: a
// vector program or empty.
const Register depthwise({.name = kName, .unit = Unit::cube, .prepare = prepare, .run = run, .operations = conv_operations});

}  // namespace

Result<Work> prepare_by_rows(const Call& call, const ConvShape& s, std::string_view kernel) {
  auto st = std::make_shared<State>();
  st->s = s;
  if (s.groups > 0 && s.c > 0) st->group = s.c / s.groups;
  if (call.in.size() < 2) return error(code::kBadOp, format("{}: needs packed weights", kernel));
  GE_RETURN_IF_ERROR(check_packed(call.in[1], {s.taps(), st->group, panels(s.m) * 16}, kernel));
  GE_TRY(st->tail, conv_tail(call, s, kernel, true, scatters(s) ? DType::f32 : call.out[0].dtype));
  Work w;
  w.chunks = 0;
  if (s.empty()) return w;
  GE_RETURN_IF_ERROR(plan(call, *st, kernel));
  w.chunks = chunks(*st);
  w.scratch = st->bytes() + tail_scratch(st->tail, s.m);
  w.state = std::move(st);
  return w;
}

Status run_by_rows(const Call& call, const void* state, int64_t chunk) {
  const State& st = *static_cast<const State*>(state);
  const ConvShape& s = st.s;
  int64_t height = s.out_rows();
  Range r = piece(units(st), chunk, chunks(st));
  for (int64_t u = r.begin; u < r.end;) {
    Range c = piece(panels(s.m), u / height, st.channel_pieces);
    int64_t first = u % height, count = std::min(height - first, r.end - u),
            m1 = std::min(s.m, c.end * 16);
    for (int64_t m0 = c.begin * 16; m0 < m1; m0 += st.block) {
      Strip p = make_strip(st, call, m0, std::min(st.block, m1 - m0));
      const int64_t most = st.rows_together ? GE_ON_ISA(rows_together)(p.row) : 1;
      Pixel at = pixel_at(s, first * s.out[2]);
      int64_t left = 0;  // output rows whose input is at hand
      for (int64_t i = 0; i < count;) {
        if (left == 0) {
          left = std::min(count - i, s.out[1] - at.h);
          if (st.packed_rows) left = std::min(left, st.packed_rows), pack(p, at, left);
        }
        const int64_t rows = next_rows(most, left);
        rows > 1 || (most > 1 && p.row.pairs) ? run_rows(p, at, rows) : run_row(p, at);
        i += rows, left -= rows, at.h += rows;
        if (at.h == s.out[1]) at.h = 0, ++at.d;
        if (at.d == s.out[0]) at.d = 0, ++at.n;
      }
    }
    u += count;
  }
  return ok();
}

}  // namespace ge::kernels::cube
