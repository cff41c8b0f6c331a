// ref.QuantizeLinear and ref.DequantizeLinear: one element at a time, every granularity, any strides.
//
// in: x; scale and zero point (or absent), both of the same shape: one element (for the whole tensor), or the
//     rank of x with each size that of x, 1, or, on the axis of the blocks, the number of blocks. out: y.
// ints: [axis of the blocks or -1, block, precision (a DType, the type of the quotient), saturate (float8)];
//       ref.DequantizeLinear reads the first two.
//
// Integers round to nearest even and saturate; NaN becomes the smallest value of the type. A zero point of 0
// changes nothing of a float8.
#include "kernels/move/element.h"
#include "kernels/reference/access.h"

namespace ge::kernels::reference {
namespace {

constexpr double kCycles = 40;

bool quantized(DType t) { return (is_integer(t) && bits(t) <= 16) || (is_float(t) && bits(t) <= 8 && t != DType::f8e8m0); }
bool scale_type(DType t) { return plain_float(t) || t == DType::f8e8m0 || t == DType::i32; }

Status check_granularity(const Call& c, std::string_view kernel) {
  const View& x = c.in[0];
  const int64_t axis = c.ints[0], block = c.ints[1];
  if (axis < -1 || axis >= x.rank) return bad(kernel, "the axis of the blocks is out of range");
  if (axis >= 0 && (block < 1 || block > kMaxCount)) return bad(kernel, format("blocks of {} elements are not possible", block));
  for (size_t i = 1; i < 3; ++i) {
    if (!present(c, i)) continue;
    const View& v = c.in[i];
    if (i == 2 && !same_dims(v, c.in[1])) return bad(kernel, "the zero point has another shape than the scale");
    if (v.count() == 1 && (v.rank != x.rank || axis < 0)) continue;
    if (v.rank != x.rank) return bad(kernel, "the scale has another rank than the input");
    for (int a = 0; a < x.rank; ++a) {
      const int64_t want = a == axis ? (x.dims[a] + block - 1) / block : x.dims[a];
      if (v.dims[a] != want && (v.dims[a] != 1 || a == axis)) return bad(kernel, format("the scale has size {} on axis {}", v.dims[a], a));
    }
  }
  return ok();
}

// The offset of the scale (or zero point) that belongs to an element of x.
int64_t parameter_offset(const View& v, const int64_t* index, int rank, int64_t axis, int64_t block) {
  if (v.rank != rank || v.count() == 1) return 0;
  int64_t at = 0;
  for (int a = 0; a < rank; ++a) at += (a == axis ? index[a] / block : v.dims[a] == 1 ? 0 : index[a]) * v.strides[a];
  return at;
}

double element(const View& v, int64_t offset) { return move::load_f64(v.dtype, v.data + offset * size_of(v.dtype)); }

float rounded_to(DType t, float x) {
  if (t == DType::f16) return f16_to_f32(f32_to_f16(x));
  if (t == DType::bf16) return bf16_to_f32(f32_to_bf16(x));
  return x;
}

// x / scale, both first brought to the precision.
double quotient(DType precision, double x, double scale) {
  if (precision == DType::f64) return x / scale;
  const float a = rounded_to(precision, static_cast<float>(x)), b = rounded_to(precision, static_cast<float>(scale));
  return rounded_to(precision, a / b);
}

void store_quantized(const View& y, int64_t offset, double q, double zero, bool has_zero, bool saturate) {
  const DType t = y.dtype;
  std::byte* to = y.data + offset * size_of(t);
  if (is_float(t)) {
    if (has_zero && (zero != 0 || t == DType::f4e2m1)) q += zero;
    return move::store_f64(t, to, q, {.saturate = saturate});
  }
  const double low = is_signed(t) ? -std::ldexp(1.0, bits(t) - 1) : 0, high = low + std::ldexp(1.0, bits(t)) - 1;
  q = std::nearbyint(q) + zero;
  move::store_i64(t, to, static_cast<int64_t>(!(q >= low) ? low : q > high ? high : q));
}

Status check_quantize(const Call& c) {
  constexpr std::string_view kName = "ref.QuantizeLinear";
  GE_RETURN_IF_ERROR(check_call(c, kName, 2, 1, 4));
  if (c.in.size() > 3) return bad(kName, "too many operands");
  if (!plain_float(c.in[0].dtype) && c.in[0].dtype != DType::i32) return bad(kName, format("cannot quantize {}", name(c.in[0].dtype)));
  if (!scale_type(c.in[1].dtype)) return bad(kName, "wrong type of scale");
  if (!quantized(c.out[0].dtype) || (present(c, 2) && c.in[2].dtype != c.out[0].dtype)) return bad(kName, "wrong type of zero point or output");
  if (!same_dims(c.in[0], c.out[0])) return bad(kName, "sizes differ");
  if (c.ints[2] < 0 || c.ints[2] >= kDTypeCount || !plain_float(static_cast<DType>(c.ints[2]))) return bad(kName, "wrong precision");
  return check_granularity(c, kName);
}

Result<Work> prepare_quantize(const Call& c) {
  GE_RETURN_IF_ERROR(check_quantize(c));
  return Work{.chunks = cut(c.in[0].count(), kCycles)};
}

// f(index, offset of x, offset of y, offsets of scale and zero point) for each element of the chunk.
template <class F>
void each_element(const Call& c, int64_t chunk, F f) {
  const View& x = c.in[0];
  Span s = slice(x.count(), chunk, cut(x.count(), kCycles));
  Walker<2> w(x);
  w.follow(0, x);
  w.follow(1, c.out[0]);
  w.seek(s.begin);
  for (int64_t i = s.begin; i < s.end; ++i, w.next()) {
    const int64_t scale = parameter_offset(c.in[1], w.index, x.rank, c.ints[0], c.ints[1]);
    const int64_t zero = present(c, 2) ? parameter_offset(c.in[2], w.index, x.rank, c.ints[0], c.ints[1]) : 0;
    f(w.offset[0], w.offset[1], scale, zero);
  }
}

Status run_quantize(const Call& c, int64_t chunk) {
  const bool has_zero = present(c, 2);
  each_element(c, chunk, [&](int64_t x, int64_t y, int64_t s, int64_t z) {
    const double q = quotient(static_cast<DType>(c.ints[2]), element(c.in[0], x), element(c.in[1], s));
    store_quantized(c.out[0], y, q, has_zero ? element(c.in[2], z) : 0, has_zero, c.ints[3] != 0);
  });
  return ok();
}

Status check_dequantize(const Call& c) {
  constexpr std::string_view kName = "ref.DequantizeLinear";
  GE_RETURN_IF_ERROR(check_call(c, kName, 2, 1, 2));
  if (c.in.size() > 3) return bad(kName, "too many operands");
  if (!quantized(c.in[0].dtype) && c.in[0].dtype != DType::i32) return bad(kName, format("cannot dequantize {}", name(c.in[0].dtype)));
  if (!scale_type(c.in[1].dtype)) return bad(kName, "wrong type of scale");
  if (present(c, 2) && c.in[2].dtype != c.in[0].dtype) return bad(kName, "the zero point has another type than the input");
  if (!plain_float(c.out[0].dtype) && c.out[0].dtype != DType::f8e8m0) return bad(kName, "wrong type of output");
  if (!same_dims(c.in[0], c.out[0])) return bad(kName, "sizes differ");
  return check_granularity(c, kName);
}

Result<Work> prepare_dequantize(const Call& c) {
  GE_RETURN_IF_ERROR(check_dequantize(c));
  return Work{.chunks = cut(c.in[0].count(), kCycles)};
}

Status run_dequantize(const Call& c, int64_t chunk) {
  const bool has_zero = present(c, 2), wide = c.out[0].dtype == DType::f64;
  const View& y = c.out[0];
  each_element(c, chunk, [&](int64_t ix, int64_t iy, int64_t s, int64_t z) {
    const double x = element(c.in[0], ix) - (has_zero ? element(c.in[2], z) : 0), scale = element(c.in[1], s);
    const double product = wide ? x * scale : static_cast<double>(static_cast<float>(x) * static_cast<float>(scale));
    move::store_f64(y.dtype, y.data + iy * size_of(y.dtype), product);
  });
  return ok();
}

const Register r1({.name = "ref.QuantizeLinear", .prepare = prepare_quantize, .run = run_quantize});
const Register r2({.name = "ref.DequantizeLinear", .prepare = prepare_dequantize, .run = run_dequantize});

}  // namespace
}  // namespace ge::kernels::reference
