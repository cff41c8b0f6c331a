// ref.Conv and ref.ConvTranspose: any number of spatial axes, groups, any strides; sums in double.
// in: x [N, C, spatial], w, bias [M] or absent. w is [M, C / groups, k...] for Conv and
// [C, M / groups, k...] for ConvTranspose. out: y [N, M, spatial].
// ints: [groups, strides[], dilations[], pad_begin[]].
#include "kernels/reference/window.h"

namespace ge::kernels::reference {
namespace {

Status check(const Call& c, std::string_view kernel, bool transpose) {
  GE_RETURN_IF_ERROR(check_call(c, kernel, 2, 1, 1));
  const View &x = c.in[0], &w = c.in[1], &y = c.out[0];
  if (!plain_float(x.dtype) && !plain_integer(x.dtype)) return bad(kernel, "takes numbers");
  if (w.dtype != x.dtype || y.dtype != x.dtype || (present(c, 2) && c.in[2].dtype != x.dtype))
    return bad(kernel, "operands of different types");
  if (x.rank < 2 || w.rank != x.rank || y.rank != x.rank) return bad(kernel, "operands of different rank");
  int rank = x.rank - 2;
  GE_RETURN_IF_ERROR(check_numbers(c, kernel, 1, rank, {1, 1, 0}));
  int64_t g = c.ints[0], channels = x.dims[1], m = y.dims[1];
  if (g < 1 || channels % g || m % g) return bad(kernel, "the channels cannot be divided into the groups");
  if (transpose ? w.dims[0] != channels || w.dims[1] != m / g : w.dims[0] != m || w.dims[1] != channels / g)
    return bad(kernel, "the weights do not fit the channels");
  if (x.dims[0] != y.dims[0]) return bad(kernel, "batch sizes differ");
  if (present(c, 2) && (c.in[2].rank != 1 || c.in[2].dims[0] != m)) return bad(kernel, "wrong size of bias");
  for (int a = 0; a < rank; ++a)
    if (x.dims[a + 2] > kMaxWindowNumber || y.dims[a + 2] > kMaxWindowNumber || w.dims[a + 2] > kMaxWindowNumber)
      return bad(kernel, "a size is out of range");
  return ok();
}

Window window(const Call& c) {
  Window win;
  win.rank = c.in[0].rank - 2;
  win.k = c.in[1].dims + 2;
  win.stride = c.ints.data() + 1;
  win.dilation = win.stride + win.rank;
  win.pad = win.dilation + win.rank;
  return win;
}

int64_t chunks(const Call& c, const Window& win, int64_t inner) {
  return cut(c.out[0].count(), 6.0 * static_cast<double>(std::max<int64_t>(win.taps(), 1)) *
                                   static_cast<double>(std::max<int64_t>(inner, 1)));
}

// Sum over the taps whose input lies inside. `input` gives the input index of a tap along an axis, or -1.
template <class Input>
double window_sum(const Call& c, const Window& win, int64_t x0, int64_t w0, int64_t inner, int64_t x_step,
                  int64_t w_step, Input input) {
  const View &x = c.in[0], &w = c.in[1];
  double sum = 0;
  int64_t tap[kMaxRank] = {};
  if (win.taps() == 0) return 0;
  do {
    int64_t ix = x0, iw = w0;
    bool inside = true;
    for (int a = 0; inside && a < win.rank; ++a) {
      int64_t i = input(a, tap[a]);
      inside = i >= 0 && i < x.dims[a + 2];
      ix += i * x.strides[a + 2], iw += tap[a] * w.strides[a + 2];
    }
    for (int64_t ch = 0; inside && ch < inner; ++ch)
      sum += load(x, ix + ch * x_step) * load(w, iw + ch * w_step);
  } while (advance(tap, win.k, win.rank));
  return sum;
}

template <bool kTranspose>
Status run(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &w = c.in[1], &y = c.out[0];
  Window win = window(c);
  int64_t g = c.ints[0], cg = x.dims[1] / g, mg = y.dims[1] / g;
  Span s = slice(y.count(), chunk, chunks(c, win, cg));
  Walker<1> at(y);
  at.follow(0, y);
  at.seek(s.begin);
  for (int64_t i = s.begin; i < s.end; ++i, at.next()) {
    const int64_t* o = at.index + 2;
    int64_t m = at.index[1], group = m / mg;
    int64_t x0 = at.index[0] * x.strides[0] + group * cg * x.strides[1];
    double sum;
    if constexpr (kTranspose) {
      sum = window_sum(c, win, x0, group * cg * w.strides[0] + m % mg * w.strides[1], cg, x.strides[1],
                       w.strides[0], [&](int a, int64_t tap) {
                         int64_t p = o[a] + win.pad[a] - tap * win.dilation[a];
                         return p >= 0 && p % win.stride[a] == 0 ? p / win.stride[a] : -1;
                       });
    } else {
      sum = window_sum(c, win, x0, m * w.strides[0], cg, x.strides[1], w.strides[1],
                       [&](int a, int64_t tap) { return win.at(a, o[a], tap); });
    }
    if (present(c, 2)) sum += load(c.in[2], m * c.in[2].strides[0]);
    store(y, at.offset[0], sum);
  }
  return ok();
}

template <bool kTranspose>
Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check(c, kTranspose ? "ref.ConvTranspose" : "ref.Conv", kTranspose));
  Work w;
  w.chunks = chunks(c, window(c), c.in[0].dims[1] / c.ints[0]);
  return w;
}

const Register r1({.name = "ref.Conv", .unit = Unit::cube, .prepare = prepare<false>, .run = run<false>});
const Register r2({.name = "ref.ConvTranspose", .unit = Unit::cube, .prepare = prepare<true>, .run = run<true>});

}  // namespace
}  // namespace ge::kernels::reference
