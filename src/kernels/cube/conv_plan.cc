#include "kernels/cube/conv_plan.h"

#include <cmath>

#include "base/text.h"
#include "kernels/cube/bf16.h"
#include "kernels/cube/pack.h"

namespace ge::kernels::cube {
namespace {

constexpr std::string_view kName = "cube.conv";
// The buffer of input rows should leave half of a 1 MiB second-level cache to B and C.
constexpr int64_t kBufferBytes = 384 << 10;
constexpr int64_t kMinPixels = 48;  // of a piece of a row that is too wide for one buffer
// The most pixels of a block; fewer when its results wait in scratch.
int64_t most_pixels(const ConvPlan& p) { return p.scatter ? 512 : 4096; }


// True if every tap of every window lies inside the input.
bool windows_inside(const ConvShape& s) {
  for (int a = 0; a < 3; ++a)
    if (s.pad[a] != 0 || (s.out[a] - 1) * s.stride[a] + (s.k[a] - 1) * s.dilation[a] >= s.in[a])
      return false;
  return true;
}

// The strides by which consecutive output pixels read x, for windows of one tap.
RowStrides input_step(const ConvShape& s) {
  RowStrides r{s.xn, s.xc, {s.xs[0] * s.stride[0], s.xs[1] * s.stride[1], s.xs[2] * s.stride[2]}};
  return pixel_strides(s, r);
}

// True if the results wait in scratch as f32 [pixel][channel]: y has no contiguous channels, or it is bf16 and the
// residual has none, which is gathered to where the results go.
bool scatters(const Call& call, const ConvShape& s) {
  if (!(s.yc == 1 || s.m == 1)) return true;
  return call.out[0].dtype == DType::bf16 && present(call, 3) && !(row_strides(call.in[3]).c == 1 || s.m == 1);
}

void choose_access(const Call& call, ConvPlan& p) {
  const ConvShape& s = p.s;
  p.bf16 = call.in[1].dtype == DType::bf16;
  p.cg = s.c / s.groups, p.mg = s.m / s.groups, p.cp = p.bf16 ? even(p.cg) : p.cg;
  p.k = s.taps() * p.cp, p.panels = panels(p.mg);
  p.y = pixel_strides(s, row_strides(call.out[0]));
  p.x16 = call.in[0].dtype == DType::bf16, p.y16 = call.out[0].dtype == DType::bf16;
  p.scatter = scatters(call, s);
  p.sums_apart = p.y16 && p.tail.program && !p.scatter;
  p.has_residual = present(call, 3);
  if (p.has_residual) {
    p.residual = pixel_strides(s, row_strides(call.in[3]));
    p.residual16 = call.in[3].dtype == DType::bf16;
    p.gather_residual = p.scatter || !(p.residual.c == 1 || s.m == 1);
  }
  p.even = p.scatter ? s.out_pixels() : even_run(s, p.y);
  if (p.has_residual && !p.gather_residual) p.even = std::min(p.even, even_run(s, p.residual));
  p.in_place = windows_inside(s) && (s.xc == 1 || p.cg == 1);
  if (p.x16 && p.cg != p.cp) p.in_place = false;
  if (p.bf16 && !p.x16 && s.taps() > 1) p.in_place = false;  // each pixel is rounded once, in the buffer
  p.x = p.in_place ? input_step(s) : RowStrides{};
  // One tap: even spacing over the whole output makes it a plain matrix product.
  p.uniform = p.in_place && s.taps() == 1 && even_run(s, p.x) == s.out_pixels();
  p.run_over_kw = s.dilation[2] == 1 && (!p.in_place || s.xs[2] == p.cg || s.k[2] == 1);
  p.segments = s.k[0] * s.k[1] * (p.run_over_kw ? 1 : s.k[2]);
  p.segment_k = p.cp * (p.run_over_kw ? s.k[2] : 1);
}

// A rough time, in cycles, of a cut into `blocks` blocks of `pixels` pixels and `pieces` pieces:
// mean over one to sixteen threads, so that small tasks are cut evenly and large ones are not cut
// for nothing.
double cost(const ConvPlan& p, double blocks, double pixels, double buffer_floats, int64_t pieces,
            int64_t unit) {
  bool split_groups = p.s.groups > 1;
  double units = static_cast<double>(split_groups ? p.s.groups : ceil_div(p.panels, unit));
  double most = std::ceil(units / static_cast<double>(pieces));
  double columns =
      split_groups ? most * static_cast<double>(p.panels) * 16
                   : std::min(most * static_cast<double>(unit), static_cast<double>(p.panels)) * 16;
  double k = static_cast<double>(p.k), groups = split_groups ? most : 1;
  double tile = std::ceil(pixels / 6) * 1.5 + pixels;  // short tiles wait for B
  // A program works on steps of 64 columns: a narrower piece of a wider output wastes lanes.
  double step = std::min<double>(64, static_cast<double>(p.panels) * 16);
  double program = p.tail.cycles * std::max(1.0, step / std::min(columns, 64.0));
  double multiply =
      tile / 1.25 * k * columns / 32 + pixels * columns / 16 * (3 + 16 * program);
  double copy = buffer_floats * groups / 4, weights = k * columns * 4 / 24;
  double chunk = multiply + copy + weights + 2000, sum = 0;
  for (double threads : {1.0, 2.0, 4.0, 8.0, 16.0})
    sum += (threads > 4 ? 4 : threads) * std::ceil(blocks * static_cast<double>(pieces) / threads);
  return chunk * sum;
}

struct Best {
  double cost = -1;
  int64_t rows = 1, pieces = 1, unit = 1;
};

// Tries pieces of the columns or groups for a cut of the pixels into `cuts` parts of each plane or
// run.
void try_pieces(const ConvPlan& p, int64_t cuts, double blocks, double pixels, double buffer_floats,
                Best& best) {
  for (int64_t unit : {4, 2, 1}) {
    if (unit != 1 && (p.s.groups > 1 || p.panels < unit)) continue;
    int64_t units = p.s.groups > 1 ? p.s.groups : ceil_div(p.panels, unit);
    for (int64_t pieces = 1; pieces <= std::min<int64_t>(units, 64);
         pieces = pieces < 4 ? pieces + 1 : pieces * 2) {
      // Narrow pieces run narrow tiles, which are slower.
      double c = cost(p, blocks, pixels, buffer_floats, pieces, unit) * (unit == 4   ? 1
                                                                         : unit == 2 ? 1.03
                                                                                     : 1.15);
      if (best.cost < 0 || c < best.cost * 0.995) best = {c, cuts, pieces, unit};
    }
  }
}

// The next number of cuts to try.
int64_t next_cut(int64_t n) { return n + std::max<int64_t>(1, n / 4); }

void cut_in_place(ConvPlan& p) {
  p.runs = p.s.out_pixels() / p.even;
  Best best;
  int64_t limit = std::min<int64_t>(p.even, 1 << 12);
  int64_t least = ceil_div(p.even, most_pixels(p));
  for (int64_t n = least; n <= std::max(limit, least); n = next_cut(n)) {
    double pixels = static_cast<double>(ceil_div(p.even, n));
    try_pieces(p, n, static_cast<double>(p.runs) * static_cast<double>(n), pixels, 0, best);
    if (n >= 64 * least) break;
  }
  p.run_pieces = best.rows, p.pieces = best.pieces, p.column_unit = best.unit;
  p.max_pixels = ceil_div(p.even, p.run_pieces);
}

double buffer_floats(const ConvPlan& p, int64_t rows, int64_t columns) {
  return static_cast<double>(p.s.k[0]) * static_cast<double>(p.extent(1, rows)) *
         static_cast<double>(p.extent(2, columns)) * static_cast<double>(p.cg);
}

void cut_buffered(ConvPlan& p) {
  const ConvShape& s = p.s;
  constexpr double kBudget = kBufferBytes / 4;
  int64_t height = s.out[1], width = s.out[2], rows = 1;
  // The most rows, or with one row the most columns, whose input fits.
  while (rows < height && rows * width < most_pixels(p) &&
         buffer_floats(p, rows + 1, width) <= kBudget)
    ++rows;
  if (rows == 1 && width > kMinPixels)
    while (ceil_div(width, p.column_pieces) > kMinPixels &&
           (buffer_floats(p, 1, ceil_div(width, p.column_pieces)) > kBudget ||
            width / p.column_pieces > most_pixels(p)))
      p.column_pieces = next_cut(p.column_pieces);
  Best best;
  double planes = static_cast<double>(s.n) * static_cast<double>(s.out[0]);
  if (p.column_pieces > 1 || height == 1) {
    // One row at a time, cut along its width.
    for (int64_t n = p.column_pieces; n <= std::max(p.column_pieces, width / 32); n = next_cut(n)) {
      int64_t columns = ceil_div(width, n);
      try_pieces(p, n, planes * static_cast<double>(height) * static_cast<double>(n),
                 static_cast<double>(columns), buffer_floats(p, 1, columns), best);
      if (n >= 64 * p.column_pieces) break;
    }
    p.row_pieces = height, p.column_pieces = best.rows;
  } else {
    int64_t least = ceil_div(height, rows);
    for (int64_t n = least; n <= height; n = next_cut(n)) {
      int64_t r = ceil_div(height, n);
      try_pieces(p, n, planes * static_cast<double>(n), static_cast<double>(r * width),
                 buffer_floats(p, r, width), best);
      if (n >= 64 * least) break;
    }
    p.row_pieces = best.rows;
  }
  p.pieces = best.pieces, p.column_unit = best.unit;
  int64_t block_rows = ceil_div(height, p.row_pieces), columns = ceil_div(width, p.column_pieces);
  p.buffer_height = p.extent(1, block_rows), p.buffer_width = p.extent(2, columns);
  p.max_pixels = block_rows * columns;
}

Status size_scratch(ConvPlan& p) {
  const ConvShape& s = p.s;
  constexpr int64_t kLimit = int64_t{1} << 42;
  int64_t columns =
      p.s.groups > 1
          ? p.mg
          : std::min(ceil_div(ceil_div(p.panels, p.column_unit), p.pieces) * p.column_unit * 16,
                     p.mg);
  if (!product_within({s.k[0], p.buffer_height, p.buffer_width, p.cg, 4}, kLimit) ||
      !product_within({p.max_pixels, columns, 4}, kLimit) ||
      !product_within({p.segments, 8}, kLimit))
    return error(code::kTooLarge, format("{}: the window needs too much scratch memory", kName));
  if (p.bf16 && !(p.x16 && p.in_place)) {
    p.row_bytes = p.in_place || p.x16 ? 0 : round64(p.buffer_width * p.cg * 6);
    p.buffer_bytes = p.in_place ? round64(std::min(p.max_pixels, kBlockRows) * bf16_row(p.cp) * 2)
                                : round64(s.k[0] * p.buffer_height * p.buffer_width * p.cp * 2);
  } else if (!p.in_place) {
    p.buffer_bytes = round64(s.k[0] * p.buffer_height * p.buffer_width * p.cg * 4);
  }
  if (!p.uniform) {
    p.rows_bytes = round64(p.max_pixels * 8);
    p.segments_bytes = round64(p.segments * 8);
  }
  if (p.scatter) p.tile_bytes = round64(p.max_pixels * columns * 4);
  if (p.sums_apart) p.tile_bytes = round64(std::min(p.max_pixels, kBlockRows) * columns * 4);
  p.program_bytes = tail_scratch(p.tail, std::min<int64_t>(columns, 256));
  return ok();
}

}  // namespace

PixelBlock ConvPlan::block(int64_t i) const {
  PixelBlock b;
  if (in_place) {
    Range r = piece(even, i % run_pieces, run_pieces);
    b.first = i / run_pieces * even + r.begin, b.count = r.end - r.begin;
    return b;
  }
  Range w = piece(s.out[2], i % column_pieces, column_pieces);
  i /= column_pieces;
  Range h = piece(s.out[1], i % row_pieces, row_pieces);
  int64_t plane = i / row_pieces;
  b.at = {plane / s.out[0], plane % s.out[0], h.begin, w.begin};
  b.rows = h.end - h.begin, b.columns = w.end - w.begin;
  b.first = (plane * s.out[1] + h.begin) * s.out[2] + w.begin;
  b.count = b.rows * b.columns;
  return b;
}

Result<ConvPlan> plan_conv(const Call& call, const ConvShape& s) {
  ConvPlan p;
  p.s = s;
  if (call.in.size() < 2) return error(code::kBadOp, format("{}: needs packed weights", kName));
  const bool bf16 = call.in[1].dtype == DType::bf16;
  const int64_t cg = s.c / s.groups;
  GE_RETURN_IF_ERROR(check_packed(call.in[1],
                                  {s.groups, panels(s.m / s.groups) * 16, s.taps(), bf16 ? even(cg) : cg},
                                  kName, bf16 ? DType::bf16 : DType::f32));
  GE_TRY(p.tail, conv_tail(call, s, kName, bf16, scatters(call, s) ? DType::f32 : call.out[0].dtype));
  if (s.empty()) return p;
  choose_access(call, p);
  if (p.in_place)
    cut_in_place(p);
  else
    cut_buffered(p);
  GE_RETURN_IF_ERROR(size_scratch(p));
  return p;
}

}  // namespace ge::kernels::cube
