// Kernel "cube.winograd": operands, parameters and epilogue as of cube.conv, for windows 3x3 (1x3 with one
// spatial axis or a height of 1), stride 1, one group; weights by pack_winograd_weights, whose size
// tells the tile. in_place: the residual.
//
// A chunk takes a block of tiles: their patches are transformed to [frequency][tile][C], then for 64 output
// channels at a time each frequency is a product with its panels, and the outputs are transformed back.
#include "kernels/cube/winograd.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "kernels/cube/conv_epilogue.h"
#include "kernels/cube/pack.h"

#define GE_TARGET_BODY "kernels/cube/winograd-inl.h"
#include "kernels/cube/conv_targets.h"

namespace ge::kernels::cube {
namespace {

constexpr std::string_view kName = "cube.winograd";
constexpr int64_t kColumns = 64;             // output channels at a time
constexpr int64_t kBlockBytes = 640 << 10;   // of patches and products: they should stay in L2
constexpr int64_t kFewest = 24, kMost = 60;  // tiles of a block; with fewer the weights are read too often


Error bad(std::string_view why) { return error(code::kBadOp, format("{}: {}", kName, why)); }

struct Plan {
  ConvShape s;
  ConvTail tail;
  RowStrides x, y, residual;
  int tile = 4;
  bool two_axes = true;
  bool copy_input = false, scatter = false, gather_residual = false;
  int64_t rows = 1, frequencies = 0, panels = 0;
  int64_t phases_h = 1, phases_w = 1;            // images that a dilation makes of one
  int64_t tiles_h = 0, tiles_w = 0, tiles = 0;   // of a plane, phase after phase, and in all
  int64_t blocks = 1, pieces = 1, most = 0;      // most: tiles of a block
  int64_t at_products = 0, at_patch = 0, at_out = 0, at_program = 0, scratch = 0;
};

void cut(Plan& p) {
  int64_t c = p.s.c, each = p.frequencies * 4 * (c + kColumns);
  int64_t fit = std::clamp(kBlockBytes / std::max<int64_t>(each, 1), kFewest, kMost) / 6 * 6;
  p.blocks = ceil_div(p.tiles, fit);
  if (p.blocks > 1) p.blocks += p.blocks % 2;
  p.blocks = std::min(p.blocks, p.tiles);
  // One block: its columns are shared out, each piece transforms the patches for itself.
  if (p.blocks == 1) p.pieces = std::min<int64_t>(2, ceil_div(p.s.m, kColumns));
  p.most = ceil_div(p.tiles, p.blocks);
}

Status size_scratch(Plan& p) {
  const int64_t c = p.s.c;
  if (!product_within({p.frequencies, p.most, c + kColumns, 4}, int64_t{1} << 40)) return error(code::kTooLarge, format("{}: too many channels", kName));
  auto place = [&](int64_t bytes) { return std::exchange(p.scratch, p.scratch + round64(bytes)); };
  place(p.frequencies * p.most * c * 4);
  p.at_products = place(p.frequencies * p.most * kColumns * 4);
  p.at_patch = place(p.copy_input ? p.frequencies * c * 4 : 0);
  p.at_out = place(p.tile * p.tile * kColumns * 4);
  p.at_program = place(tail_scratch(p.tail, kColumns));
  return ok();
}

Result<Work> prepare(const Call& call) {
  auto plan = std::make_shared<Plan>();
  Plan& p = *plan;
  GE_TRY(p.s, conv_shape(call, kName));
  const ConvShape& s = p.s;
  p.two_axes = s.k[1] == 3;
  if (s.groups != 1 || s.k[0] != 1 || (s.k[1] != 3 && s.k[1] != 1) || s.k[2] != 3) return bad("takes windows of 3x3 or 1x3 in one group");
  for (int a = 0; a < 3; ++a)
    if (s.stride[a] != 1) return bad("takes stride 1 alone");
  if (call.in.size() < 2) return bad("needs transformed weights");
  p.panels = panels(s.m);
  for (int tile : {4, 2}) {
    p.tile = tile, p.rows = p.two_axes ? tile + 2 : 1, p.frequencies = p.rows * (tile + 2);
    if (has_elements(call.in[1], {p.frequencies, p.panels * kPanel, s.c})) break;
  }
  GE_RETURN_IF_ERROR(check_packed(call.in[1], {p.frequencies, p.panels * kPanel, s.c}, kName));
  GE_TRY(p.tail, conv_tail(call, s, kName));
  Work w;
  w.chunks = 0;
  if (s.empty()) return w;
  p.x = row_strides(call.in[0]), p.y = row_strides(call.out[0]);
  p.copy_input = s.xc != 1 && s.c != 1;
  p.scatter = p.y.c != 1 && s.m != 1;
  if (present(call, 3)) {
    p.residual = row_strides(call.in[3]);
    p.gather_residual = p.residual.c != 1 && s.m != 1;
  }
  p.phases_h = p.two_axes ? std::min(s.dilation[1], s.out[1]) : 1, p.phases_w = std::min(s.dilation[2], s.out[2]);
  p.tiles_h = p.two_axes ? ceil_div(ceil_div(s.out[1], p.phases_h), p.tile) * p.phases_h : s.out[1];
  p.tiles_w = ceil_div(ceil_div(s.out[2], p.phases_w), p.tile) * p.phases_w;
  if (!product_within({s.n, s.out[0], p.tiles_h, p.tiles_w, 16}, int64_t{1} << 46)) return bad("the output is too large");
  p.tiles = s.n * s.out[0] * p.tiles_h * p.tiles_w;
  cut(p);
  GE_RETURN_IF_ERROR(size_scratch(p));
  w.chunks = p.blocks * p.pieces, w.scratch = p.scratch, w.state = std::move(plan);
  return w;
}

class BlockOfTiles {
 public:
  BlockOfTiles(const Call& call, const Plan& p, Range tiles)
      : call_(call), p_(p), s_(p.s), tiles_(tiles), count_(tiles.end - tiles.begin), epilogue_(register_epilogue(call, p.s)) {}

