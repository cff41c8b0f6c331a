// ref.MaxRoiPool: in [x [N, C, H, W], rois [R, 5]: batch, x1, y1, x2, y2], out [R, C, h, w]. floats [spatial scale].
// Corners are rounded to elements and belong to the region (R. Girshick, Fast R-CNN, ICCV 2015); an empty bin gives 0.
#include <cmath>

#include "kernels/move/check.h"
#include "kernels/reference/place.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kName = "ref.MaxRoiPool";
constexpr double kBinCost = 200;

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 2, 1, 0, 1));
  const View &x = c.in[0], &rois = c.in[1], &y = c.out[0];
  if (!plain_float(x.dtype) || y.dtype != x.dtype || !plain_float(rois.dtype)) return bad(kName, "wrong types");
  if (x.rank != 4 || rois.rank != 2 || y.rank != 4) return bad(kName, "wrong ranks");
  if (rois.dims[1] != 5 || y.dims[0] != rois.dims[0] || y.dims[1] != x.dims[1]) return bad(kName, "sizes do not fit");
  Work w;
  w.chunks = y.count() ? cut(y.count(), kBinCost) : 0;
  return w;
}

// Elements [begin, end) of an axis of `size` that bin `bin` of `bins` covers.
Span covered(double from, double to, double scale, int64_t bin, int64_t bins, int64_t size) {
  auto element = [&](double at) { return static_cast<double>(clamp_int(std::round(at * scale), -size - 1, 2 * size + 1)); };
  const double first = element(from), step = std::max(element(to) - first + 1, 1.0) / static_cast<double>(bins);
  const double begin = first + std::floor(static_cast<double>(bin) * step), end = first + std::ceil(static_cast<double>(bin + 1) * step);
  return {clamp_int(begin, 0, size), clamp_int(end, 0, size)};
}

Status run(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &rois = c.in[1], &y = c.out[0];
  Span s = slice(y.count(), chunk, cut(y.count(), kBinCost));
  for (int64_t u = s.begin; u < s.end; ++u) {
    const int64_t pw = u % y.dims[3], ph = u / y.dims[3] % y.dims[2], channel = u / (y.dims[3] * y.dims[2]) % y.dims[1], r = u / (y.dims[3] * y.dims[2] * y.dims[1]);
    auto roi = [&](int k) { return load(rois, place(rois, r, k)); };
    const int64_t n = clamp_int(roi(0), -1, x.dims[0]);
    if (n < 0 || n >= x.dims[0]) return error(code::kRunFailed, format("MaxRoiPool: batch index {} is outside 0..{}", n, x.dims[0] - 1));
    const Span rows = covered(roi(2), roi(4), c.floats[0], ph, y.dims[2], x.dims[2]), columns = covered(roi(1), roi(3), c.floats[0], pw, y.dims[3], x.dims[3]);
    double best = 0;
    bool any = false;
    for (int64_t h = rows.begin; h < rows.end; ++h)
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        const double v = load(x, place(x, n, channel, h, w));
        if (!any || v > best) best = v;
        any = true;
      }
    store(y, place(y, r, channel, ph, pw), best);
  }
  return ok();
}

const Register registered({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::reference
