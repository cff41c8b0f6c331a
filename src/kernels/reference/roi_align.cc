// ref.RoiAlign: in [x [N, C, H, W], rois [R, 4], batch of each roi [R]], out [R, C, h, w]. ints [max, samples of a bin
// along an axis (0: by its size), half_pixel], floats [spatial scale]. In double.
#include "kernels/move/check.h"
#include "kernels/reference/place.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kName = "ref.RoiAlign";
constexpr int64_t kMaxSamples = 1 << 15;

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 3, 1, 3, 1));
  const View &x = c.in[0], &rois = c.in[1], &batch = c.in[2], &y = c.out[0];
  if (!plain_float(x.dtype) || y.dtype != x.dtype || !plain_float(rois.dtype) || !move::is_index(batch.dtype)) return bad(kName, "wrong types");
  if (x.rank != 4 || rois.rank != 2 || batch.rank != 1 || y.rank != 4) return bad(kName, "wrong ranks");
  if (rois.dims[1] != 4 || batch.dims[0] != rois.dims[0] || y.dims[0] != rois.dims[0] || y.dims[1] != x.dims[1])
    return bad(kName, "sizes do not fit");
  if (c.ints[1] < 0 || c.ints[1] > kMaxSamples) return bad(kName, "sampling_ratio is out of range");
  Work w;
  w.chunks = y.count() ? cut(y.dims[0] * y.dims[2] * y.dims[3], 100.0 * static_cast<double>(x.dims[1])) : 0;
  return w;
}

struct Axis {
  double start, bin;
  int64_t samples;
};

Axis axis_of(double from, double to, int64_t bins, const Call& c) {
  bool half = c.ints[2] != 0;
  double start = from * c.floats[0] - (half ? 0.5 : 0), end = to * c.floats[0] - (half ? 0.5 : 0), size = end - start;
  if (!half) size = std::max(size, 1.0);
  double bin = size / static_cast<double>(bins);
  return {start, bin, c.ints[1] > 0 ? c.ints[1] : clamp_int(std::ceil(bin), 0, kMaxSamples)};
}

// The two elements around a place and their weights; false outside.
bool corners(double at, int64_t size, int64_t* index, double* weight) {
  if (!(at >= -1) || !(at <= static_cast<double>(size)) || size == 0) return false;
  at = std::max(at, 0.0);
  index[0] = std::min(static_cast<int64_t>(at), size - 1);
  index[1] = std::min(index[0] + 1, size - 1);
  double f = index[0] == size - 1 ? 0 : at - static_cast<double>(index[0]);
  weight[0] = 1 - f, weight[1] = f;
  return true;
}

struct Bin {
  const View* x;
  int64_t from;  // batch and channel
  Axis h, w;
  int64_t ph, pw;
};

double pool(const Bin& b, bool max) {
  double sum = 0, best = 0;
  bool any = false;
  for (int64_t i = 0; i < b.h.samples; ++i)
    for (int64_t j = 0; j < b.w.samples; ++j) {
      auto at = [](const Axis& a, int64_t p, int64_t k) {
        return a.start + a.bin * (static_cast<double>(p) + (static_cast<double>(k) + 0.5) / static_cast<double>(a.samples));
      };
      int64_t hi[2], wi[2];
      double hw[2], ww[2], v = 0, m = 0;
      if (corners(at(b.h, b.ph, i), b.x->dims[2], hi, hw) && corners(at(b.w, b.pw, j), b.x->dims[3], wi, ww)) {
        double part[4];
        for (int k = 0; k < 4; ++k)
          part[k] = hw[k / 2] * ww[k % 2] * load(*b.x, b.from + hi[k / 2] * b.x->strides[2] + wi[k % 2] * b.x->strides[3]);
        v = part[0] + part[1] + part[2] + part[3];
        m = std::max(std::max(part[0], part[1]), std::max(part[2], part[3]));
      }
      sum += v;
      // The largest weighted corner, as ONNX defines it, not the largest interpolated value.
      best = any ? std::max(best, m) : m;
      any = true;
    }
  if (max) return best;
  return sum / static_cast<double>(std::max<int64_t>(b.h.samples * b.w.samples, 1));
}

Status run(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &rois = c.in[1], &batch = c.in[2], &y = c.out[0];
  int64_t bins = y.dims[2] * y.dims[3], units = y.dims[0] * bins;
  Span s = slice(units, chunk, cut(units, 100.0 * static_cast<double>(x.dims[1])));
  for (int64_t u = s.begin; u < s.end; ++u) {
    int64_t r = u / bins, ph = u % bins / y.dims[3], pw = u % y.dims[3], n = move::load_index(batch, r * batch.strides[0]);
    if (n < 0 || n >= x.dims[0]) return error(code::kRunFailed, format("RoiAlign: batch index {} is outside 0..{}", n, x.dims[0] - 1));
    auto roi = [&](int k) { return load(rois, place(rois, r, k)); };
    Bin b{&x, 0, axis_of(roi(1), roi(3), y.dims[2], c), axis_of(roi(0), roi(2), y.dims[3], c), ph, pw};
    for (int64_t ch = 0; ch < y.dims[1]; ++ch) {
      b.from = place(x, n, ch);
      store(y, place(y, r, ch, ph, pw), pool(b, c.ints[0] != 0));
    }
  }
  return ok();
}

const Register registered({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::reference
