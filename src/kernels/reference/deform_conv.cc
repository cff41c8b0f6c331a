// ref.DeformConv: in [x [N, C, H, W], w [M, C / group, kh, kw], offset [N, offset groups * kh * kw * 2, oh, ow], bias [M]
// or absent, mask [N, offset groups * kh * kw, oh, ow] or absent], out [N, M, oh, ow]: a convolution whose taps are
// moved by the offsets (row, column) and read between elements; 0 outside. ints [group, offset groups, pad top,
// pad left, stride h, stride w, dilation h, dilation w]. In double.
#include "kernels/reference/place.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kName = "ref.DeformConv";

double unit_cost(const Call& c) { return 20.0 * static_cast<double>(std::min<int64_t>(count_axes(c.in[1], 1, 4), 1 << 20)); }

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 3, 1, 8));
  const View &x = c.in[0], &w = c.in[1], &offset = c.in[2], &y = c.out[0];
  for (size_t i = 0; i < c.in.size(); ++i)
    if (present(c, i) && (!plain_float(c.in[i].dtype) || c.in[i].rank != (i == 3 ? 1 : 4))) return bad(kName, "wrong types or ranks");
  if (y.dtype != x.dtype || y.rank != 4) return bad(kName, "wrong output");
  constexpr int64_t kLimit = int64_t{1} << 24;
  for (int64_t v : c.ints)
    if (v < -kLimit || v > kLimit) return bad(kName, "a parameter is out of range");
  int64_t group = c.ints[0], groups = c.ints[1];
  if (group < 1 || groups < 1 || c.ints[4] < 1 || c.ints[5] < 1 || c.ints[6] < 1 || c.ints[7] < 1) return bad(kName, "a parameter is out of range");
  if (w.dims[2] > kLimit || w.dims[3] > kLimit) return bad(kName, "the kernel is too large");
  int64_t taps = w.dims[2] * w.dims[3];
  if (x.dims[1] % group || x.dims[1] / group != w.dims[1] || w.dims[0] % group || x.dims[1] % groups) return bad(kName, "groups do not fit");
  auto spatial = [&](const View& v, int64_t channels) {
    return v.dims[0] == x.dims[0] && v.dims[1] % groups == 0 && v.dims[1] / groups == channels && v.dims[2] == y.dims[2] && v.dims[3] == y.dims[3];
  };
  if (!spatial(offset, 2 * taps) || (present(c, 4) && !spatial(c.in[4], taps))) return bad(kName, "offsets or mask do not fit");
  if (y.dims[0] != x.dims[0] || y.dims[1] != w.dims[0] || (present(c, 3) && c.in[3].dims[0] != w.dims[0])) return bad(kName, "sizes do not fit");
  Work work;
  work.chunks = cut(y.count(), unit_cost(c));
  return work;
}

// The element between four, 0 outside.
double read(const View& x, int64_t from, double h, double w) {
  double h0 = std::floor(h), w0 = std::floor(w), sum = 0;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      double r = h0 + i, k = w0 + j;
      if (!(r >= 0 && r < static_cast<double>(x.dims[2]) && k >= 0 && k < static_cast<double>(x.dims[3]))) continue;
      double weight = (i ? h - h0 : 1 - (h - h0)) * (j ? w - w0 : 1 - (w - w0));
      sum += weight * load(x, from + static_cast<int64_t>(r) * x.strides[2] + static_cast<int64_t>(k) * x.strides[3]);
    }
  return sum;
}

double element(const Call& c, int64_t n, int64_t m, int64_t oh, int64_t ow) {
  const View &x = c.in[0], &w = c.in[1], &offset = c.in[2];
  int64_t kh = w.dims[2], kw = w.dims[3], per_group = w.dims[0] / c.ints[0], first = m / per_group * w.dims[1];
  int64_t per_offset = x.dims[1] / c.ints[1];
  double sum = present(c, 3) ? load(c.in[3], m * c.in[3].strides[0]) : 0;
  for (int64_t ch = 0; ch < w.dims[1]; ++ch)
    for (int64_t i = 0; i < kh; ++i)
      for (int64_t j = 0; j < kw; ++j) {
        int64_t tap = ((first + ch) / per_offset * kh + i) * kw + j;
        double h = static_cast<double>(oh * c.ints[4] - c.ints[2] + i * c.ints[6]) + load(offset, place(offset, n, 2 * tap, oh, ow));
        double v = static_cast<double>(ow * c.ints[5] - c.ints[3] + j * c.ints[7]) + load(offset, place(offset, n, 2 * tap + 1, oh, ow));
        double mask = present(c, 4) ? load(c.in[4], place(c.in[4], n, tap, oh, ow)) : 1;
        sum += mask * load(w, place(w, m, ch, i, j)) * read(x, place(x, n, first + ch), h, v);
      }
  return sum;
}

Status run(const Call& c, int64_t chunk) {
  const View& y = c.out[0];
  Span s = slice(y.count(), chunk, cut(y.count(), unit_cost(c)));
  for (int64_t u = s.begin; u < s.end; ++u) {
    int64_t ow = u % y.dims[3], oh = u / y.dims[3] % y.dims[2], m = u / y.dims[3] / y.dims[2] % y.dims[1];
    int64_t n = u / y.dims[3] / y.dims[2] / y.dims[1];
    store(y, place(y, n, m, oh, ow), element(c, n, m, oh, ow));
  }
  return ok();
}

const Register registered({.name = kName, .unit = Unit::cube, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::reference
