// RNN: what it adds to ops/recurrent.h is its table of gates, attributes and operands.
#include "ops/recurrent.h"

namespace ge::ops {
namespace {

using kernels::Cell;

Status infer(InferContext& c) { return infer_recurrent(c, Cell::rnn); }
Status reference(LowerContext& c) { return reference_recurrent(c, Cell::rnn); }
Status lower(LowerContext& c) { return lower_recurrent(c, Cell::rnn); }

const Register r(OpDef{.name = "RNN",
                       .min_inputs = 3,
                       .max_inputs = 6,
                       .min_outputs = 0,
                       .max_outputs = 2,
                       .since = 7,
                       .attrs = recurrent_attrs(),
                       .unit = kernels::Unit::cube,
                       .doc = "a plain recurrent net over a sequence",
                       .types = types::floats,
                       .infer = infer,
                       .reference = reference,
                       .lower = lower,
                       .layout = recurrent_layout});

}  // namespace
}  // namespace ge::ops
