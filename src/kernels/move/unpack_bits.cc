// move.unpack_bits: in 0 u8 [..., n]; out 0 u4 or u2 [..., n * 8 / bits]; any strides. ints: [bits], 4 or 2.
// The lowest bits of a byte come first.
#include "kernels/move/check.h"
#include "kernels/move/nest.h"

namespace ge::kernels::move {
namespace {

constexpr std::string_view kName = "move.unpack_bits";

int64_t outer_count(const View& v) {
  int64_t n = 1;
  for (int a = 0; a < v.rank - 1; ++a) n *= v.dims[a];
  return n;
}

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1, 1));
  const View &x = c.in[0], &y = c.out[0];
  if (c.ints.size() != 1 || (c.ints[0] != 2 && c.ints[0] != 4)) return bad_call(kName, "takes numbers of 2 or 4 bits");
  if (x.dtype != DType::u8 || y.dtype != (c.ints[0] == 4 ? DType::u4 : DType::u2)) return bad_call(kName, "wrong types");
  if (x.rank < 1 || y.rank != x.rank || y.dim(-1) != x.dim(-1) * (8 / c.ints[0])) return bad_call(kName, "sizes differ");
  for (int a = 0; a < x.rank - 1; ++a)
    if (x.dims[a] != y.dims[a]) return bad_call(kName, "sizes differ");
  Work w;
  w.chunks = y.count() ? chunks_for(outer_count(x), y.dim(-1)) : 0;
  return w;
}

Status run(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &y = c.out[0];
  const int64_t bits = c.ints[0], each = 8 / bits, outer = outer_count(x), n = x.dim(-1);
  const Span s = chunk_span(outer, chunks_for(outer, y.dim(-1)), chunk);
  for (int64_t row = s.begin; row < s.end; ++row) {
    int64_t ix = 0, iy = 0, left = row;
    for (int a = x.rank - 2; a >= 0; --a) {
      const int64_t i = left % x.dims[a];
      left /= x.dims[a];
      ix += i * x.strides[a], iy += i * y.strides[a];
    }
    for (int64_t i = 0; i < n; ++i) {
      const unsigned byte = x.as<uint8_t>()[ix + i * x.stride(-1)];
      for (int64_t k = 0; k < each; ++k) y.as<uint8_t>()[iy + (i * each + k) * y.stride(-1)] = static_cast<uint8_t>(byte >> (k * bits) & ((1u << bits) - 1));
    }
  }
  return ok();
}

const Register r({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::move
