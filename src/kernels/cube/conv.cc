// cube.conv: grouped convolution over 1 to 3 spatial axes on the packed-panel microkernel.
//
// The rows of A are the windows of output pixels. Without padding and with contiguous channels they
// are read where x lies; otherwise the input rows of a block of output pixels are copied, with
// borders of zeros, to a buffer [kd][row][column][channel], where a kernel row is one run of KW * C
// floats. No image-wide im2col.
//
// in: x [N, C, spatial] with any strides, packed weights (conv_pack.h; as bf16 pair panels, with an even number of
// channels for each tap, x is rounded to bf16 as well, and x, y and the residual may be bf16), bias [M] or none, residual
// of y's dims or none, operands of the vector program (conv_epilogue.h). out: y [N, M, spatial],
// any strides. ints: [spatial rank, groups, k[], stride[], dilation[], pad_begin[], act]. floats:
// clip [lo, hi], leaky [alpha]. blob: a vector program or empty. in_place: the residual.
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/cube/bf16.h"
#include "kernels/cube/conv_bf16.h"
#include "kernels/cube/conv_pack.h"
#include "kernels/cube/conv_plan.h"
#include "kernels/cube/depthwise.h"
#include "kernels/cube/pack.h"

#define GE_TARGET_BODY "kernels/cube/conv-inl.h"
#include "kernels/cube/conv_targets.h"

