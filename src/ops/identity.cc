// Identity, and Dropout as it is at inference: the input itself, with a mask of ones.
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

Status reference_identity(LowerContext& c) {
  c.call("ref.Reshape", {c.in(0)}, {c.out()});
  return ok();
}

Status infer_dropout(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  auto scalar = [&](int i) { return c.constant(i) && c.constant(i)->count() == 1 ? c.constant(i)->at(0) : c.has(i) ? 0.5 : 0.0; };
  // Nothing is dropped with a ratio of 0; whether training is on must be known.
  bool no_ratio = c.has(1) && scalar(1) == 0;
  if (scalar(2) != 0 && !no_ratio)
    return c.fail("training mode is not supported", "Export the model for inference.");
  GE_RETURN_IF_ERROR(infer_same(c));
  if (c.wants(1)) {
    c.out[1] = c.type(0);
    c.out[1].dtype = DType::boolean;
  }
  return ok();
}

Status emit_dropout(LowerContext& c, const char* copy) {
  if (c.wants(0)) c.call(copy, {c.in(0)}, {c.out(0)});
  if (c.wants(1)) c.call("move.fill", {}, {c.out(1)}, {1});
  return ok();
}
Status lower_dropout(LowerContext& c) { return emit_dropout(c, "move.copy"); }
Status reference_dropout(LowerContext& c) { return emit_dropout(c, "ref.Reshape"); }

// Before opset 12 ratio was an attribute (and 7 to 9 had masks of the input's type, which nobody reads).
Status upgrade_dropout(UpgradeContext& c) {
  if (c.version < 12) c.node().attrs.erase("ratio");
  return ok();
}

// With a mask there is something to write.
std::optional<Strided> view_dropout(const Graph&, const Node& n, int output, const Strided& in) {
  if (output != 0 || (n.outputs.size() > 1 && n.outputs[1])) return std::nullopt;
  return in;
}

const Register identity(OpDef{.name = "Identity",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .doc = "The input.",
                              .infer = infer_same,
                              .reference = reference_identity,
                              .lower = lower_views,
                              .view = view_same,
                              .layout = layout_of_input});

const Register dropout(OpDef{.name = "Dropout",
                             .min_inputs = 1,
                             .max_inputs = 3,
                             .max_outputs = 2,
                             .attrs = {{"seed", "Not used at inference."}},
                             .doc = "The input, and a mask of ones: inference only.",
                             .infer = infer_dropout,
                             .upgrade = upgrade_dropout,
                             .reference = reference_dropout,
                             .lower = lower_dropout,
                             .view = view_dropout,
                             .layout = layout_of_input});

}  // namespace
}  // namespace ge::ops
