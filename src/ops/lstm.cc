// LSTM: what it adds to ops/recurrent.h is its table of gates, attributes and operands.
#include "ops/recurrent.h"

namespace ge::ops {
namespace {

using kernels::Cell;

Status infer(InferContext& c) { return infer_recurrent(c, Cell::lstm); }
Status reference(LowerContext& c) { return reference_recurrent(c, Cell::lstm); }
Status lower(LowerContext& c) { return lower_recurrent(c, Cell::lstm); }

std::vector<AttrDef> attrs() {
  auto a = recurrent_attrs();
  a.push_back({"input_forget", "1: the forget gate is 1 - the input gate"});
  return a;
}

const Register r(OpDef{.name = "LSTM",
                       .min_inputs = 3,
                       .max_inputs = 8,
                       .min_outputs = 0,
                       .max_outputs = 3,
                       .since = 7,
                       .attrs = attrs(),
                       .unit = kernels::Unit::cube,
                       .doc = "long short-term memory over a sequence",
                       .types = types::floats,
                       .infer = infer,
                       .reference = reference,
                       .lower = lower,
                       .layout = recurrent_layout});

}  // namespace
}  // namespace ge::ops
