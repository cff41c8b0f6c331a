// Kernel "vector.rotary": rotary position embedding of halves (RoFormer, arXiv 2104.09864, in the order of
// GPT-NeoX): y[i] = x[i] * cos[i] - x[i + D/2] * sin[i] for i < D/2, else x[i] * cos[i] + x[i - D/2] * sin[i].
//
//   in[0]  x f32 [A, B, C, D], D even, any strides (inner stride 1 is fast)
//   in[1]  cos f32, in[2] sin f32: rank 4, each axis that of x or 1, but the last D, or D/2 for both halves
//   out[0] f32 [A, B, C, D], any strides
//   ints   [interleaved] or none: 1 turns x[2i] with x[2i + 1]; the tables then are D/2 wide
#include <algorithm>

#include "kernels/cube/check.h"

#define GE_TARGET_BODY "kernels/cube/rotary-inl.h"
#include "kernels/cube/conv_targets.h"

namespace ge::kernels::cube {
namespace {

Error bad(std::string why) { return error(code::kBadOp, "vector.rotary: " + why); }

bool interleaved(const Call& c) { return !c.ints.empty() && c.ints[0] != 0; }

int64_t chunks_of(const View& x) {
  if (x.count() == 0) return 0;
  return std::clamp<int64_t>(x.count() / 16384, 1, std::min<int64_t>(x.dims[0] * x.dims[1] * x.dims[2], 64));
}

Result<Work> prepare(const Call& call) {
  if (call.in.size() != 3 || call.out.size() != 1 || call.ints.size() > 1 || !call.floats.empty() || !call.blob.empty())
    return bad("takes 3 inputs, 1 output and at most 1 integer");
  const View &x = call.in[0], &y = call.out[0];
  GE_RETURN_IF_ERROR(check_view(x, DType::f32, 4, 4, "the input of vector.rotary"));
  GE_RETURN_IF_ERROR(check_view(y, DType::f32, 4, 4, "the output of vector.rotary"));
  if (!std::equal(x.dims, x.dims + 4, y.dims) || x.dims[3] % 2) return bad("input and output must have one shape, of even width");
  for (size_t i : {1, 2}) {
    const View& t = call.in[i];
    GE_RETURN_IF_ERROR(check_view(t, DType::f32, 4, 4, "the table of vector.rotary"));
    for (int a = 0; a < 3; ++a)
      if (t.dims[a] != x.dims[a] && t.dims[a] != 1) return bad(format("axis {} of a table is {}, not {}", a, t.dims[a], x.dims[a]));
    if ((t.dims[3] != x.dims[3] || interleaved(call)) && t.dims[3] * 2 != x.dims[3]) return bad(format("a table is {} wide, not {}", t.dims[3], x.dims[3]));
  }
  Work work;
  work.chunks = chunks_of(x);
  return work;
}

void rotate_any(const View& x, const float* in, const float* const (&cos)[2], const float* const (&sin)[2], const int64_t (&step)[2],
                const View& y, float* out, int64_t along, int64_t across) {
  const int64_t half = x.dims[3] / 2;
  for (int64_t i = 0; i < half; ++i) {
    const float a = in[i * along * x.strides[3]], b = in[(i * along + across) * x.strides[3]];
    out[i * along * y.strides[3]] = a * cos[0][i * step[0]] - b * sin[0][i * step[1]];
    out[(i * along + across) * y.strides[3]] = b * cos[1][i * step[0]] + a * sin[1][i * step[1]];
  }
}

Status run(const Call& call, int64_t chunk) {
  const View &x = call.in[0], &y = call.out[0];
  const int64_t rows = x.dims[0] * x.dims[1] * x.dims[2], half = x.dims[3] / 2, chunks = chunks_of(x);
  const bool pairs = interleaved(call);
  const bool dense = !pairs && half > 1 && x.strides[3] == 1 && y.strides[3] == 1 && call.in[1].strides[3] == 1 && call.in[2].strides[3] == 1;
  for (int64_t r = rows * chunk / chunks; r < rows * (chunk + 1) / chunks; ++r) {
    const int64_t at[3] = {r / (x.dims[1] * x.dims[2]), r / x.dims[2] % x.dims[1], r % x.dims[2]};
    auto row = [&](const View& v) {
      int64_t offset = 0;
      for (int a = 0; a < 3; ++a) offset += v.dims[a] == 1 ? 0 : at[a] * v.strides[a];
      return v.as<float>() + offset;
    };
    const float *cos = row(call.in[1]), *sin = row(call.in[2]), *in = row(x);
    float* out = row(y);
    const int64_t step[2] = {call.in[1].strides[3], call.in[2].strides[3]};
    const float* const both_cos[2] = {cos, cos + (call.in[1].dims[3] == half ? 0 : half * step[0])};
    const float* const both_sin[2] = {sin, sin + (call.in[2].dims[3] == half ? 0 : half * step[1])};
    if (dense) GE_ON_ISA(rotate_row)(in, in + half, both_cos, both_sin, out, out + half, half);
    else rotate_any(x, in, both_cos, both_sin, step, y, out, pairs ? 2 : 1, pairs ? 1 : half);
  }
  return ok();
}

const Register kRotary(Kernel{.name = "vector.rotary", .unit = Unit::vector, .prepare = prepare, .run = run, .in_place = 1});

}  // namespace
}  // namespace ge::kernels::cube