namespace ge::kernels::cube {
namespace {

// One chunk at work.
struct Job {
  const Call& call;
  const ConvPlan& p;
  PixelBlock block;
  float* row;
  float* buffer;   // of bf16s where the weights are
  int64_t* rows;
  int64_t* segments;
  float* tile;
  std::byte* program;
};

void fill_buffer(const Job& j, int64_t g) {
  const ConvPlan& p = j.p;
  const ConvShape& s = p.s;
  const float* image = j.call.in[0].as<float>() + g * p.cg * s.xc;
  float* dst = j.buffer;
  p.each_run(j.block, [&](bool inside, int64_t row, int64_t iw, int64_t columns) {
    if (!inside) std::fill_n(dst, columns * p.cg, 0.0f);
    else GE_ON_ISA(copy_row)(s, image + row, p.cg, iw, columns, dst);
    dst += columns * p.cg;
  });
}

// True if the rows of A are given in groups that lie evenly, for the tall tiles of a single panel: runs begin at the
// start of a row of pixels, and a group does not reach into the next one.
bool grouped(const Job& j) { return !j.p.in_place && j.p.panels == 1 && j.block.columns % kRowGroup == 0; }

// Offsets of the rows, or groups of rows, of A and of the runs of K, in the buffer or in x.
void fill_offsets(const Job& j) {
  const ConvPlan& p = j.p;
  const ConvShape& s = p.s;
  int64_t width = p.extent(2, j.block.columns) * p.cp, plane = p.extent(1, j.block.rows) * width;
  int64_t tap[3] = {plane, p.tap_step(1, j.block.rows) * width, p.tap_step(2, j.block.columns) * p.cp};
  if (p.in_place)
    for (int a = 0; a < 3; ++a) tap[a] = s.dilation[a] * s.xs[a];
  int64_t* out = j.segments;
  for (int64_t kd = 0; kd < s.k[0]; ++kd)
    for (int64_t kh = 0; kh < s.k[1]; ++kh)
      for (int64_t kw = 0; kw < (p.run_over_kw ? 1 : s.k[2]); ++kw)
        *out++ = kd * tap[0] + kh * tap[1] + kw * tap[2];
  out = j.rows;
  if (p.in_place) {
    Pixel at = pixel_at(s, j.block.first);
    for (int64_t left = j.block.count; left > 0; at.w = 0) {
      int64_t start = pixel_offset(p.x, {at.n, at.d, at.h, 0}),
              end = std::min(s.out[2], at.w + left);
      left -= end - at.w;
      for (int64_t w = at.w; w < end; ++w) *out++ = start + w * p.x.s[2];
      if (++at.h == s.out[1]) at.h = 0, ++at.d;
      if (at.d == s.out[0]) at.d = 0, ++at.n;
    }
  } else {
    const int64_t rows = grouped(j) ? kRowGroup : 1, step = s.stride[2] * p.cp * rows;
    int64_t start = 0;
    for (int64_t h = 0; h < j.block.rows; ++h, start += s.stride[1] * width)
      for (int64_t w = 0, at = start; w < j.block.columns; w += rows, at += step) *out++ = at;
  }
}

struct FinishContext {
  const Job* job;
  int64_t pixel, channel;
};

void finish(const void* context, float* c, int64_t ldc, int64_t row, int64_t rows, int64_t column,
            int64_t columns) {
  const auto& f = *static_cast<const FinishContext*>(context);
  const Job& j = *f.job;
  std::byte* to = nullptr;
  if (j.p.sums_apart)
    to = j.call.out[0].data + 2 * (pixel_offset(j.p.y, pixel_at(j.p.s, f.pixel)) + row * j.p.y.s[2] + (f.channel + column) * j.p.y.c);
  finish_tile(j.p.tail, j.p.s, j.call, c, ldc, f.pixel + row, rows, f.channel + column, columns,
              j.program, 1, to, 2 * j.p.y.s[2]);
}

// Copies an operand of y's dims at strides r to tile [count][n], or back; pixels from `first` on,
// channels from m0 on. E: float, or uint16_t for bf16.
template <bool kToTile, class E>
void copy_tile(const ConvShape& s, E* data,
               const RowStrides& r, int64_t first, int64_t count, int64_t m0, int64_t n,
               float* tile, int64_t ld) {
  for (int64_t done = 0; done < count;) {
    Pixel at = pixel_at(s, first + done);
    int64_t now = std::min(count - done, s.out[2] - at.w);
    auto* p = data + pixel_offset(r, at) + m0 * r.c;
    for (int64_t m = 0; m < n; ++m)
      for (int64_t i = 0; i < now; ++i) {
        if constexpr (kToTile)
          tile[(done + i) * ld + m] = as_f32(p[i * r.s[2] + m * r.c]);
        else
          assign(p[i * r.s[2] + m * r.c], tile[(done + i) * ld + m]);
      }
    done += now;
  }
}

// The axis whose taps are skipped where they lie outside the input: the outermost one that has several. Taps of
// the ones inside it always take part, with zeros from the buffer.
int outer_axis(const ConvShape& s) { return s.k[0] > 1 ? 0 : 1; }

// The pixels from `first` on, at most `count`, whose rows have the same taps inside the input as the first one.
struct Alike {
  TapRange taps;
  int64_t count;
};
Alike alike(const Job& j, int64_t first, int64_t count) {
  const ConvShape& s = j.p.s;
  const int axis = outer_axis(s);
  if (j.p.in_place) return {{0, s.k[axis]}, count};
  if (axis == 0) return {valid_taps(s, 0, j.block.at.d), count};
  const int64_t width = j.block.columns, skip = first - j.block.first;
  int64_t h = j.block.at.h + skip / width, rows = skip / width + 1;
  const TapRange taps = valid_taps(s, 1, h);
  for (; rows < j.block.rows; ++rows) {
    const TapRange next = valid_taps(s, 1, ++h);
    if (next.first != taps.first || next.last != taps.last) break;
  }
  return {taps, std::min(count, rows * width - skip)};
}

// Pixels [first, first + count) of the block's run, over which y advances evenly, with these taps of
// the outer axis; output channels [n0, n0 + n) of group g. a: the block's first row of A, in bf16
// of that.
void multiply_run(const Job& j, const void* a, int64_t g, int64_t n0, int64_t n, int64_t first,
                  int64_t count, TapRange taps) {
  const ConvPlan& p = j.p;
  const ConvShape& s = p.s;
  int64_t skip = first - j.block.first, m0 = g * p.mg + n0;
  Bf16Block t;
  t.m = count, t.n = n;
  if (p.bf16) t.a16 = static_cast<const uint16_t*>(a);
  else t.a = static_cast<const float*>(a);
  if (p.bf16 && p.in_place && !p.x16)
    t.lda = bf16_row(p.cp);
  else if (p.uniform)
    t.a += p.bf16 ? 0 : skip * p.x.s[2], t.a16 += p.bf16 ? skip * p.x.s[2] : 0, t.lda = p.x.s[2];
  else
    t.row_offset = j.rows + (grouped(j) ? skip / kRowGroup : skip), t.segment_offset = j.segments;
  if (grouped(j)) t.lda = s.stride[2] * p.cp;
  t.segment_k = p.segment_k;
  const int64_t each = p.segments / s.k[outer_axis(s)];  // segments of a tap
  t.segments = each * (taps.last - taps.first);
  if (t.segment_offset) t.segment_offset += each * taps.first;
  t.b_stride = p.k * kPanel;
  const int64_t b_offset = (g * p.panels + n0 / kPanel) * t.b_stride + each * taps.first * p.segment_k * kPanel;
  if (p.bf16) t.b16 = j.call.in[1].as<uint16_t>() + b_offset;
  else t.b = j.call.in[1].as<float>() + b_offset;
  const View& y = j.call.out[0];
  Pixel at = pixel_at(s, first);
  const int64_t y_offset = pixel_offset(p.y, at) + m0 * p.y.c;
  t.ldc = p.scatter || p.sums_apart ? n : p.y.s[2];
  if (p.scatter || p.sums_apart) t.c = j.tile;
  else if (p.y16) t.c16 = y.as<uint16_t>() + y_offset;
  else t.c = y.as<float>() + y_offset;
  t.epilogue = register_epilogue(j.call, s);
  Epilogue& e = t.epilogue;
  if (present(j.call, 2)) e.bias = j.call.in[2].as<float>() + m0;
  if (p.has_residual) {
    const View& r = j.call.in[3];
    const int64_t offset = pixel_offset(p.residual, at) + m0 * p.residual.c;
    if (p.gather_residual) {
      if (p.residual16) copy_tile<true>(s, r.as<const uint16_t>(), p.residual, first, count, m0, n, t.c, t.ldc);
      else copy_tile<true>(s, r.as<const float>(), p.residual, first, count, m0, n, t.c, t.ldc);
      e.residual = t.c, e.ld_residual = t.ldc;
    } else {
      if (p.residual16) t.residual16 = r.as<uint16_t>() + offset;
      else e.residual = r.as<float>() + offset;
      e.ld_residual = p.residual.s[2];
    }
  }
  FinishContext f{&j, first, m0};
  if (p.tail.program) e.finish = finish, e.context = &f;
  if (p.bf16) multiply(t);
  else multiply(static_cast<const Block&>(t));
  if (!p.scatter) return;
  if (p.y16) copy_tile<false>(s, y.as<uint16_t>(), p.y, first, count, m0, n, j.tile, n);
  else copy_tile<false>(s, y.as<float>(), p.y, first, count, m0, n, j.tile, n);
}

// All pixels of the block for output channels [n0, n0 + n) of group g.
void multiply_block(const Job& j, int64_t g, int64_t n0, int64_t n) {
  const ConvPlan& p = j.p;
  const void* a = j.buffer;
  if (p.in_place) {
    const int64_t offset = g * p.cg * p.s.xc + (p.uniform ? pixel_offset(p.x, pixel_at(p.s, j.block.first)) : 0);
    a = j.call.in[0].data + offset * size_of(j.call.in[0].dtype);
  } else if (p.bf16) {
    fill_bf16_buffer(p, j.call.in[0], j.block, g, j.row, reinterpret_cast<uint16_t*>(j.buffer));
  } else {
    fill_buffer(j, g);
  }
  int64_t end = j.block.first + j.block.count;
  for (int64_t first = j.block.first; first < end;) {
    auto [taps, count] = alike(j, first, std::min(end - first, p.even - first % p.even));
    const void* rows = a;
    if (p.sums_apart) count = std::min(count, kBlockRows);
    if (p.bf16 && p.in_place && !p.x16) {
      count = std::min(count, kBlockRows);
      const int64_t skip = first - j.block.first;
      const float* x = static_cast<const float*>(a);
      round_pixels(p, p.uniform ? x + skip * p.x.s[2] : x, p.uniform ? nullptr : j.rows + skip, p.x.s[2], count,
                   reinterpret_cast<uint16_t*>(j.buffer));
      rows = j.buffer;
    }
    multiply_run(j, rows, g, n0, n, first, count, taps);
    first += count;
  }
}

// One of the two.
struct State {
  ConvPlan plan;
  std::shared_ptr<const void> by_rows;  // narrow groups: depthwise.h's state
};

Result<Work> prepare(const Call& call) {
  auto state = std::make_shared<State>();
  const bool bf16 = call.in.size() > 1 && call.in[1].dtype == DType::bf16;
  GE_TRY(ConvShape s, conv_shape(call, "cube.conv", bf16));
  if (narrow_groups(s.c, s.m, s.groups) && call.in.size() > 1 &&
      has_elements(call.in[1], {s.taps(), s.c / s.groups, panels(s.m) * 16})) {
    GE_TRY(Work w, prepare_by_rows(call, s, "cube.conv"));
    state->by_rows = std::exchange(w.state, nullptr);
    w.state = std::move(state);
    return w;
  }
  GE_TRY(state->plan, plan_conv(call, s));
  Work w;
  w.chunks = state->plan.chunks();
  w.scratch = state->plan.scratch();
  w.state = std::move(state);
  return w;
}

Status run(const Call& call, int64_t chunk) {
  const State& state = *static_cast<const State*>(call.state);
  if (state.by_rows) return run_by_rows(call, state.by_rows.get(), chunk);
  const ConvPlan& p = state.plan;
  std::byte* at = call.scratch;
  auto take = [&](int64_t bytes) { return std::exchange(at, at + bytes); };
  auto* row = reinterpret_cast<float*>(take(p.row_bytes));
  auto* buffer = reinterpret_cast<float*>(take(p.buffer_bytes));
  auto* rows = reinterpret_cast<int64_t*>(take(p.rows_bytes));
  auto* segments = reinterpret_cast<int64_t*>(take(p.segments_bytes));
  auto* tile = reinterpret_cast<float*>(take(p.tile_bytes));
  Job j{call, p, p.block(chunk / p.pieces), row, buffer, rows, segments, tile, at};
  if (!p.uniform) fill_offsets(j);
  int64_t part = chunk % p.pieces;
  if (p.s.groups > 1) {
    Range groups = piece(p.s.groups, part, p.pieces);
    for (int64_t g = groups.begin; g < groups.end; ++g) multiply_block(j, g, 0, p.mg);
    return ok();
  }
  int64_t units = (p.panels + p.column_unit - 1) / p.column_unit, width = p.column_unit * kPanel;
  Range columns = piece(units, part, p.pieces);
  int64_t n0 = columns.begin * width;
  multiply_block(j, 0, n0, std::min(p.mg, columns.end * width) - n0);
  return ok();
}

const Register conv(
    {.name = "cube.conv", .unit = Unit::cube, .prepare = prepare, .run = run, .in_place = 1u << 3, .operations = conv_operations});

}  // namespace
}  // namespace ge::kernels::cube
