// NegativeLogLikelihoodLoss, and SoftmaxCrossEntropyLoss, which on import becomes LogSoftmax and that.
#include "base/text.h"
#include "ops/rewrite.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

int64_t reduction_of(const Node& n) {
  std::string r = attr_string(n, "reduction", "mean");
  return r == "none" ? 0 : r == "sum" ? 1 : r == "mean" ? 2 : -1;
}

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  GE_RETURN_IF_ERROR(require_index(c, 1));
  int64_t reduction = reduction_of(c.node);
  if (reduction < 0) return c.fail(format("reduction '{}' is not known; it is 'none', 'sum' or 'mean'", attr_string(c.node, "reduction", "")));
  if (c.ranked(0) && c.rank(0) < 2) return c.fail(format("{} has no axis of classes", text(c.dims(0))));
  if (c.ranked(0) && c.ranked(1) && c.rank(1) != c.rank(0) - 1)
    return c.fail(format("target {} does not fit the input {}", text(c.dims(1)), text(c.dims(0))));
  if (reduction > 0) c.set(0, c.dtype(0), {});
  else if (c.ranked(1)) c.set(0, c.dtype(0), c.dims(1));
  else c.set_unranked(0, c.dtype(0));
  return ok();
}

Status reference(LowerContext& c) {
  bool ignores = ir::has_attr(c.node, "ignore_index");
  std::vector<Arg> in{c.in(0), c.in(1)};
  if (c.has(2)) in.push_back(c.in(2));
  c.call("ref.NegativeLogLikelihoodLoss", std::move(in), {c.out()},
         {reduction_of(c.node), ignores, attr_int(c.node, "ignore_index", 0)});
  return ok();
}

Status upgrade_cross_entropy(UpgradeContext& c) {
  ValueId p = make_node(c, "LogSoftmax", {input_of(c, 0)}, {{"axis", int64_t{1}}});
  p = hand_over(c, 1, p);
  c.node().outputs.resize(1);
  std::vector<ValueId> in{p, input_of(c, 1)};
  if (ValueId w = input_of(c, 2)) in.push_back(w);
  ir::Attrs attrs = c.node().attrs;
  become(c, "NegativeLogLikelihoodLoss", std::move(in), std::move(attrs));
  return ok();
}

const std::vector<AttrDef> kAttrs{{"reduction", "none, sum or mean."}, {"ignore_index", "A target that counts for nothing."}};

const Register r1(OpDef{.name = "NegativeLogLikelihoodLoss", .min_inputs = 2, .max_inputs = 3, .since = 12, .attrs = kAttrs,
                        .doc = "Minus the input at each target, weighted.", .types = types::floats, .infer = infer, .reference = reference});
const Register r2([] {
  OpDef d = rewritten("SoftmaxCrossEntropyLoss", 2, 3, types::floats, upgrade_cross_entropy);
  d.max_outputs = 2, d.since = 12, d.attrs = kAttrs;
  return d;
}());

}  // namespace
}  // namespace ge::ops
