// What LSTM, GRU and RNN share: sizes, attributes as the kernels take them, and lowering to one product for
// all steps (X x W^T) and one task for the steps themselves. Inputs are ONNX's: X, W, R, B, sequence_lens,
// initial_h, and for LSTM initial_c and P.
#pragma once

#include "kernels/recurrent.h"
#include "ops/op.h"

namespace ge::ops {

// The attributes, as parameters of the kernels (kernels/recurrent.h).
struct RecurrentForm {
  int64_t directions = 1;
  bool batch_first = false;
  std::vector<Dim> ints;
  std::vector<double> floats;
};
Result<RecurrentForm> read_recurrent_form(const Node& n, kernels::Cell cell);

// The number of units: a number if the attribute or any operand tells it.
Dim recurrent_units(const Graph& g, const Node& n, kernels::Cell cell);

Status infer_recurrent(InferContext& c, kernels::Cell cell);
Status reference_recurrent(LowerContext& c, kernels::Cell cell);
// Leaves c.calls empty for f64.
Status lower_recurrent(LowerContext& c, kernels::Cell cell);
// Y as the Transpose that alone reads it would have it.
std::vector<int> recurrent_layout(const Graph& g, const Node& n);
std::vector<AttrDef> recurrent_attrs();

// The axes of v in another order.
Strided permuted(const Strided& v, const std::vector<size_t>& order);

}  // namespace ge::ops
