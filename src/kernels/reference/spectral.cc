// Fourier transforms: in float where the type is no wider and sums are short, else in double.
// ref.DFT: in [..., n, ..., 1 or 2], out [..., m, ..., 1 or 2], real or complex by the last axis. ints [axis, length,
//   inverse, onesided]: the input is cut or filled with zeros to the length (one-sided inverse: to length / 2 + 1),
//   and the inverse divides by it. m is the length, or length / 2 + 1 for a one-sided forward one.
// ref.STFT: in [signal [N, n, 1 or 2] or [N, n], window or absent], out [N, frames, bins, 2]. ints [length, step].
#include "kernels/reference/fourier.h"
#include "kernels/reference/place.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kDft = "ref.DFT", kStft = "ref.STFT";
constexpr int64_t kMaxLength = int64_t{1} << 26;

bool in_float(DType t, int64_t length) { return t != DType::f64 && is_smooth(length); }

template <class T>
struct Spectrum {
  std::complex<T>* line;
  std::complex<T>* spare;
  Spectrum(std::byte* scratch, int64_t n) : line(reinterpret_cast<std::complex<T>*>(scratch)), spare(line + n) {}
};

Work transform_work(DType t, int64_t units, int64_t length, int sign) {
  Work w;
  w.chunks = std::min<int64_t>(units, 128);
  if (w.chunks == 0) return w;
  w.scratch = 2 * length * static_cast<int64_t>(sizeof(std::complex<double>));
  if (in_float(t, length)) w.state = std::make_shared<const Fourier<float>>(length, sign);
  else w.state = std::make_shared<const Fourier<double>>(length, sign);
  return w;
}

// Of real numbers the second half mirrors the first, exactly.
template <class T>
void mirror(std::complex<T>* z, int64_t n) {
  if (n > 0) z[0] = z[0].real();
  if (n > 0 && n % 2 == 0) z[n / 2] = z[n / 2].real();
  for (int64_t k = 1; k < (n + 1) / 2; ++k) z[n - k] = std::conj(z[k]);
}

bool pairs(const View& v) { return v.dims[v.rank - 1] == 2; }
template <class T>
std::complex<T> load_complex(const View& v, int64_t at, bool complex) {
  return {static_cast<T>(load(v, at)), complex ? static_cast<T>(load(v, at + v.strides[v.rank - 1])) : T(0)};
}
template <class T>
void store_complex(const View& v, int64_t at, std::complex<T> z) {
  store(v, at, z.real());
  if (pairs(v)) store(v, at + v.strides[v.rank - 1], z.imag());
}

Result<Work> prepare_dft(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kDft, 1, 1, 4));
  const View &x = c.in[0], &y = c.out[0];
  int64_t axis = c.ints[0], length = c.ints[1];
  if (!plain_float(x.dtype) || y.dtype != x.dtype || x.rank < 2 || y.rank != x.rank) return bad(kDft, "wrong types or ranks");
  if (axis < 0 || axis >= x.rank - 1) return bad(kDft, "the axis is wrong");
  if (length < 0 || length > kMaxLength) return bad(kDft, "the length is out of range");
  bool inverse = c.ints[2] != 0, onesided = c.ints[3] != 0;
  auto parts = [](const View& v) { return v.dims[v.rank - 1] == 1 || pairs(v); };
  if (!parts(x) || !parts(y)) return bad(kDft, "the last axis is neither real nor complex");
  if (pairs(y) != !(inverse && onesided) || (onesided && !inverse && pairs(x))) return bad(kDft, "real and complex do not fit");
  if (y.dims[axis] != (onesided && !inverse ? length / 2 + 1 : length)) return bad(kDft, "wrong size of output");
  int64_t lines = 1;
  for (int a = 0; a < x.rank - 1; ++a) {
    if (a == axis) continue;
    if (x.dims[a] != y.dims[a]) return bad(kDft, "wrong sizes of output");
    lines *= x.dims[a];
  }
  if (length == 0 && y.count()) return bad(kDft, "the length is 0");
  return transform_work(x.dtype, y.count() ? lines : 0, length, inverse ? 1 : -1);
}

template <class T>
void read_line(const Call& c, int64_t from, std::complex<T>* line) {
  const View& x = c.in[0];
  int64_t axis = c.ints[0], length = c.ints[1];
  bool half = c.ints[2] && c.ints[3];
  int64_t given = std::min(x.dims[axis], half ? length / 2 + 1 : length);
  for (int64_t i = 0; i < given; ++i) line[i] = load_complex<T>(x, from + i * x.strides[axis], pairs(x));
  std::fill(line + given, line + length, std::complex<T>(0));
  if (!half) return;
  // A real result takes no imaginary part at 0 and in the middle.
  mirror(line, length);
}

