// Moves of patches, any plain type unless said otherwise.
// ref.CenterCropPad: in and out of one rank: along each axis the middle of the input, or the input in the middle of
//   zeros; an odd element too many goes to the end.
// ref.Col2Im: in [N, C * taps, windows], out [N, C, d...] of the same number type or complex: each element added at its tap's
//   place. ints [r, (block, dilation, pad begin, pad end, stride) for each of the r axes].
// ref.MaxUnpool: in [x, index of x's sizes], out: zeros with x at the indices, which count over a tensor with the
//   sizes ints[0...]; what lies outside the output is left out.
#include "kernels/move/check.h"
#include "kernels/reference/index.h"
#include "kernels/reference/place.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kCrop = "ref.CenterCropPad", kCol = "ref.Col2Im", kUnpool = "ref.MaxUnpool";

void fill_zero(const View& y) {
  move::each_index(y, [&](const int64_t* index) {
    std::memset(move::address(y, index), 0, static_cast<size_t>(size_of(y.dtype)));
    return true;
  });
}

Result<Work> prepare_crop(const Call& c) {
  GE_RETURN_IF_ERROR(move::check_call(c, kCrop, 1, 1, 1, 1));
  if (c.in[0].dtype != c.out[0].dtype || c.in[0].rank != c.out[0].rank) return bad(kCrop, "types or ranks differ");
  return move::one_chunk(c);
}
Status run_crop(const Call& c, int64_t) {
  const View &x = c.in[0], &y = c.out[0];
  move::each_index(y, [&](const int64_t* index) {
    int64_t from[kMaxRank];
    bool inside = true;
    for (int a = 0; a < y.rank; ++a) {
      // Halves are taken of positive differences, so that they round down both ways.
      int64_t more = x.dims[a] - y.dims[a];
      from[a] = index[a] + (more > 0 ? more / 2 : -(-more / 2));
      inside = inside && from[a] >= 0 && from[a] < x.dims[a];
    }
    if (inside) move::copy_element(move::address(y, index), move::address(x, from), y.dtype);
    else std::memset(move::address(y, index), 0, static_cast<size_t>(size_of(y.dtype)));
    return true;
  });
  return ok();
}

struct Axis {
  int64_t block, dilation, begin, end, stride, windows;
};

Status check_col(const Call& c, Axis* axes) {
  GE_RETURN_IF_ERROR(check_call(c, kCol, 1, 1, 1));
  const View &x = c.in[0], &y = c.out[0];
  int64_t r = c.ints[0];
  if ((!plain_numeric(x.dtype) && !is_complex(x.dtype)) || y.dtype != x.dtype) return bad(kCol, "takes numbers of one type");
  if (r < 1 || r > kMaxRank - 2 || y.rank != r + 2 || x.rank != 3 || c.ints.size() != static_cast<size_t>(1 + 5 * r))
    return bad(kCol, "wrong ranks or parameters");
  constexpr int64_t kLimit = int64_t{1} << 31;
  int64_t taps = 1, windows = 1;
  for (int64_t a = 0; a < r; ++a) {
    const int64_t* p = c.ints.data() + 1 + 5 * a;
    if (p[0] < 1 || p[1] < 1 || p[4] < 1 || p[2] < 0 || p[3] < 0) return bad(kCol, "parameters out of range");
    for (int i = 0; i < 5; ++i)
      if (p[i] > kLimit) return bad(kCol, "parameters out of range");
    if (p[0] > kLimit / p[1] || y.dims[a + 2] > kLimit) return bad(kCol, "parameters out of range");
    int64_t room = y.dims[a + 2] + p[2] + p[3] - p[1] * (p[0] - 1) - 1;
    axes[a] = {p[0], p[1], p[2], p[3], p[4], room < 0 ? 0 : room / p[4] + 1};
    if (taps > kLimit / p[0] || (axes[a].windows && windows > kLimit / axes[a].windows)) return bad(kCol, "too many windows");
    taps *= p[0], windows *= axes[a].windows;
  }
  if (x.dims[0] != y.dims[0] || x.dims[1] / taps != y.dims[1] || x.dims[1] % taps || x.dims[2] != windows)
    return bad(kCol, format("{} does not hold {} windows of {} taps", move::dims_text(x), windows, taps));
  return ok();
}
Result<Work> prepare_col(const Call& c) {
  Axis axes[kMaxRank];
  GE_RETURN_IF_ERROR(check_col(c, axes));
  return move::one_chunk(c);
}

