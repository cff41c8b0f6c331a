// BitCast: the same bytes as another type.
#include "base/text.h"
#include "kernels/move/element.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  int64_t to = attr_int(c.node, "to", 0);
  if (to <= 0 || to >= kDTypeCount || size_of(static_cast<DType>(to)) == 0 || static_cast<DType>(to) == DType::string) return c.fail(format("attribute to = {} is no type of numbers", to));
  auto t = static_cast<DType>(to);
  if (bits(t) != bits(c.dtype(0))) return c.fail(format("{} and {} differ in width, so that one cannot be read as the other", name(c.dtype(0)), name(t)));
  c.out[0] = c.type(0);
  c.out[0].dtype = t;
  return ok();
}

Status reference(LowerContext& c) {
  c.call("ref.BitCast", {c.in(0)}, {c.out()});
  return ok();
}

const Register r(OpDef{.name = "BitCast", .min_inputs = 1, .max_inputs = 1, .since = 26, .attrs = {{"to", "Type of the output."}},
                       .doc = "The same bits as another type of the same width.", .infer = infer, .reference = reference});

}  // namespace
}  // namespace ge::ops
