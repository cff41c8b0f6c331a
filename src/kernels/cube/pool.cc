// vector.pool and vector.global_pool: max and average pooling over 1 to 3 spatial axes, any
// strides; fast for channels-last and for rows that are contiguous (NCHW).
#include "kernels/cube/pool.h"

#include <algorithm>
#include <limits>

#include "base/text.h"

#define GE_TARGET_BODY "kernels/cube/pool-inl.h"
#include "kernels/cube/conv_targets.h"

namespace ge::kernels::cube {
namespace {

constexpr std::string_view kPool = "vector.pool";
constexpr std::string_view kGlobal = "vector.global_pool";

bool has_indices(const Call& call) {
  return call.out.size() > 1 && call.out[1].dtype != DType::none;
}

bool channels_last(const ConvShape& s) { return s.xc == 1 && s.yc == 1 && s.c > 1; }

// A channels-last task of few rows is also cut into blocks of channels.
int64_t channel_blocks(const ConvShape& s) { return s.out_rows() >= 32 ? 1 : (s.c + 63) / 64; }

int64_t pool_units(const Call& call, const ConvShape& s) {
  if (channels_last(s) && !has_indices(call)) return s.out_rows() * channel_blocks(s);
  return s.out_rows() * s.c;
}

int64_t pool_chunks(const Call& call, const ConvShape& s) {
  double row = static_cast<double>(s.out[2]) * static_cast<double>(s.taps());
  if (has_indices(call)) return chunk_count(pool_units(call, s), row * 4 + 20);
  if (channels_last(s)) {
    double vectors = static_cast<double>(s.c) / static_cast<double>(channel_blocks(s)) / 16 + 1;
    return chunk_count(pool_units(call, s), row * vectors + 20);
  }
  double columns = static_cast<double>(s.in[2]) * static_cast<double>(s.k[0] * s.k[1]);
  return chunk_count(pool_units(call, s),
                     columns / 4 + static_cast<double>(s.out[2] * s.k[2]) / 2 + 50);
}

Status check_indices(const Call& call) {
  const View &i = call.out[1], &y = call.out[0];
  if (i.dtype != DType::i64 || i.rank != y.rank || !i.dims || !i.strides ||
      !std::equal(i.dims, i.dims + i.rank, y.dims))
    return error(code::kBadOp, format("{}: the indices must be i64 of the output's shape", kPool));
  if (call.ints[1] != 0)
    return error(code::kBadOp, format("{}: only max pooling has indices", kPool));
  return ok();
}

Result<Work> prepare_pool(const Call& call) {
  GE_TRY(ConvShape s, pool_shape(call, kPool));
  if (call.ints[1] < 0 || call.ints[1] > 2)
    return error(code::kBadOp, format("{}: unknown kind {}", kPool, call.ints[1]));
  if (has_indices(call)) GE_RETURN_IF_ERROR(check_indices(call));
  Work w;
  if (s.empty()) {
    w.chunks = 0;
    return w;
  }
  w.chunks = pool_chunks(call, s);
  w.scratch = (s.in[2] + 2 * s.out[2]) * 4;
  return w;
}

// The position of input element (id, ih, iw) in the indices' numbering of a plane.
int64_t plane_index(const ConvShape& s, bool column_major, int64_t id, int64_t ih, int64_t iw) {
  if (!column_major) return (id * s.in[1] + ih) * s.in[2] + iw;
  // The first of the operand's own axes runs fastest; missing leading axes have index 0.
  return s.rank == 3 ? id + s.in[0] * (ih + s.in[1] * iw) : s.rank == 2 ? ih + s.in[1] * iw : iw;
}

void max_with_index(const Call& call, const ConvShape& s, int64_t n, int64_t c,
                    const int64_t o[3]) {
  bool column_major =
      call.ints.size() > static_cast<size_t>(2 + 5 * s.rank) && call.ints[2 + 5 * s.rank] == 1;
  TapRange r[3];
  for (int a = 0; a < 3; ++a) r[a] = valid_taps(s, a, o[a]);
  auto input = [&](int a, int64_t tap) {
    return o[a] * s.stride[a] - s.pad[a] + tap * s.dilation[a];
  };
  const float* x = call.in[0].as<float>() + n * s.xn + c * s.xc;
  float best = -std::numeric_limits<float>::infinity();
  int64_t at = 0;
  bool found = false;
  for (int64_t kd = r[0].first; kd < r[0].last; ++kd)
    for (int64_t kh = r[1].first; kh < r[1].last; ++kh)
      for (int64_t kw = r[2].first; kw < r[2].last; ++kw) {
        int64_t id = input(0, kd), ih = input(1, kh), iw = input(2, kw);
        float v = x[id * s.xs[0] + ih * s.xs[1] + iw * s.xs[2]];
        if (found && !(v > best || (v != v && best == best))) continue;
        best = v, found = true;
        at = plane_index(s, column_major, id, ih, iw);
      }
  RowStrides is = row_strides(call.out[1]);
  call.out[0].as<float>()[n * s.yn + c * s.yc + o[0] * s.ys[0] + o[1] * s.ys[1] + o[2] * s.ys[2]] =
      best;
  call.out[1]
      .as<int64_t>()[n * is.n + c * is.c + o[0] * is.s[0] + o[1] * is.s[1] + o[2] * is.s[2]] =
      (n * s.c + c) * s.in[0] * s.in[1] * s.in[2] + at;
}

Status run_pool(const Call& call, int64_t chunk) {
  PoolTask t;
  t.s = pool_shape_unchecked(call);
  t.kind = static_cast<PoolKind>(call.ints[1]);
  t.x = call.in[0].as<float>();
  t.y = call.out[0].as<float>();
  const ConvShape& s = t.s;
  Range r = piece(pool_units(call, s), chunk, pool_chunks(call, s));
  if (has_indices(call)) {
    for (int64_t i = r.begin; i < r.end; ++i) {
      int64_t nc = i / (s.out[0] * s.out[1]);
      int64_t o[3] = {i / s.out[1] % s.out[0], i % s.out[1], 0};
      for (; o[2] < s.out[2]; ++o[2]) max_with_index(call, s, nc / s.c, nc % s.c, o);
    }
  } else if (channels_last(s)) {
    int64_t blocks = channel_blocks(s);
    for (int64_t i = r.begin; i < r.end; ++i) {
      int64_t row = i / blocks;
      Range c = piece((s.c + 15) / 16, i % blocks, blocks);
      GE_ON_ISA(pool_row_channels_last)
      (t, row / (s.out[0] * s.out[1]), row / s.out[1] % s.out[0], row % s.out[1], c.begin * 16,
       std::min(s.c, c.end * 16));
    }
  } else {
    GE_ON_ISA(pool_rows_any)(t, r.begin, r.end, reinterpret_cast<float*>(call.scratch));
  }
  return ok();
}

GlobalTask global_task(const Call& call) {
  const View &x = call.in[0], &y = call.out[0];
  GlobalTask t;
  t.max = call.ints[0] == 0;
  t.n = x.dims[0], t.c = x.dims[1];
  t.xn = x.strides[0], t.xc = x.strides[1], t.yn = y.strides[0], t.yc = y.strides[1];
  t.x = x.as<float>(), t.y = y.as<float>();
  for (int a = 2; a < x.rank; ++a) {
    int64_t d = x.dims[a], st = x.strides[a];
    t.pixels *= d;
    if (d == 1) continue;
    if (t.axes && t.strides[t.axes - 1] == d * st) {
      t.dims[t.axes - 1] *= d;
      t.strides[t.axes - 1] = st;
    } else {
      t.dims[t.axes] = d, t.strides[t.axes++] = st;
    }
  }
  if (!t.axes) t.dims[0] = 1, t.strides[0] = 1, t.axes = 1;
  return t;
}

bool channels_last(const GlobalTask& t) { return t.xc == 1 && t.yc == 1 && t.c > 1; }

int64_t global_units(const GlobalTask& t) {
  return channels_last(t) ? t.n * ((t.c + 63) / 64) : t.n * t.c;
}

int64_t global_chunks(const GlobalTask& t) {
  double pixels = static_cast<double>(t.pixels);
  return chunk_count(global_units(t), channels_last(t) ? 6 * pixels + 50 : pixels / 8 + 50);
}

Result<Work> prepare_global(const Call& call) {
  auto bad = [](std::string_view what) {
    return error(code::kBadOp, format("{}: {}", kGlobal, what));
  };
  if (call.in.empty() || call.out.empty()) return bad("needs an input and an output");
  if (call.ints.empty() || call.ints[0] < 0 || call.ints[0] > 1) return bad("unknown kind");
  const View &x = call.in[0], &y = call.out[0];
  if (x.dtype != DType::f32 || y.dtype != DType::f32) return bad("takes f32");
  if (x.rank < 2 || x.rank > kMaxRank || y.rank != x.rank || !x.dims || !y.dims || !x.strides ||
      !y.strides)
    return bad("input and output must have the same axes, at least batch and channels");
  for (int a = 0; a < x.rank; ++a) {
    if (x.dims[a] < 0 || x.dims[a] > kMaxConvNumber || x.strides[a] > (int64_t{1} << 48) ||
        x.strides[a] < -(int64_t{1} << 48))
      return bad("a size or stride is out of range");
    if (y.dims[a] != (a < 2 ? x.dims[a] : 1)) return bad("the output must be [N, C, 1, ...]");
  }
  int64_t count = 1;
  for (int a = 0; a < x.rank; ++a)
    if (!product_within({count, std::max<int64_t>(x.dims[a], 1)}, int64_t{1} << 46))
      return bad("the input is too large");
    else
      count *= std::max<int64_t>(x.dims[a], 1);
  Work w;
  w.chunks = x.dims[0] * x.dims[1] == 0 ? 0 : global_chunks(global_task(call));
  return w;
}

Status run_global(const Call& call, int64_t chunk) {
  GlobalTask t = global_task(call);
  Range r = piece(global_units(t), chunk, global_chunks(t));
  if (!channels_last(t)) {
    GE_ON_ISA(global_planes)(t, r.begin, r.end);
    return ok();
  }
  int64_t blocks = (t.c + 63) / 64;
  for (int64_t i = r.begin; i < r.end; ++i) GE_ON_ISA(global_channels_last)
  (t, i / blocks, i % blocks * 64, std::min(t.c, i % blocks * 64 + 64));
  return ok();
}

// ints: [spatial rank, kind (0 max, 1 average, 2 average that counts padding), k[], stride[],
// dilation[], pad_begin[], pad_end[], storage_order (optional, for the indices)]. in[0] = x [N, C,
// spatial]; out[0] = y; out[1] = i64 indices or absent, max only. A window with no element inside
// the input gives -inf (max, index 0 of its plane) or 0 (average).
const Register pool(
    {.name = kPool, .unit = Unit::vector, .prepare = prepare_pool, .run = run_pool});
// ints: [kind (0 max, 1 average)]. in[0] = x [N, C, spatial]; out[0] = y [N, C, 1, ...].
const Register global_pool(
    {.name = kGlobal, .unit = Unit::vector, .prepare = prepare_global, .run = run_global});

}  // namespace
}  // namespace ge::kernels::cube
