// quantize.rows: in 0 f32 of rank 1 or more, any strides; out 0 i8 of the same dims, out 1 f32 of these but 1 along the
//   last axis: the rows of the last axis as bytes and their scales (quantize_rows.h). Any strides.
// dequantize.rows: the way back: in 0 i8, in 1 f32; out 0 f32.
#include "kernels/move/quantize_rows.h"

#include <cmath>

#include "kernels/move/check.h"
#include "kernels/move/nest.h"

#define GE_TARGET_BODY "kernels/move/quantize_rows-inl.h"
#include "kernels/cube/conv_targets.h"

namespace ge::kernels::move {
namespace {

constexpr std::string_view kQuantize = "quantize.rows", kDequantize = "dequantize.rows";

// Rows of numbers, their bytes and their scales, whose steps are in bytes.
struct Plan {
  Nest nest;                              // of the outer axes
  int64_t width = 0, x_step = 0, q_step = 0, chunks = 0;
};

// The view without its last axis.
View outer(View v) {
  --v.rank;
  return v;
}

Result<Work> prepare(std::string_view kernel, const View& x, const View& q, const View& scale) {
  if (x.dtype != DType::f32 || q.dtype != DType::i8 || scale.dtype != DType::f32) return bad_call(kernel, "takes f32, i8 and scales of f32");
  if (x.rank < 1 || !same_dims(x, q) || scale.rank != x.rank || scale.dim(-1) != 1 || !same_dims(outer(x), outer(scale)))
    return bad_call(kernel, "numbers, bytes and scales do not fit together");
  auto p = std::make_shared<Plan>();
  const View views[] = {outer(x), outer(q), outer(scale)};
  p->nest = Nest::of(views);
  p->width = x.dim(-1), p->x_step = x.stride(-1), p->q_step = q.stride(-1);
  Work w;
  w.chunks = p->chunks = p->nest.count() == 0 ? 0 : chunks_for(p->nest.count(), std::max<int64_t>(1, p->width) * 5);
  if (p->x_step != 1 || p->q_step != 1) w.scratch = p->width * 5;
  w.state = std::move(p);
  return w;
}

Result<Work> prepare_quantize(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kQuantize, 1, 1, 2, 2));
  return prepare(kQuantize, c.in[0], c.out[0], c.out[1]);
}

Result<Work> prepare_dequantize(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kDequantize, 2, 2, 1, 1));
  return prepare(kDequantize, c.out[0], c.in[0], c.in[1]);
}

// Calls f(position of x, of q, of the scale), in bytes, for the rows of a chunk.
template <class F>
void each_row(const Plan& p, int64_t chunk, F f) {
  const Span own = chunk_span(p.nest.count(), p.chunks, chunk);
  Walker w(p.nest, p.nest.rank, own.begin);
  for (int64_t r = own.begin; r < own.end; ++r, w.next()) f(w.at[0], w.at[1], w.at[2]);
}

Status run_quantize(const Call& c, int64_t chunk) {
  const Plan& p = *static_cast<const Plan*>(c.state);
  auto* numbers = reinterpret_cast<float*>(c.scratch);
  auto* bytes = reinterpret_cast<int8_t*>(c.scratch + p.width * 4);
  each_row(p, chunk, [&](int64_t x_at, int64_t q_at, int64_t scale_at) {
    auto* x = reinterpret_cast<const float*>(c.in[0].data + x_at);
    auto* q = reinterpret_cast<int8_t*>(c.out[0].data + q_at);
    if (p.x_step != 1) {
      for (int64_t i = 0; i < p.width; ++i) numbers[i] = x[i * p.x_step];
      x = numbers;
    }
    const float scale = GE_ON_ISA(largest)(x, p.width) / 127;
    *reinterpret_cast<float*>(c.out[1].data + scale_at) = scale;
    int8_t* to = p.q_step == 1 ? q : bytes;
    if (scale > 0 && std::isfinite(scale)) GE_ON_ISA(to_bytes)(x, p.width, scale, to);
    else std::fill_n(to, p.width, int8_t{0});
    if (to != q)
      for (int64_t i = 0; i < p.width; ++i) q[i * p.q_step] = to[i];
  });
  return ok();
}

Status run_dequantize(const Call& c, int64_t chunk) {
  const Plan& p = *static_cast<const Plan*>(c.state);
  auto* numbers = reinterpret_cast<float*>(c.scratch);
  each_row(p, chunk, [&](int64_t x_at, int64_t q_at, int64_t scale_at) {
    auto* x = reinterpret_cast<float*>(c.out[0].data + x_at);
    float* to = p.x_step == 1 ? x : numbers;
    dequantize_row(reinterpret_cast<const int8_t*>(c.in[0].data + q_at), p.q_step, *reinterpret_cast<const float*>(c.in[1].data + scale_at), to, p.width);
    if (to != x)
      for (int64_t i = 0; i < p.width; ++i) x[i * p.x_step] = to[i];
  });
  return ok();
}

const Register r1({.name = kQuantize, .prepare = prepare_quantize, .run = run_quantize});
const Register r2({.name = kDequantize, .prepare = prepare_dequantize, .run = run_dequantize});

}  // namespace

void dequantize_row(const int8_t* from, int64_t step, float scale, float* to, int64_t n) {
  if (step == 1) return GE_ON_ISA(from_bytes)(from, n, scale, to);
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i * step]) * scale;
}

}  // namespace ge::kernels::move
