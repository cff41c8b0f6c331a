// ref.Det and ref.Inverse: by elimination with pivoting, in double; any strides. No parameters.
// ref.Det: in [..., M, M], out [...]. ref.Inverse: in and out [..., M, M]; a singular matrix is an error.
#include "kernels/reference/access.h"

namespace ge::kernels::reference {
namespace {

struct Matrices {
  int64_t n = 0, count = 1, row = 0, column = 0;
};

Status check(const Call& c, std::string_view kernel, bool inverse, Matrices& m) {
  GE_RETURN_IF_ERROR(check_call(c, kernel, 1, 1));
  const View &x = c.in[0], &y = c.out[0];
  if (!plain_float(x.dtype) || y.dtype != x.dtype) return bad(kernel, "takes floats");
  if (x.rank < 2 || x.dim(-1) != x.dim(-2)) return bad(kernel, "takes square matrices");
  if (y.rank != x.rank - (inverse ? 0 : 2) || !std::equal(y.dims, y.dims + y.rank, x.dims)) return bad(kernel, "wrong shape of output");
  m.n = x.dim(-1), m.row = x.stride(-2), m.column = x.stride(-1);
  if (m.n > (1 << 15)) return bad(kernel, "the matrices are too large");
  for (int a = 0; a + 2 < x.rank; ++a) m.count *= x.dims[a];
  return ok();
}

// Offsets of matrix i in a view whose leading axes are those of x.
int64_t lead_offset(const View& v, int lead, int64_t i) {
  int64_t at = 0;
  for (int a = lead; a-- > 0; i /= v.dims[a]) at += i % v.dims[a] * v.strides[a];
  return at;
}

// Eliminates a [n, width] in place; false if its left square is singular. With `full` also above the diagonal,
// so that the left becomes the identity.
bool eliminate(double* a, int64_t n, int64_t width, bool full, double& det) {
  det = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (std::fabs(a[i * width + k]) > std::fabs(a[pivot * width + k])) pivot = i;
    if (pivot != k) {
      std::swap_ranges(a + k * width, a + (k + 1) * width, a + pivot * width);
      det = -det;
    }
    double p = a[k * width + k];
    det *= p;
    if (p == 0 || p != p) return false;
    if (full)
      for (int64_t j = 0; j < width; ++j) a[k * width + j] /= p;
    for (int64_t i = full ? 0 : k + 1; i < n; ++i) {
      if (i == k) continue;
      double f = full ? a[i * width + k] : a[i * width + k] / p;
      if (f == 0) continue;
      for (int64_t j = k; j < width; ++j) a[i * width + j] -= f * a[k * width + j];
    }
  }
  return true;
}

template <bool kInverse>
Result<Work> prepare(const Call& c) {
  Matrices m;
  GE_RETURN_IF_ERROR(check(c, kInverse ? "ref.Inverse" : "ref.Det", kInverse, m));
  Work w;
  w.chunks = std::min<int64_t>(m.count, 128);
  if (kInverse && m.n == 0) w.chunks = 0;
  w.scratch = m.n * m.n * 8 * (kInverse ? 2 : 1);
  return w;
}

template <bool kInverse>
Status run(const Call& c, int64_t chunk) {
  Matrices m;
  GE_RETURN_IF_ERROR(check(c, kInverse ? "ref.Inverse" : "ref.Det", kInverse, m));
  const View &x = c.in[0], &y = c.out[0];
  auto* a = reinterpret_cast<double*>(c.scratch);
  int64_t width = kInverse ? 2 * m.n : m.n;
  Span s = slice(m.count, chunk, std::min<int64_t>(m.count, 128));
  for (int64_t i = s.begin; i < s.end; ++i) {
    int64_t from = lead_offset(x, x.rank - 2, i), to = lead_offset(y, x.rank - 2, i);
    for (int64_t r = 0; r < m.n; ++r)
      for (int64_t k = 0; k < width; ++k)
        a[r * width + k] = k < m.n ? load(x, from + r * m.row + k * m.column) : k - m.n == r;
    double det;
    bool regular = eliminate(a, m.n, width, kInverse, det);
    if constexpr (kInverse) {
      if (!regular) return error(code::kRunFailed, format("Matrix {} of the input is singular.", i));
      for (int64_t r = 0; r < m.n; ++r)
        for (int64_t k = 0; k < m.n; ++k) store(y, to + r * y.stride(-2) + k * y.stride(-1), a[r * width + m.n + k]);
    } else {
      store(y, to, det);
    }
  }
  return ok();
}

const Register r1({.name = "ref.Det", .unit = Unit::host, .prepare = prepare<false>, .run = run<false>});
const Register r2({.name = "ref.Inverse", .unit = Unit::host, .prepare = prepare<true>, .run = run<true>});

}  // namespace
}  // namespace ge::kernels::reference