  void run(Range columns) {
    for (int64_t t = 0; t < count_; ++t) patch(t);
    for (int64_t n0 = columns.begin; n0 < columns.end; n0 += kColumns) {
      const int64_t n = std::min(kColumns, columns.end - n0);
      products(n0, n);
      epilogue_.bias = present(call_, 2) ? call_.in[2].as<float>() + n0 : nullptr;
      for (int64_t t = 0; t < count_; ++t) outputs(t, n0, n);
      if (p_.tail.program && !through_copy()) programs(n0, n);
    }
  }

 private:
  float* scratch(int64_t at) const { return reinterpret_cast<float*>(call_.scratch + at); }
  // May lie outside the output: the phases of a dilation are not all of one size.
  Pixel first_pixel(int64_t t) const {
    int64_t i = tiles_.begin + t;
    auto along = [](int64_t tile, int64_t tiles, int64_t phases, int64_t step) {
      const int64_t each = tiles / phases;
      return tile / each + tile % each * step * phases;
    };
    Pixel at{0, 0, 0, along(i % p_.tiles_w, p_.tiles_w, p_.phases_w, p_.tile)};
    i /= p_.tiles_w;
    at.h = p_.two_axes ? along(i % p_.tiles_h, p_.tiles_h, p_.phases_h, p_.tile) : i % p_.tiles_h;
    i /= p_.tiles_h;
    at.d = i % s_.out[0], at.n = i / s_.out[0];
    return at;
  }
  // Outputs of a tile from `at` on, `step` apart, that lie inside the output.
  int64_t inside(int64_t at, int64_t size, int64_t step) const { return std::clamp<int64_t>(ceil_div(size - at, step), 0, p_.tile); }

