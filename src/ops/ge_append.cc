// ge.Append: a cache [B, H, P, D] (or none) with new rows [B, H, S, D] behind what counts of each batch entry, as
// [B, H, T, D]: inputs past, new, place [B] of each entry's first new row, T. In place where the past lies in front of
// the output, as that of a state does.
#include "base/text.h"
#include "ops/op.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  if (!c.ranked(1)) {
    c.set_unranked(0, c.dtype(1));
    return ok();
  }
  if (c.rank(1) != 4) return c.fail(format("new rows have {} axes, not 4", c.rank(1)));
  auto dims = c.dims(1);
  auto total = c.elements(3);
  dims[2] = total && total->size() == 1 ? (*total)[0] : c.fresh("total");
  c.set(0, c.dtype(1), std::move(dims));
  return ok();
}

Status lower(LowerContext& c) {
  c.call("move.append", {c.in(0), c.in(1), c.in(2)}, {c.out()});
  return ok();
}

const Register r(OpDef{.name = "ge.Append", .min_inputs = 4, .max_inputs = 4, .optional = 1u << 0, .doc = "a cache with new rows behind what counts of each batch entry",
                       .infer = infer, .reference = lower, .lower = lower, .updates = true, .sizes = 1u << 3});

}  // namespace
}  // namespace ge::ops
