// ref.NegativeLogLikelihoodLoss: in [x [N, C, d...], target [N, d...], weight [C] or absent], out [N, d...], or a
// scalar for a sum or a mean. ints [reduction, has ignored, ignored target]. A mean divides by the sum of the
// weights; it is NaN where that is 0. In double, in order.
#include "kernels/move/check.h"
#include "kernels/reference/place.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kName = "ref.NegativeLogLikelihoodLoss";
enum : int64_t { kNone = 0, kSum = 1, kMean = 2 };

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 2, 1, 3));
  const View &x = c.in[0], &t = c.in[1], &y = c.out[0];
  if (!plain_float(x.dtype) || y.dtype != x.dtype || !move::is_index(t.dtype)) return bad(kName, "wrong types");
  if (x.rank < 2 || t.rank != x.rank - 1) return bad(kName, "wrong ranks");
  for (int a = 0; a < t.rank; ++a)
    if (t.dims[a] != x.dims[a ? a + 1 : 0]) return bad(kName, "the target must have the shape of the input without its axis of classes");
  if (present(c, 2) && (!plain_float(c.in[2].dtype) || c.in[2].rank != 1 || c.in[2].dims[0] != x.dims[1]))
    return bad(kName, "there must be one weight for each class");
  if (c.ints[0] < kNone || c.ints[0] > kMean) return bad(kName, "unknown reduction");
  if (c.ints[0] == kNone ? !same_dims(y, t) : y.rank != 0) return bad(kName, "wrong shape of output");
  return Work{};
}

Status run(const Call& c, int64_t) {
  const View &x = c.in[0], &t = c.in[1], &y = c.out[0];
  Walker<2> w(t);
  w.follow(0, t);
  if (c.ints[0] == kNone) w.follow(1, y);
  double sum = 0, weights = 0;
  w.seek(0);
  for (int64_t i = 0, n = w.count(); i < n; ++i, w.next()) {
    int64_t k = move::load_index(t, w.offset[0]);
    double weight = 0, loss = 0;
    if (!c.ints[1] || k != c.ints[2]) {
      if (k < 0 || k >= x.dims[1])
        return error(code::kRunFailed, format("NegativeLogLikelihoodLoss: target {} is outside 0..{}", k, x.dims[1] - 1));
      int64_t from = w.index[0] * x.strides[0] + k * x.strides[1];
      for (int a = 1; a < t.rank; ++a) from += w.index[a] * x.strides[a + 1];
      weight = present(c, 2) ? load(c.in[2], k * c.in[2].strides[0]) : 1;
      loss = -load(x, from) * weight;
    }
    if (c.ints[0] == kNone) store(y, w.offset[1], loss);
    sum += loss, weights += weight;
  }
  if (c.ints[0] != kNone) store(y, 0, c.ints[0] == kMean ? sum / weights : sum);
  return ok();
}

const Register r({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::reference
