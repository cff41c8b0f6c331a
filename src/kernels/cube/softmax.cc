// Kernel "vector.softmax": softmax along the last axis.
//
//   in[0]  x f32, rank 1 or more, the last axis contiguous, others of any strides
//   out[0] y f32, likewise, of the same sizes
//
// exp has a relative error of at most 6e-7 + 2e-8 |x - max|; below exp(-87.7) it is 0. In place: with equal strides.
#include <algorithm>
#include <cmath>

#include "kernels/cube/check.h"

#define GE_TARGET_BODY "kernels/cube/softmax-inl.h"
#include "kernels/cube/conv_targets.h"

namespace ge::kernels::cube {
namespace {

Error bad(std::string why) { return error(code::kBadOp, "vector.softmax: " + why); }

int64_t rows_of(const View& x) { return x.dims[x.rank - 1] ? x.count() / x.dims[x.rank - 1] : 0; }
int64_t chunks_of(const View& x) { return std::min(rows_of(x), std::clamp<int64_t>(x.count() / 32768, 1, 64)); }

Result<Work> prepare(const Call& call) {
  if (call.in.size() != 1 || call.out.size() != 1 || !call.ints.empty() || !call.floats.empty() || !call.blob.empty()) return bad("takes 1 input and 1 output");
  const View &x = call.in[0], &y = call.out[0];
  GE_RETURN_IF_ERROR(check_view(x, DType::f32, 1, kMaxRank, "the input of vector.softmax"));
  GE_RETURN_IF_ERROR(check_view(y, DType::f32, 1, kMaxRank, "the output of vector.softmax"));
  if (x.rank != y.rank || !std::equal(x.dims, x.dims + x.rank, y.dims)) return bad("input and output must have one shape");
  for (auto* v : {&x, &y})
    if (v->dims[v->rank - 1] > 1 && v->strides[v->rank - 1] != 1) return bad("the last axis must be contiguous");
  Work work;
  work.chunks = x.count() ? chunks_of(x) : 0;
  return work;
}

Status run(const Call& call, int64_t chunk) {
  const View &x = call.in[0], &y = call.out[0];
  const int64_t rows = rows_of(x), chunks = chunks_of(x), n = x.dims[x.rank - 1];
  for (int64_t r = rows * chunk / chunks; r < rows * (chunk + 1) / chunks; ++r) {
    int64_t from = 0, to = 0, at = r;
    for (int a = x.rank - 1; a-- > 0; at /= x.dims[a]) from += at % x.dims[a] * x.strides[a], to += at % x.dims[a] * y.strides[a];
    GE_ON_ISA(softmax_row)(x.as<float>() + from, y.as<float>() + to, n);
  }
  return ok();
}

const Register kSoftmax(Kernel{.name = "vector.softmax", .unit = Unit::vector, .prepare = prepare, .run = run, .in_place = 1});

}  // namespace
}  // namespace ge::kernels::cube