  void patch(int64_t t) const {
    const Pixel at = first_pixel(t);
    const int64_t id = at.d - s_.pad[0], ih = at.h - s_.pad[1], iw = at.w - s_.pad[2];
    WinogradPatch w;
    w.row = p_.x.s[1] * s_.dilation[1], w.column = p_.x.s[2] * s_.dilation[2];
    w.at = call_.in[0].as<float>() + at.n * p_.x.n + id * p_.x.s[0] + ih * p_.x.s[1] + iw * p_.x.s[2];
    auto inside = [](int64_t start, int64_t size, int64_t most, int64_t step, int64_t& from, int64_t& to) {
      from = std::clamp<int64_t>(ceil_div(std::max<int64_t>(0, -start), step), 0, most);
      to = std::clamp<int64_t>(ceil_div(std::max<int64_t>(0, size - start), step), from, most);
    };
    inside(ih, s_.in[1], p_.rows, s_.dilation[1], w.r0, w.r1);
    inside(iw, s_.in[2], p_.tile + 2, s_.dilation[2], w.c0, w.c1);
    if (id < 0 || id >= s_.in[0]) w.r0 = w.r1 = 0;
    if (p_.copy_input) {
      // Channels first, then the pixels of the patch: those are the contiguous ones in x.
      float* copy = scratch(p_.at_patch);
      const int64_t width = p_.tile + 2;
      for (int64_t i = w.r0; i < w.r1; ++i)
        for (int64_t c = 0; c < s_.c; ++c)
          for (int64_t j = w.c0; j < w.c1; ++j) copy[(i * width + j) * s_.c + c] = w.at[i * w.row + j * w.column + c * s_.xc];
      w.at = copy, w.row = width * s_.c, w.column = s_.c;
    }
    GE_ON_ISA(winograd_input)(p_.tile, p_.two_axes, w, s_.c, scratch(0) + t * s_.c, count_ * s_.c);
  }

  void products(int64_t n0, int64_t n) const {
    Block b;
    b.m = count_, b.n = n, b.lda = s_.c, b.segment_k = s_.c, b.ldc = kColumns, b.b_stride = s_.c * kPanel;
    for (int64_t f = 0; f < p_.frequencies; ++f) {
      b.a = scratch(0) + f * count_ * s_.c;
      b.b = call_.in[1].as<float>() + (f * p_.panels + n0 / kPanel) * b.b_stride;
      b.c = scratch(p_.at_products) + f * count_ * kColumns;
      multiply(b);
    }
  }

  void outputs(int64_t t, int64_t n0, int64_t n) const {
    const Pixel at = first_pixel(t);
    WinogradOut o;
    o.rows = p_.two_axes ? inside(at.h, s_.out[1], p_.phases_h) : 1;
    o.columns = inside(at.w, s_.out[2], p_.phases_w);
    if (o.rows == 0 || o.columns == 0) return;
    float* y = call_.out[0].as<float>() + pixel_offset(p_.y, at) + n0 * p_.y.c;
    const int64_t row = p_.y.s[1] * p_.phases_h, column = p_.y.s[2] * p_.phases_w;
    o.y = y, o.row = row, o.column = column;
    if (present(call_, 3)) {
      o.residual = call_.in[3].as<float>() + pixel_offset(p_.residual, at) + n0 * p_.residual.c;
      o.residual_row = p_.residual.s[1] * p_.phases_h, o.residual_column = p_.residual.s[2] * p_.phases_w;
    }
    const float* products = scratch(p_.at_products) + t * kColumns;
    if (!through_copy())
      return GE_ON_ISA(winograd_output)(p_.tile, p_.two_axes, products, count_ * kColumns, n, epilogue_, o);
    // Through a dense copy of the tile.
    float* copy = scratch(p_.at_out);
    o.y = copy, o.row = p_.tile * kColumns, o.column = kColumns;
    if (o.residual) {
      each(o, n, [&](int64_t i, int64_t j, int64_t c, float& x) { x = o.residual[i * o.residual_row + j * o.residual_column + c * p_.residual.c]; });
      o.residual = copy, o.residual_row = o.row, o.residual_column = o.column;
    }
    GE_ON_ISA(winograd_output)(p_.tile, p_.two_axes, products, count_ * kColumns, n, epilogue_, o);
    for (int64_t i = 0; p_.tail.program && i < o.rows; ++i)
      finish_tile(p_.tail, s_, call_, copy + i * o.row, o.column, flat(at) + i * p_.phases_h * s_.out[2], o.columns, n0, n,
                  call_.scratch + p_.at_program, p_.phases_w);
    each(o, n, [&](int64_t i, int64_t j, int64_t c, float& x) { y[i * row + j * column + c * p_.y.c] = x; });
  }

