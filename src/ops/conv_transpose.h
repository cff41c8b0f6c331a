// What fusion asks of ConvTranspose.
#pragma once

#include "base/verdict.h"
#include "ops/op.h"

namespace ge::ops {

// Does n (ConvTranspose or ge.ConvTranspose) run as convolutions, which take a tail of bias, residual and
// activation? Only they may become ge.ConvTranspose.
Verdict conv_transpose_by_phases(const Graph& g, const Node& n);

}  // namespace ge::ops
