// Types of sequences: what is known of the tensors in them.
#pragma once

#include "ops/op.h"

namespace ge::ops {

// The type of a sequence that holds nothing yet: any element fits it, and says more.
Type empty_sequence(DType t);
bool is_empty_sequence(const Type& t);
// What holds for the elements of both (of a sequence and a tensor too); kind and dtype are a's.
Type either_element(const Type& a, const Type& b);
// The type of one element: sizes that are not known are what `fresh(axis)` says.
template <class F>
Type element_of(const Type& t, F fresh) {
  Type out = t;
  out.kind = ir::TypeKind::tensor;
  if (!t.ranked) out.dims.clear();
  for (size_t k = 0; k < out.dims.size(); ++k)
    if (!out.dims[k].known()) out.dims[k] = fresh(k);
  return out;
}

}  // namespace ge::ops
