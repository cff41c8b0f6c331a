// ref.CausalConvWithState: in [x [N, C, L], w [C, 1, k], bias [C] or absent, past [N, C, k - 1] or absent], out
// [y [N, C, L], present [N, C, k - 1] or absent]: each channel filtered over itself and the k - 1 elements before it, the
// first of them the past's or 0; present is the last k - 1. ints [silu]. In double; silu of the rounded sum.
#include "kernels/reference/place.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kName = "ref.CausalConvWithState";

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 2, 1, 1));
  const View &x = c.in[0], &w = c.in[1], &y = c.out[0];
  for (size_t i = 0; i < c.in.size(); ++i)
    if (present(c, i) && (i > 3 || !plain_float(c.in[i].dtype) || c.in[i].rank != (i == 2 ? 1 : 3))) return bad(kName, "wrong types or ranks");
  if (w.dims[0] != x.dims[1] || w.dims[1] != 1 || w.dims[2] < 1 || (present(c, 2) && c.in[2].dims[0] != x.dims[1]))
    return bad(kName, "weights do not fit the input");
  auto state = [&](const View& v) {
    return plain_float(v.dtype) && v.rank == 3 && v.dims[0] == x.dims[0] && v.dims[1] == x.dims[1] && v.dims[2] == w.dims[2] - 1;
  };
  if (present(c, 3) && !state(c.in[3])) return bad(kName, "wrong past state");
  if (wanted(c, 1) && !state(c.out[1])) return bad(kName, "wrong present state");
  if (!plain_float(y.dtype) || !same_dims(x, y)) return bad(kName, "wrong output");
  Work work;
  work.chunks = std::min<int64_t>(x.dims[0] * x.dims[1], 128);
  return work;
}

// Element `i` of channel `ch` with the past before it.
double read(const Call& c, int64_t n, int64_t ch, int64_t i) {
  const View& x = c.in[0];
  if (i >= 0) return load(x, place(x, n, ch, i));
  return present(c, 3) ? load(c.in[3], place(c.in[3], n, ch, c.in[3].dims[2] + i)) : 0;
}

Status run(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &w = c.in[1], &y = c.out[0];
  int64_t k = w.dims[2], units = x.dims[0] * x.dims[1];
  Span s = slice(units, chunk, std::min<int64_t>(units, 128));
  for (int64_t u = s.begin; u < s.end; ++u) {
    int64_t n = u / x.dims[1], ch = u % x.dims[1];
    for (int64_t i = 0; i < x.dims[2]; ++i) {
      double sum = present(c, 2) ? load(c.in[2], ch * c.in[2].strides[0]) : 0;
      for (int64_t j = 0; j < k; ++j) sum += load(w, place(w, ch, 0, j)) * read(c, n, ch, i - (k - 1) + j);
      int64_t to = place(y, n, ch, i);
      store(y, to, sum);
      if (c.ints[0]) {
        double v = load(y, to);
        store(y, to, v / (1 + std::exp(-v)));
      }
    }
    if (wanted(c, 1))
      for (int64_t i = 0; i < k - 1; ++i) store(c.out[1], place(c.out[1], n, ch, i), read(c, n, ch, x.dims[2] - (k - 1) + i));
  }
  return ok();
}

const Register r({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::reference
