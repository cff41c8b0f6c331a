// Kernel "cube.pack_integer": in[0] u8 or i8 [batch..., K, N], any strides; out[0] i8
// [batch..., N/16, K/4, 16, 4] and out[1] i32 [batch..., 16 * panels], dense: the right side of
// cube.integer_product, made while running.
#include "kernels/cube/check.h"
#include "kernels/cube/integer.h"

namespace ge::kernels::cube {
namespace {

Error bad(const char* why) { return error(code::kBadOp, std::string("cube.pack_integer: ") + why); }

Result<Work> prepare(const Call& call) {
  if (call.in.size() != 1 || call.out.size() != 2) return bad("takes 1 input and 2 outputs");
  const View &b = call.in[0], &p = call.out[0], &sums = call.out[1];
  if (b.dtype != DType::u8 && b.dtype != DType::i8) return bad("packs bytes");
  GE_RETURN_IF_ERROR(check_view(b, b.dtype, 2, kMaxRank - 2, "input of cube.pack_integer"));
  GE_RETURN_IF_ERROR(check_view(p, DType::i8, b.rank + 2, b.rank + 2, "output of cube.pack_integer"));
  GE_RETURN_IF_ERROR(check_view(sums, DType::i32, b.rank - 1, b.rank - 1, "sums of cube.pack_integer"));
  const int64_t k = b.dim(-2), n = b.dim(-1), panels = (n + 15) / 16;
  if (p.dim(-1) != 4 || p.dim(-2) != 16 || p.dim(-3) != quads(k) || p.dim(-4) != panels || sums.dim(-1) != panels * 16)
    return bad("wrong sizes");
  int64_t batches = 1;
  for (int i = 0; i < b.rank - 2; ++i) {
    if (p.dims[i] != b.dims[i] || sums.dims[i] != b.dims[i]) return bad("wrong sizes");
    batches *= b.dims[i];
  }
  if (!p.dense() || !sums.dense()) return bad("the outputs must be dense");
  Work work;
  work.chunks = n ? batches : 0;
  return work;
}

Status run(const Call& call, int64_t chunk) {
  View b = call.in[0];
  int64_t at = 0, left = chunk;
  for (int i = b.rank - 2; i-- > 0; left /= b.dims[i]) at += left % b.dims[i] * b.strides[i];
  b.data += at;
  b.dims += b.rank - 2, b.strides += b.rank - 2, b.rank = 2;
  const int64_t panels = (b.dim(1) + 15) / 16;
  pack_integer(b, call.out[0].as<int8_t>() + chunk * packed_integer_bytes(b.dim(0), b.dim(1)), call.out[1].as<int32_t>() + chunk * panels * 16);
  return ok();
}

const Register r(Kernel{.name = "cube.pack_integer", .unit = Unit::cube, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::cube
