// The scale and zero point of DynamicQuantizeLinear, in two tasks.
//
// quantize.range: in 0 f32 of any shape and strides; out 0 f32 [64, 2], dense: row i the smallest and the
//   largest number of a 64th of the elements, 0 among them. NaN is passed over.
// quantize.parameters: in 0 that output; out 0 f32, out 1 u8, one element each: the scale for 0 to 255 and
//   the zero point, which rounds to nearest even.
#include <algorithm>
#include <cmath>

#include "kernels/move/check.h"
#include "kernels/move/nest.h"

#define GE_TARGET_BODY "kernels/move/range-inl.h"
#include "kernels/cube/conv_targets.h"

namespace ge::kernels::move {
namespace {

constexpr int64_t kParts = 64, kPiece = 4096;

struct State {
  Nest nest;
  int64_t pieces = 1, units = 0;  // the inner axis in pieces of kPiece
};

Status check_ranges(const View& v, std::string_view kernel) {
  if (v.dtype != DType::f32 || v.rank != 2 || v.dims[0] != kParts || v.dims[1] != 2 || !v.dense())
    return bad_call(kernel, "the ranges are dense f32 [64, 2]");
  return ok();
}

Result<Work> prepare_range(const Call& c) {
  constexpr std::string_view kName = "quantize.range";
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1, 1));
  if (c.in[0].dtype != DType::f32) return bad_call(kName, "takes f32");
  GE_RETURN_IF_ERROR(check_ranges(c.out[0], kName));
  auto s = std::make_shared<State>();
  const View views[] = {c.in[0]};
  s->nest = Nest::of(views);
  s->nest.sort_for(0);
  s->nest.simplify();
  if (s->nest.rank == 0) s->nest.rank = 1, s->nest.dims[0] = 1, s->nest.steps[0][0] = 4;
  const int64_t count = s->nest.count(), inner = s->nest.dims[s->nest.rank - 1];
  if (count > 0) s->pieces = (inner + kPiece - 1) / kPiece, s->units = count / inner * s->pieces;
  Work w;
  w.chunks = std::clamp<int64_t>(count / 16384, 1, kParts);
  w.state = std::move(s);
  return w;
}

void widen(const std::byte* data, int64_t step, int64_t n, float& low, float& high) {
  if (step != sizeof(float)) {
    for (int64_t i = 0; i < n; ++i, data += step) {
      const float x = *reinterpret_cast<const float*>(data);
      low = x < low ? x : low, high = x > high ? x : high;
    }
    return;
  }
  GE_ON_ISA(widen_range)(reinterpret_cast<const float*>(data), n, low, high);
}

Status run_range(const Call& c, int64_t chunk) {
  auto& s = *static_cast<const State*>(c.state);
  const int64_t chunks = std::clamp<int64_t>(s.nest.count() / 16384, 1, kParts), last = s.nest.rank - 1;
  const Span parts = chunk_span(kParts, chunks, chunk);
  for (int64_t part = parts.begin; part < parts.end; ++part) {
    const Span units = chunk_span(s.units, kParts, part);
    float low = 0, high = 0;
    if (units.begin < units.end) {
      Walker w(s.nest, static_cast<int>(last), units.begin / s.pieces);
      int64_t k = units.begin % s.pieces;
      for (int64_t u = units.begin; u < units.end; ++u) {
        const int64_t at = k * kPiece, n = std::min(kPiece, s.nest.dims[last] - at), step = s.nest.steps[0][last];
        widen(c.in[0].data + w.at[0] + at * step, step, n, low, high);
        if (++k == s.pieces) k = 0, w.next();
      }
    }
    c.out[0].as<float>()[2 * part] = low, c.out[0].as<float>()[2 * part + 1] = high;
  }
  return ok();
}

Result<Work> prepare_parameters(const Call& c) {
  constexpr std::string_view kName = "quantize.parameters";
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 2, 2));
  GE_RETURN_IF_ERROR(check_ranges(c.in[0], kName));
  if (c.out[0].dtype != DType::f32 || c.out[1].dtype != DType::u8 || c.out[0].count() != 1 || c.out[1].count() != 1)
    return bad_call(kName, "the outputs are one f32 and one u8");
  return Work{};
}

Status run_parameters(const Call& c, int64_t) {
  float low = 0, high = 0;
  for (int64_t i = 0; i < kParts; ++i) {
    low = std::min(low, c.in[0].as<float>()[2 * i]);
    high = std::max(high, c.in[0].as<float>()[2 * i + 1]);
  }
  const float scale = (high == low ? 1.0f : high - low) / 255.0f;
  const float zero = std::nearbyint(std::clamp(-low / scale, 0.0f, 255.0f));
  *c.out[0].as<float>() = scale;
  *c.out[1].as<uint8_t>() = zero == zero ? static_cast<uint8_t>(zero) : 0;
  return ok();
}

const Register r1({.name = "quantize.range", .prepare = prepare_range, .run = run_range});
const Register r2({.name = "quantize.parameters", .prepare = prepare_parameters, .run = run_parameters});

}  // namespace
}  // namespace ge::kernels::move
