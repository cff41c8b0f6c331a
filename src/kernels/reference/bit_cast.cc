// ref.BitCast: in and out of one shape, of types of the same width: the bits as they are. Types under 8 bits lie
// in the low bits of a byte; signed ones fill it with their sign.
#include "kernels/reference/index.h"

namespace ge::kernels::move {
namespace {

constexpr std::string_view kName = "ref.BitCast";

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1, 1));
  if (bits(c.in[0].dtype) != bits(c.out[0].dtype) || !same_dims(c.in[0], c.out[0])) return bad_call(kName, "widths or sizes differ");
  return one_chunk(c);
}

Status run(const Call& c, int64_t) {
  const View &x = c.in[0], &y = c.out[0];
  int narrow = bits(y.dtype) < 8 ? bits(y.dtype) : 0;
  bool sign = narrow && is_integer(y.dtype) && is_signed(y.dtype);
  each_index(y, [&](const int64_t* index) {
    std::byte* to = address(y, index);
    copy_element(to, address(x, index), y.dtype);
    if (!narrow) return true;
    unsigned v = std::to_integer<unsigned>(*to) & ((1u << narrow) - 1);
    if (sign && v >> (narrow - 1)) v |= 0xffu << narrow & 0xffu;
    *to = static_cast<std::byte>(v);
    return true;
  });
  return ok();
}

const Register r({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::move
