// GRU: what it adds to ops/recurrent.h is its table of gates, attributes and operands.
#include "ops/recurrent.h"

namespace ge::ops {
namespace {

using kernels::Cell;

Status infer(InferContext& c) { return infer_recurrent(c, Cell::gru); }
Status reference(LowerContext& c) { return reference_recurrent(c, Cell::gru); }
Status lower(LowerContext& c) { return lower_recurrent(c, Cell::gru); }

std::vector<AttrDef> attrs() {
  auto a = recurrent_attrs();
  a.push_back({"linear_before_reset", "1: the state is multiplied by R before the reset gate"});
  return a;
}

const Register r(OpDef{.name = "GRU",
                       .min_inputs = 3,
                       .max_inputs = 6,
                       .min_outputs = 0,
                       .max_outputs = 2,
                       .since = 7,
                       .attrs = attrs(),
                       .unit = kernels::Unit::cube,
                       .doc = "gated recurrent units over a sequence",
                       .types = types::floats,
                       .infer = infer,
                       .reference = reference,
                       .lower = lower,
                       .layout = recurrent_layout});

}  // namespace
}  // namespace ge::ops
