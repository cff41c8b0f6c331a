#include "kernels/cube/conv_shape.h"

#include <string>

#include "base/text.h"

namespace ge::kernels::cube {
namespace {

Error bad(std::string_view kernel, std::string_view what) {
  return error(code::kBadOp, format("{}: {}", kernel, what));
}

Status check_operand(const View& v, int rank, std::string_view kernel, std::string_view which, bool or_bf16) {
  if (v.dtype != DType::f32 && !(or_bf16 && v.dtype == DType::bf16))
    return bad(kernel, format("{} must be f32{}", which, or_bf16 ? " or bf16" : ""));
  if (v.rank != rank + 2 || !v.dims || !v.strides)
    return bad(kernel, format("{} must have {} axes", which, rank + 2));
  for (int i = 0; i < v.rank; ++i) {
    if (v.dims[i] < 0 || v.dims[i] > kMaxConvNumber)
      return bad(kernel, format("{} has a size out of range", which));
    if (v.strides[i] > (int64_t{1} << 48) || v.strides[i] < -(int64_t{1} << 48))
      return bad(kernel, format("{} has a stride out of range", which));
  }
  return ok();
}

// Fills everything but pad_end; `second` is ints[1] (groups, or the kind of pooling).
ConvShape fill(const Call& call) {
  ConvShape s;
  const View &x = call.in[0], &y = call.out[0];
  s.rank = static_cast<int>(call.ints[0]);
  s.n = x.dims[0], s.c = x.dims[1], s.m = y.dims[1];
  RowStrides xs = row_strides(x), ys = row_strides(y);
  s.xn = xs.n, s.xc = xs.c, s.yn = ys.n, s.yc = ys.c;
  for (int i = 0; i < s.rank; ++i) {
    int a = 3 - s.rank + i;
    s.in[a] = x.dims[2 + i], s.out[a] = y.dims[2 + i];
    s.k[a] = call.ints[2 + i];
    s.stride[a] = call.ints[2 + s.rank + i];
    s.dilation[a] = call.ints[2 + 2 * s.rank + i];
    s.pad[a] = call.ints[2 + 3 * s.rank + i];
  }
  for (int a = 0; a < 3; ++a) s.xs[a] = xs.s[a], s.ys[a] = ys.s[a];
  return s;
}

Status check_numbers(const Call& call, size_t min_ints, std::string_view kernel, bool or_bf16) {
  if (call.in.empty() || call.out.empty()) return bad(kernel, "needs an input and an output");
  if (call.ints.empty() || call.ints[0] < 1 || call.ints[0] > 3)
    return bad(kernel, "takes 1 to 3 spatial axes");
  int rank = static_cast<int>(call.ints[0]);
  if (call.ints.size() < min_ints) return bad(kernel, "has too few parameters");
  GE_RETURN_IF_ERROR(check_operand(call.in[0], rank, kernel, "the input", or_bf16));
  GE_RETURN_IF_ERROR(check_operand(call.out[0], rank, kernel, "the output", or_bf16));
  if (call.in[0].dims[0] != call.out[0].dims[0]) return bad(kernel, "batch sizes differ");
  for (int i = 0; i < 3 * rank; ++i)
    if (call.ints[2 + i] < 1 || call.ints[2 + i] > kMaxConvNumber)
      return bad(kernel, "kernel size, stride and dilation must be positive");
  for (int i = 0; i < rank; ++i)
    if (call.ints[2 + 3 * rank + i] < 0 || call.ints[2 + 3 * rank + i] > kMaxConvNumber)
      return bad(kernel, "pads must not be negative");
  ConvShape s = fill(call);
  constexpr int64_t kLimit = int64_t{1} << 46;
  if (!product_within({s.k[0], s.k[1], s.k[2]}, int64_t{1} << 31))
    return bad(kernel, "the kernel window is too large");
  if (!product_within({s.n, s.out[0], s.out[1], s.out[2], s.m}, kLimit) ||
      !product_within({s.n, s.in[0], s.in[1], s.in[2], s.c}, kLimit))
    return bad(kernel, "an operand is too large");
  for (int a = 0; a < 3; ++a)
    if (!product_within({s.out[a], s.stride[a]}, kLimit) ||
        !product_within({s.k[a], s.dilation[a]}, kLimit))
      return bad(kernel, "a window lies too far outside the input");
  return ok();
}

}  // namespace

bool product_within(std::initializer_list<int64_t> numbers, int64_t limit) {
  for (int64_t v : numbers)
    if (v == 0) return true;
  int64_t p = 1;
  for (int64_t v : numbers)
    if (__builtin_mul_overflow(p, v, &p) || p > limit) return false;
  return true;
}

RowStrides row_strides(const View& v) {
  RowStrides r;
  r.n = v.strides[0], r.c = v.strides[1];
  int rank = v.rank - 2;
  for (int i = 0; i < rank; ++i) r.s[3 - rank + i] = v.strides[2 + i];
  return r;
}

bool present(const Call& call, size_t input) {
  return input < call.in.size() && call.in[input].dtype != DType::none;
}

ConvShape conv_shape_unchecked(const Call& call) {
  ConvShape s = fill(call);
  s.groups = call.ints[1];
  return s;
}

ConvShape pool_shape_unchecked(const Call& call) {
  ConvShape s = fill(call);
  for (int i = 0; i < s.rank; ++i) s.pad_end[3 - s.rank + i] = call.ints[2 + 4 * s.rank + i];
  return s;
}

Result<ConvShape> conv_shape(const Call& call, std::string_view kernel, bool or_bf16) {
  size_t rank =
      call.ints.empty() ? 0 : static_cast<size_t>(std::clamp<int64_t>(call.ints[0], 0, 3));
  GE_RETURN_IF_ERROR(check_numbers(call, 3 + 4 * rank, kernel, or_bf16));
  ConvShape s = conv_shape_unchecked(call);
  if (s.groups < 1 || s.c % s.groups || s.m % s.groups)
    return bad(kernel, "the channels cannot be divided into the groups");
  if (s.c == 0 && s.m != 0) return bad(kernel, "needs at least one input channel");
  return s;
}

Result<ConvShape> pool_shape(const Call& call, std::string_view kernel) {
  size_t rank =
      call.ints.empty() ? 0 : static_cast<size_t>(std::clamp<int64_t>(call.ints[0], 0, 3));
  GE_RETURN_IF_ERROR(check_numbers(call, 2 + 5 * rank, kernel, false));
  for (size_t i = 0; i < rank; ++i) {
    int64_t v = call.ints[2 + 4 * rank + i];
    if (v < 0 || v > kMaxConvNumber) return bad(kernel, "pads must not be negative");
  }
  ConvShape s = pool_shape_unchecked(call);
  if (s.c != s.m) return bad(kernel, "input and output must have the same channels");
  return s;
}

double conv_operations(const Call& call) {
  ConvShape s = conv_shape_unchecked(call);
  return 2.0 * static_cast<double>(s.out_pixels()) * static_cast<double>(s.m) * static_cast<double>(s.taps()) *
         static_cast<double>(s.c / s.groups);
}

Status check_bias_and_residual(const Call& call, const ConvShape& s, std::string_view kernel, bool or_bf16) {
  if (present(call, 2)) {
    const View& b = call.in[2];
    if (b.dtype != DType::f32 || b.rank != 1 || !b.dims || !b.strides || b.dims[0] != s.m ||
        !b.dense())
      return bad(kernel, "the bias must be a dense f32 vector, one number for each output channel");
  }
  if (present(call, 3)) {
    const View& r = call.in[3];
    GE_RETURN_IF_ERROR(check_operand(r, s.rank, kernel, "the residual", or_bf16));
    for (int i = 0; i < r.rank; ++i)
      if (r.dims[i] != call.out[0].dims[i])
        return bad(kernel, "the residual must have the output's shape");
  }
  return ok();
}

bool has_elements(const View& w, std::initializer_list<int64_t> sizes) {
  if (w.rank < 1 || w.rank > kMaxRank || !w.dims) return false;
  constexpr int64_t kLimit = int64_t{1} << 46;
  int64_t have = 1, want = 1;
  for (int i = 0; i < w.rank; ++i) {
    if (w.dims[i] < 0 || !product_within({have, w.dims[i]}, kLimit)) return false;
    have *= w.dims[i];
  }
  for (int64_t v : sizes) {
    if (!product_within({want, v}, kLimit)) return false;
    want *= v;
  }
  return have == want;
}

Status check_packed(const View& w, std::initializer_list<int64_t> sizes, std::string_view kernel, DType type) {
  if (w.dtype != type || w.rank < 1 || w.rank > kMaxRank || !w.dims || !w.strides || !w.dense())
    return bad(kernel, format("the packed weights must be dense {}", name(type)));
  if (!has_elements(w, sizes)) return bad(kernel, "the packed weights do not have the right size");
  return ok();
}

int64_t chunk_count(int64_t units, double cost) {
  if (units <= 0) return 0;
  double by_cost = static_cast<double>(units) * cost / 20000.0;
  int64_t n = std::min<int64_t>(units, by_cost >= 128 ? 128 : static_cast<int64_t>(by_cost));
  if (n <= 1) return 1;
  return n & ~int64_t{1};
}

}  // namespace ge::kernels::cube