  template <class F>
  void each(const WinogradOut& o, int64_t n, F f) const {
    for (int64_t i = 0; i < o.rows; ++i)
      for (int64_t c = 0; c < n; ++c)
        for (int64_t j = 0; j < o.columns; ++j) f(i, j, c, o.y[i * o.row + j * o.column + c]);
  }
  // Else results go straight to y, and programs run on rows of them.
  bool through_copy() const { return p_.scatter || p_.gather_residual; }
  int64_t flat(const Pixel& at) const { return ((at.n * s_.out[0] + at.d) * s_.out[1] + at.h) * s_.out[2] + at.w; }

  // The vector program, on the rows of pixels of tiles that lie side by side.
  void programs(int64_t n0, int64_t n) const {
    for (int64_t t = 0; t < count_;) {
      const Pixel at = first_pixel(t);
      const int64_t each = p_.tiles_w / p_.phases_w, run = std::min(count_ - t, each - (tiles_.begin + t) % p_.tiles_w % each);
      const int64_t pixels = std::clamp<int64_t>(ceil_div(s_.out[2] - at.w, p_.phases_w), 0, run * p_.tile);
      const int64_t rows = p_.two_axes ? inside(at.h, s_.out[1], p_.phases_h) : 1;
      for (int64_t i = 0; pixels > 0 && i < rows; ++i) {
        const Pixel row{at.n, at.d, at.h + i * p_.phases_h, at.w};
        float* y = call_.out[0].as<float>() + pixel_offset(p_.y, row) + n0 * p_.y.c;
        finish_tile(p_.tail, s_, call_, y, p_.y.s[2] * p_.phases_w, flat(row), pixels, n0, n, call_.scratch + p_.at_program, p_.phases_w);
      }
      t += run;
    }
  }

