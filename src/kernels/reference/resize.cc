// ref.Resize: every output element as the weighted sum over the taps of all axes, in double. Parameters:
// see move/resize_taps.h. Any number type, any strides.
#include <algorithm>

#include "kernels/move/resize_taps.h"
#include "kernels/reference/index.h"

namespace ge::kernels::move {
namespace {

constexpr std::string_view kName = "ref.Resize";

struct State {
  std::vector<Taps> axes;
};

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_resize(c, kName));
  const View &x = c.in[0], &y = c.out[0];
  auto p = resize_parameters(c);
  if (!is_number(x.dtype) && p.mode != ResizeMode::nearest) return bad_call(kName, format("cannot interpolate {}", name(x.dtype)));
  Work w = one_chunk(c);
  if (w.chunks == 0) return w;
  auto s = std::make_shared<State>();
  for (int i = 0; i < x.rank; ++i) s->axes.push_back(resize_taps(p, i, x.dims[i], y.dims[i]));
  w.state = std::move(s);
  return w;
}

// Sum over the taps of axes [axis, rank).
double sum_taps(const State& s, const View& x, const int64_t* index, int axis, int64_t offset) {
  if (axis == x.rank) return load_f64(x.dtype, x.data + offset * size_of(x.dtype));
  const Taps& t = s.axes[static_cast<size_t>(axis)];
  double sum = 0;
  for (int64_t k = 0; k < t.per; ++k) {
    float w = t.weight_at(index[axis], k);
    if (w != 0) sum += w * sum_taps(s, x, index, axis + 1, offset + t.at(index[axis], k) * x.strides[axis]);
  }
  return sum;
}

Status run(const Call& c, int64_t) {
  auto& s = *static_cast<const State*>(c.state);
  auto p = resize_parameters(c);
  const View &x = c.in[0], &y = c.out[0];
  each_index(y, [&](const int64_t* index) {
    bool outside = false;
    int64_t from[kMaxRank];
    for (int i = 0; i < x.rank; ++i) {
      auto& t = s.axes[static_cast<size_t>(i)];
      outside = outside || (!t.outside.empty() && t.outside[static_cast<size_t>(index[i])]);
      from[i] = t.at(index[i], 0);
    }
    std::byte* to = address(y, index);
    if (outside) {
      store_f64(y.dtype, to, p.extrapolation);
    } else if (p.mode == ResizeMode::nearest) {
      copy_element(to, address(x, from), y.dtype);
    } else {
      double v = sum_taps(s, x, index, 0, 0);
      // Images: antialiasing rounds and stays in range, as image libraries do.
      if (p.antialias && is_integer(y.dtype) && bits(y.dtype) <= 32) {
        double low = is_signed(y.dtype) ? -std::ldexp(1.0, bits(y.dtype) - 1) : 0;
        v = std::clamp(std::nearbyint(v), low, low + std::ldexp(1.0, bits(y.dtype)) - 1);
      }
      store_f64(y.dtype, to, v);
    }
    return true;
  });
  return ok();
}

const Register r({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::move
