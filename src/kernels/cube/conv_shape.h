// ConvShape: the numbers of a convolution or pooling task, checked, written as if every task had
// the three spatial axes depth, height, width (missing leading ones are 1). Shared by cube.conv,
// cube.depthwise and the pools; knows nothing of how they compute.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "kernels/kernel.h"
#include "tensor/half.h"

namespace ge::kernels::cube {

// The largest size, stride, pad or dilation that the kernels take: products of two fit an int64.
inline constexpr int64_t kMaxConvNumber = (int64_t{1} << 31) - 1;

struct ConvShape {
  int rank = 0;  // spatial axes of the operands, 1..3
  int64_t n = 0, c = 0, m = 0, groups = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int64_t k[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
  int64_t pad[3] = {0, 0, 0}, pad_end[3] = {0, 0, 0};
  // Strides of x and y in elements: batch, channel, spatial (0 for an axis that the view lacks).
  int64_t xn = 0, xc = 0, xs[3] = {0, 0, 0};
  int64_t yn = 0, yc = 0, ys[3] = {0, 0, 0};

  int64_t taps() const { return k[0] * k[1] * k[2]; }
  int64_t out_rows() const { return n * out[0] * out[1]; }  // rows of out[2] pixels each
  int64_t out_pixels() const { return out_rows() * out[2]; }
  bool empty() const { return out_pixels() == 0 || m == 0; }
};

// The range of kernel taps [first, last) of an axis whose input index lies inside the input.
struct TapRange {
  int64_t first, last;
};
inline TapRange valid_taps(const ConvShape& s, int axis, int64_t o) {
  int64_t start = o * s.stride[axis] - s.pad[axis], d = s.dilation[axis];
  int64_t room = s.in[axis] - start;
  if (d == 1 && start >= 0 && room >= s.k[axis]) return {0, s.k[axis]};
  int64_t first = start >= 0 ? 0 : std::min((-start + d - 1) / d, s.k[axis]);
  int64_t last = room <= 0 ? 0 : std::min((room + d - 1) / d, s.k[axis]);
  return {first, std::max(first, last)};
}

// Reads x = in[0], y = out[0] and ints [rank, groups, k, stride, dilation, pad_begin, act].
// Both f32; with or_bf16 either may be bf16.
Result<ConvShape> conv_shape(const Call& call, std::string_view kernel, bool or_bf16 = false);
// Reads x = in[0], y = out[0] and ints [rank, kind, k, stride, dilation, pad_begin, pad_end, ...];
// m = c and groups = 1.
Result<ConvShape> pool_shape(const Call& call, std::string_view kernel);
// Both again for run(), on a Call that prepare() has accepted.
ConvShape conv_shape_unchecked(const Call& call);
ConvShape pool_shape_unchecked(const Call& call);

// Of a direct sum over the windows, for Kernel::operations of the convolutions.
double conv_operations(const Call& call);

// bias is absent or dense f32 [m]; residual is absent or f32, or as said bf16, of y's dims.
Status check_bias_and_residual(const Call& call, const ConvShape& s, std::string_view kernel, bool or_bf16);
// Packed weights are dense, f32 or as said (any axes), of exactly the product of `sizes` elements.
Status check_packed(const View& w, std::initializer_list<int64_t> sizes, std::string_view kernel,
                    DType type = DType::f32);
// True if w has exactly the product of `sizes` elements.
bool has_elements(const View& w, std::initializer_list<int64_t> sizes);
bool present(const Call& call, size_t input);
// True if the product of all numbers, each >= 0, is at most limit.
bool product_within(std::initializer_list<int64_t> numbers, int64_t limit);

// Elements of operands that are f32, or bf16 as uint16_t.
inline float as_f32(float x) { return x; }
inline float as_f32(uint16_t x) { return bf16_to_f32(x); }
inline void assign(float& to, float x) { to = x; }
inline void assign(uint16_t& to, float x) { to = f32_to_bf16(x); }

// Strides of a view with the roles of ConvShape's.
struct RowStrides {
  int64_t n = 0, c = 0, s[3] = {0, 0, 0};
};
RowStrides row_strides(const View& v);

// Into how many chunks to cut `units` equal pieces of `cost` (roughly: cycles on one core) each.
// At most 128, even when more than one, none much below 20,000 cycles.
int64_t chunk_count(int64_t units, double cost);
// Piece i of n of the range [0, units).
struct Range {
  int64_t begin, end;
};
inline Range piece(int64_t units, int64_t i, int64_t n) {
  int64_t q = units / n, r = units % n;
  int64_t begin = q * i + std::min(i, r);
  return {begin, begin + q + (i < r ? 1 : 0)};
}

}  // namespace ge::kernels::cube