  const Call& call_;
  const Plan& p_;
  const ConvShape& s_;
  Range tiles_;
  int64_t count_;
  Epilogue epilogue_;
};

Status run(const Call& call, int64_t chunk) {
  const Plan& p = *static_cast<const Plan*>(call.state);
  Range groups = piece(ceil_div(p.s.m, kColumns), chunk % p.pieces, p.pieces);
  BlockOfTiles(call, p, piece(p.tiles, chunk / p.pieces, p.blocks)).run({groups.begin * kColumns, std::min(p.s.m, groups.end * kColumns)});
  return ok();
}

// G of one axis: frequency i of a filter of three taps.
void filter(int tile, const double (&g)[3], double* out) {
  const double root = std::sqrt(2.0), half = std::sqrt(0.5);
  if (tile == 2) {
    out[0] = g[0], out[1] = (g[0] + g[1] + g[2]) / 2, out[2] = (g[0] - g[1] + g[2]) / 2, out[3] = g[2];
    return;
  }
  out[0] = g[0];
  out[1] = -(g[0] + half * g[1] + g[2] / 2) / 1.5;
  out[2] = -(g[0] - half * g[1] + g[2] / 2) / 1.5;
  out[3] = (g[0] + root * g[1] + 2 * g[2]) / 6;
  out[4] = (g[0] - root * g[1] + 2 * g[2]) / 6;
  out[5] = g[2];
}

bool has_two_axes(const View& w) { return w.rank >= 4 && w.dims[w.rank - 2] == 3; }

// Kernel "cube.winograd_filters": weights as cube.conv has them for one group, panels [ceil(M / 16)][taps][C][16]
// f32, to those of cube.winograd, [frequencies][ceil(M / 16)][C][16], dense. ints [tile, axes (1 or 2)], or for
// cube.winograd_or_direct [tile, axes, M, images, height, width, dilations of both, kept]: nothing where that computes
// directly; kept: once for all runs.
Result<Work> prepare_filters(const Call& call) {
  if (call.in.size() != 1 || call.out.size() != 1 || (call.ints.size() != 2 && call.ints.size() != 9)) return error(code::kBadOp, "cube.winograd_filters: takes 1 input, 1 output and 2 or 9 integers");
  const int64_t tile = call.ints[0], axes = call.ints[1];
  if ((tile != 2 && tile != 4) || (axes != 1 && axes != 2)) return error(code::kBadOp, "cube.winograd_filters: no such tile");
  const View &w = call.in[0], &u = call.out[0];
  if (w.rank != 4 || w.dtype != DType::f32 || !w.dims || !w.strides || !w.dense() || w.dims[1] != (axes == 2 ? 9 : 3) || w.dims[3] != kPanel)
    return error(code::kBadOp, "cube.winograd_filters: the weights must be dense panels");
  if (!product_within({w.dims[0], w.dims[2], 36 * kPanel}, int64_t{1} << 40)) return error(code::kTooLarge, "cube.winograd_filters: too many channels");
  const int64_t edge = tile + 2;
  GE_RETURN_IF_ERROR(check_packed(u, {axes == 2 ? edge * edge : edge, w.dims[0], w.dims[2], kPanel}, "cube.winograd_filters"));
  Work work;
  if (auto& n = call.ints; n.size() == 9) {
    for (int64_t v : n)
      if (v < 0 || v > kMaxConvNumber) return error(code::kBadOp, "cube.winograd_filters: a size is out of range");
    work.chunks = 0, work.once = n[8] != 0;
    if (!pays_unstored({n[2], w.dims[2], n[3], n[4], n[5], n[6], n[7], axes == 2}, static_cast<int>(tile), work.once)) return work;
  }
  work.chunks = w.count() == 0 ? 0 : std::min(w.dims[0], chunk_count(w.dims[0], static_cast<double>(w.dims[2]) * 80));
  return work;
}

Status run_filters(const Call& call, int64_t chunk) {
  const View& w = call.in[0];
  const int64_t panel_count = w.dims[0], channels = w.dims[2], taps = w.dims[1];
  const int64_t chunks = std::min(panel_count, chunk_count(panel_count, static_cast<double>(channels) * 80));
  Range r = piece(panel_count, chunk, chunks);
  for (int64_t p = r.begin; p < r.end; ++p)
    GE_ON_ISA(winograd_filters)(static_cast<int>(call.ints[0]), call.ints[1] == 2, w.as<float>() + p * taps * channels * kPanel, channels,
                                call.out[0].as<float>() + p * channels * kPanel, panel_count * channels * kPanel);
  return ok();
}

const Register kFilters(Kernel{.name = "cube.winograd_filters", .unit = Unit::vector, .prepare = prepare_filters, .run = run_filters});
const Register kWinograd(Kernel{.name = kName, .unit = Unit::cube, .prepare = prepare, .run = run, .in_place = 1u << 3, .operations = conv_operations});

}  // namespace

int64_t packed_winograd_floats(const View& w, int tile) {
  return (tile + 2) * (has_two_axes(w) ? tile + 2 : 1) * panels(w.dims[0]) * kPanel * w.dims[1];
}

void pack_winograd_weights(const View& w, int tile, float* out) {
  const int a = tile + 2, rows = has_two_axes(w) ? a : 1;
  const int64_t m = w.dims[0], c = w.dims[1], plane = panels(m) * kPanel * c;
  const int64_t step = w.strides[w.rank - 1], row = rows > 1 ? w.strides[w.rank - 2] : 0;
  std::fill_n(out, a * rows * plane, 0.f);
  for (int64_t j = 0; j < m; ++j)
    for (int64_t k = 0; k < c; ++k) {
      const float* g = w.as<float>() + j * w.strides[0] + k * w.strides[1];
      double part[3][6], all[6][6];
      for (int r = 0; r < (rows > 1 ? 3 : 1); ++r) {
        const double taps[3] = {g[r * row], g[r * row + step], g[r * row + 2 * step]};
        filter(tile, taps, part[r]);
      }
      for (int q = 0; q < a; ++q) {
        const double column[3] = {part[0][q], part[1][q], part[2][q]};
        double up[6];
        if (rows > 1) filter(tile, column, up);
        for (int r = 0; r < rows; ++r) all[r][q] = rows > 1 ? up[r] : part[0][q];
      }
      float* at = out + (j / kPanel * c + k) * kPanel + j % kPanel;
      for (int r = 0; r < rows; ++r)
        for (int q = 0; q < a; ++q) at[(r * a + q) * plane] = static_cast<float>(all[r][q]);
    }
}

}  // namespace ge::kernels::cube
