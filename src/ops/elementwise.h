// The table of elementwise operators and the hooks that they share. What an operator means is its code
// (kernels/reference/elementwise.h); how it is computed in registers is elementwise_vector.cc's; shape
// arithmetic on its elements is elementwise_elements.cc's.
#pragma once

#include "kernels/reference/elementwise.h"
#include "ops/op.h"

namespace ge::ops {

using kernels::reference::Ew;

// A float parameter of the operator; absent: no attribute, a fixed number.
struct EwParam {
  const char* attr = nullptr;
  double otherwise = 0;  // what ONNX says, as a float
};

struct EwEntry {
  const char* name;
  Ew code;
  int since = 1;
  EwParam p0 = {}, p1 = {};
};

// The row of an operator of the table; our own bug if there is none.
const EwEntry& elementwise_entry(std::string_view op);
// The code of this node: the table's, or what an attribute selects (Gelu, Mod, BitShift).
Ew elementwise_code(const Node& n);
double elementwise_param(const Node& n, const EwParam& p);

// Output dims and dtype for any number of broadcast inputs.
Status infer_broadcast(InferContext& c, DType out);
// The layout of an input that has the output's rank: of one of full size if there is, else of any.
std::vector<int> inherit_layout(const Graph& g, const Node& n);
// Elements of the output from those of the inputs, where known.
void infer_elementwise_elements(InferContext& c, Ew op);

// Whether vector programs compute this node exactly as the operator says.
bool has_vector_form(const Graph& g, const Node& n);
bool elementwise_vector(VectorContext& c);

}  // namespace ge::ops