// Adds as integers where they are, so that 64 bits stay exact.
void add_element(const View& y, int64_t to, const View& x, int64_t from) {
  if (is_complex(y.dtype)) {
    for (int i = 0; i < 2; ++i) add_element(Part(y, i).view, 2 * to, Part(x, i).view, 2 * from);
    return;
  }
  if (plain_integer(y.dtype))
    store_int(y, to, static_cast<int64_t>(static_cast<uint64_t>(load_int(y, to)) + static_cast<uint64_t>(load_int(x, from))));
  else store(y, to, load(y, to) + load(x, from));
}

Status run_col(const Call& c, int64_t) {
  const View &x = c.in[0], &y = c.out[0];
  Axis axes[kMaxRank];
  GE_RETURN_IF_ERROR(check_col(c, axes));
  int r = y.rank - 2;
  fill_zero(y);
  int64_t taps = 1;
  for (int a = 0; a < r; ++a) taps *= axes[a].block;
  for (int64_t n = 0; n < x.dims[0]; ++n)
    for (int64_t row = 0; row < x.dims[1]; ++row)
      for (int64_t w = 0; w < x.dims[2]; ++w) {
        int64_t to = n * y.strides[0] + row / taps * y.strides[1], tap = row % taps, window = w;
        bool inside = true;
        for (int a = r; a-- > 0;) {
          int64_t i = window % axes[a].windows * axes[a].stride + tap % axes[a].block * axes[a].dilation - axes[a].begin;
          window /= axes[a].windows, tap /= axes[a].block;
          inside = inside && i >= 0 && i < y.dims[a + 2];
          to += i * y.strides[a + 2];
        }
        if (inside) add_element(y, to, x, place(x, n, row, w));
      }
  return ok();
}

Result<Work> prepare_unpool(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kUnpool, 2, 1));
  GE_RETURN_IF_ERROR(move::check_call(c, kUnpool, 2, 2, 1, 1));
  const View &x = c.in[0], &i = c.in[1], &y = c.out[0];
  if (x.dtype != y.dtype || i.dtype != DType::i64 || !same_dims(x, i) || y.rank != x.rank) return bad(kUnpool, "wrong inputs");
  if (c.ints.size() != static_cast<size_t>(x.rank)) return bad(kUnpool, "not one size for each axis");
  int64_t count = 1;
  for (int64_t d : c.ints) {
    if (d < 0 || (d && count > kMaxCount / d)) return bad(kUnpool, "a size is out of range");
    count *= d ? d : 1;
  }
  return move::one_chunk(c);
}
Status run_unpool(const Call& c, int64_t) {
  const View &x = c.in[0], &y = c.out[0];
  fill_zero(y);
  int64_t count = 1, wrong = -1;
  for (int64_t d : c.ints) count *= d;
  bool good = move::each_index(x, [&](const int64_t* index) {
    int64_t at = load_int(c.in[1], (move::address(c.in[1], index) - c.in[1].data) / 8), to[kMaxRank];
    wrong = at;
    if (at < 0 || at >= count) return false;
    bool inside = true;
    for (int a = y.rank; a-- > 0; at /= c.ints[static_cast<size_t>(a)]) {
      to[a] = at % c.ints[static_cast<size_t>(a)];
      inside = inside && to[a] < y.dims[a];
    }
    if (inside) move::copy_element(move::address(y, to), move::address(x, index), y.dtype);
    return true;
  });
  return good ? ok() : Status(error(code::kRunFailed, format("MaxUnpool: index {} is outside 0..{}", wrong, count - 1)));
}

const Register r1({.name = kCrop, .prepare = prepare_crop, .run = run_crop});
const Register r2({.name = kCol, .prepare = prepare_col, .run = run_col});
const Register r3({.name = kUnpool, .prepare = prepare_unpool, .run = run_unpool});

}  // namespace
}  // namespace ge::kernels::reference
