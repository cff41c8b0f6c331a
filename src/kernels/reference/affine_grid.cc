// ref.AffineGrid: in [theta [N, r, r + 1]], out [N, o..., r], r = 2 or 3: theta times (x, y, (z,) 1) of each output
// element, x along the innermost axis. ints [align_corners]. In double; one lone aligned element lies at -1.
#include "kernels/reference/place.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kName = "ref.AffineGrid";

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1));
  const View &t = c.in[0], &y = c.out[0];
  if (!plain_float(t.dtype) || y.dtype != t.dtype) return bad(kName, "wrong types");
  int r = y.rank - 2;
  if ((r != 2 && r != 3) || t.rank != 3 || t.dims[0] != y.dims[0] || t.dims[1] != r || t.dims[2] != r + 1 || y.dims[r + 1] != r)
    return bad(kName, "theta must be one matrix [n, n + 1] for each image of the size, of n spatial axes");
  Work w;
  w.chunks = y.count() ? y.dims[0] : 0;
  return w;
}

Status run(const Call& c, int64_t n) {
  const View &t = c.in[0], &y = c.out[0];
  int r = y.rank - 2;
  bool align = c.ints[0] != 0;
  for (int64_t p = 0, positions = count_axes(y, 1, r + 1); p < positions; ++p) {
    double at[4] = {0, 0, 0, 0};
    int64_t left = p;
    for (int a = r; a > 0; --a) {
      int64_t size = y.dims[a], i = left % size;
      left /= size;
      double step = align ? (size > 1 ? 2.0 / static_cast<double>(size - 1) : 0) : 2.0 / static_cast<double>(size);
      at[r - a] = -1 + (align ? 0 : step / 2) + step * static_cast<double>(i);
    }
    at[r] = 1;
    int64_t to = n * y.strides[0] + place_linear(y, 1, r + 1, p);
    for (int k = 0; k < r; ++k) {
      double sum = 0;
      for (int j = 0; j <= r; ++j) sum += load(t, place(t, n, k, j)) * at[j];
      store(y, to + k * y.strides[r + 1], sum);
    }
  }
  return ok();
}

const Register registered({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::reference
