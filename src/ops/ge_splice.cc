// ge.Splice: inputs data, part, lead [1], rest [1]: the first `lead` rows of the data along an axis, the part, the last `rest`
// rows. Where as many rows are replaced as the part has, it can be made where the data lie.
#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

std::optional<Dim> count(const InferContext& c, int i) {
  auto e = c.elements(i);
  return e && e->size() == 1 ? std::optional((*e)[0]) : std::nullopt;
}

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 4));
  if (c.dtype(0) != c.dtype(1)) return c.fail(format("the part is {}, the data {}; they need one type", name(c.dtype(1)), name(c.dtype(0))));
  if (!c.ranked(0) || !c.ranked(1)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  if (c.rank(0) != c.rank(1)) return c.fail(format("the part has {} axes, the data {}", c.rank(1), c.rank(0)));
  GE_TRY(int axis, normalize_axis(c, ir::attr_int(c.node, "axis", 0), c.rank(0)));
  auto dims = c.dims(0);
  for (size_t a = 0; a < dims.size(); ++a)
    if (static_cast<int>(a) != axis) {
      GE_TRY(dims[a], unify(c, dims[a], c.dims(1)[a], format("axis {} of the part", a)));
    }
  auto lead = count(c, 2), rest = count(c, 3);
  dims[static_cast<size_t>(axis)] = lead && rest ? *lead + c.dims(1)[static_cast<size_t>(axis)] + *rest : c.fresh("rows");
  c.set(0, c.dtype(0), std::move(dims));
  return ok();
}

Status lower(LowerContext& c) {
  auto lead = c.elements(2), rest = c.elements(3);
  if (!lead || !rest) return c.fail("its counts are known only at run time");
  c.call("move.splice", {c.in(0), c.in(1)}, {c.out()}, {wrap_axis(ir::attr_int(c.node, "axis", 0), c.type(0).rank()), (*lead)[0], (*rest)[0]});
  return ok();
}

const Register r(OpDef{.name = "ge.Splice", .min_inputs = 4, .max_inputs = 4, .attrs = {{"axis", "Along which the rows lie."}},
                       .doc = "a part between the first and the last rows of a tensor", .infer = infer, .reference = lower, .lower = lower, .sizes = 1u << 2 | 1u << 3});

}  // namespace
}  // namespace ge::ops
