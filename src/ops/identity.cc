// Identity and Dropout: at inference the input itself, with a mask of ones.
#include "base/hash.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

Status reference_identity(LowerContext& c) {
  c.call("ref.Reshape", {c.in(0)}, {c.out()});
  return ok();
}

}  // namespace

bool drops_nothing(const Graph& g, const Node& n) {
  auto is_zero = [&](size_t i) {
    const Tensor* t = n.inputs.size() > i && n.inputs[i] ? g.value(n.inputs[i]).constant.get() : nullptr;
    return t && t->count() == 1 && t->at(0) == 0;
  };
  return n.inputs.size() < 3 || !n.inputs[2] || is_zero(1) || is_zero(2);
}

namespace {

Status infer_dropout(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  GE_RETURN_IF_ERROR(infer_same(c));
  if (c.wants(1)) {
    c.out[1] = c.type(0);
    c.out[1].dtype = DType::boolean;
  }
  return ok();
}

Status emit_dropout(LowerContext& c, const char* copy) {
  if (!drops_nothing(c.graph, c.node)) {
    c.call("ref.Dropout", {c.in(0), c.in(1), c.in(2)}, {c.out(0), c.out(1)}, {attr_int(c.node, "seed", 0)});
    return ok();
  }
  if (c.wants(0)) c.call(copy, {c.in(0)}, {c.out(0)});
  if (c.wants(1)) c.call("move.fill", {}, {c.out(1)}, {1});
  return ok();
}
Status lower_dropout(LowerContext& c) { return emit_dropout(c, "move.copy"); }
Status reference_dropout(LowerContext& c) { return emit_dropout(c, "ref.Reshape"); }

// Before opset 12 ratio was an attribute (and 7 to 9 had masks of the input's type, which nobody reads).
Status upgrade_dropout(UpgradeContext& c) {
  if (c.version < 12) c.node().attrs.erase("ratio");
  // Without a seed each node draws numbers of its own, the same in every run.
  if (c.node().inputs.size() > 2 && !ir::has_attr(c.node(), "seed") && !c.node().outputs.empty() && c.node().outputs[0]) {
    const std::string& name = c.graph.value(c.node().outputs[0]).name;
    c.node().attrs["seed"] = static_cast<int64_t>(hash64(std::as_bytes(std::span(name))) & 0xffffffff);
  }
  return ok();
}

// With a mask there is something to write.
std::optional<Strided> view_dropout(const Graph& g, const Node& n, int output, const Strided& in) {
  if (output != 0 || (n.outputs.size() > 1 && n.outputs[1]) || !drops_nothing(g, n)) return std::nullopt;
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
                             .attrs = {{"seed", "Of the numbers that decide what is dropped in training."}},
                             .doc = "The input and a mask of ones; in training mode elements are dropped at random.",
                             .infer = infer_dropout,
                             .upgrade = upgrade_dropout,
                             .reference = reference_dropout,
                             .lower = lower_dropout,
                             .view = view_dropout,
                             .layout = layout_of_input});

}  // namespace
}  // namespace ge::ops