template <class T>
Status dft(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &y = c.out[0];
  auto& fourier = *static_cast<const Fourier<T>*>(c.state);
  int64_t axis = c.ints[0], length = c.ints[1], lines = 1;
  for (int a = 0; a < x.rank - 1; ++a) lines *= a == axis ? 1 : x.dims[a];
  Spectrum<T> s(c.scratch, length);
  T scale = c.ints[2] ? T(1) / static_cast<T>(length) : T(1);
  Span span = slice(lines, chunk, std::min<int64_t>(lines, 128));
  for (int64_t l = span.begin; l < span.end; ++l) {
    int64_t from = 0, to = 0, left = l;
    for (int a = x.rank - 1; a-- > 0;) {
      if (a == axis) continue;
      from += left % x.dims[a] * x.strides[a], to += left % x.dims[a] * y.strides[a];
      left /= x.dims[a];
    }
    read_line(c, from, s.line);
    auto* made = fourier.run(s.line, s.spare);
    if (!pairs(x)) mirror(made, length);
    for (int64_t k = 0; k < y.dims[axis]; ++k) store_complex(y, to + k * y.strides[axis], made[k] * scale);
  }
  return ok();
}

Status run_dft(const Call& c, int64_t chunk) {
  return in_float(c.in[0].dtype, c.ints[1]) ? dft<float>(c, chunk) : dft<double>(c, chunk);
}

Result<Work> prepare_stft(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kStft, 1, 1, 2));
  const View &x = c.in[0], &y = c.out[0];
  int64_t length = c.ints[0], step = c.ints[1];
  if (!plain_float(x.dtype) || y.dtype != x.dtype) return bad(kStft, "wrong types");
  if ((x.rank != 2 && x.rank != 3) || y.rank != 4 || x.dims[0] != y.dims[0] || y.dims[3] != 2) return bad(kStft, "wrong shapes");
  if (x.rank == 3 && x.dims[2] != 1 && x.dims[2] != 2) return bad(kStft, "the last axis is neither real nor complex");
  if (length < 1 || length > kMaxLength || step < 1 || step > kMaxLength) return bad(kStft, "frame length or step out of range");
  if (y.dims[2] != length && y.dims[2] != length / 2 + 1) return bad(kStft, "wrong number of bins");
  if (y.dims[1] != (x.dims[1] < length ? 0 : (x.dims[1] - length) / step + 1)) return bad(kStft, "wrong number of frames");
  if (present(c, 1) && (!plain_float(c.in[1].dtype) || c.in[1].rank != 1 || c.in[1].dims[0] != length))
    return bad(kStft, "the window is not as long as a frame");
  return transform_work(x.dtype, y.dims[0] * y.dims[1], length, -1);
}

template <class T>
Status stft(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &y = c.out[0];
  auto& fourier = *static_cast<const Fourier<T>*>(c.state);
  int64_t length = c.ints[0], units = y.dims[0] * y.dims[1];
  Spectrum<T> s(c.scratch, length);
  bool complex = x.rank == 3 && pairs(x);
  Span span = slice(units, chunk, std::min<int64_t>(units, 128));
  for (int64_t u = span.begin; u < span.end; ++u) {
    int64_t n = u / y.dims[1], frame = u % y.dims[1];
    for (int64_t i = 0; i < length; ++i) {
      T window = present(c, 1) ? static_cast<T>(load(c.in[1], i * c.in[1].strides[0])) : T(1);
      s.line[i] = load_complex<T>(x, place(x, n, frame * c.ints[1] + i), complex) * window;
    }
    auto* made = fourier.run(s.line, s.spare);
    if (!complex) mirror(made, length);
    for (int64_t k = 0; k < y.dims[2]; ++k) store_complex(y, place(y, n, frame, k), made[k]);
  }
  return ok();
}

Status run_stft(const Call& c, int64_t chunk) {
  return in_float(c.in[0].dtype, c.ints[0]) ? stft<float>(c, chunk) : stft<double>(c, chunk);
}

const Register r1({.name = kDft, .prepare = prepare_dft, .run = run_dft});
const Register r2({.name = kStft, .prepare = prepare_stft, .run = run_stft});

}  // namespace
}  // namespace ge::kernels::reference
