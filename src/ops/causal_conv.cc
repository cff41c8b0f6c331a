// CausalConvWithState: a depthwise convolution over past elements, which it carries as a state.
#include "base/text.h"
#include "ops/outputs.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  std::string a = attr_string(c.node, "activation", "none");
  if (a != "none" && a != "silu" && a != "swish") return c.fail(format("activation '{}' is not known; it is 'none', 'silu' or 'swish'", a));
  for (int i = 0; i < 2; ++i)
    if (c.ranked(i) && c.rank(i) != 3) return c.fail(format("input {} {} has not 3 axes", i, text(c.dims(i))));
  DType state = c.has(3) ? c.dtype(3) : c.dtype(0);
  c.out[0] = c.type(0);
  if (!c.ranked(0) || !c.ranked(1)) {
    c.set_unranked(1, state);
    return ok();
  }
  auto &x = c.dims(0), &w = c.dims(1);
  if (w[1].known() && !w[1].is(1)) return c.fail(format("the weight {} is not depthwise", text(w)));
  GE_TRY(Dim channels, unify(c, x[1], w[0], "the channels"));
  c.set(1, state, {x[0], channels, w[2] - Dim(1)});
  return ok();
}

Status reference(LowerContext& c) {
  std::vector<Arg> out{c.out()};
  if (c.wants(1)) out.push_back(c.out(1));
  c.call("ref.CausalConvWithState", {c.in(0), c.in(1), c.in(2), c.in(3)}, std::move(out),
         {attr_string(c.node, "activation", "none") != "none"});
  return ok();
}

const Register r(OpDef{.name = "CausalConvWithState", .min_inputs = 2, .max_inputs = 4, .max_outputs = 2, .since = 27,
                       .attrs = {{"activation", "none, silu or swish."}},
                       .doc = "Depthwise convolution over the past, which it carries.", .types = types::floats, .infer = infer,
                       .upgrade = with_first_output, .reference = reference});

}  // namespace
}  // namespace ge::ops
