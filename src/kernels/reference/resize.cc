// ref.Resize: every output element as the weighted sum over the taps of all axes, in double. Parameters:
// see move/resize_taps.h. Any number type, any strides.
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
  Work w = one_chunk(c);
  if (w.chunks == 0) return w;
  auto s = std::make_shared<State>();
  for (int i = 0; i < x.rank; ++i) s->axes.push_back(resize_taps(p, i, x.dims[i], y.dims[i]));
  w.state = std::move(s);
  return w;
}

Status run(const Call& c, int64_t) {
  auto& s = *static_cast<const State*>(c.state);
  auto p = resize_parameters(c);
  each_index(c.out[0], [&](const int64_t* index) {
    resize_element(p, s.axes, c.in[0], index, c.out[0].dtype, address(c.out[0], index));
    return true;
  });
  return ok();
}

const Register r({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::move
