// Lowering: a finished Graph becomes a Package of flat data: placement of values, kernel calls, what is
// needed of them, lifetimes, size expressions, weights. The only place that knows both worlds.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "om/program.h"
#include "plan/placement.h"

namespace ge::lower {

struct LowerOptions {
  bool reuse = true;            // memory reuse, views and in-place included
  bool reference = false;       // every op by its reference kernel (the meaning; slow)
  std::function<void(ir::ValueId)> read_last = {};   // called for a constant of the graph that is not read again
};

struct LowerReport {
  plan::AliasCounts aliases;
  int64_t weights = 0;          // bytes
  int tasks = 0;
  std::vector<std::string> reference_ops;  // ops that run on a reference kernel
  std::vector<std::string> tensors;        // of each buffer of the program: the value that it ends up holding
};

Result<om::Package> lower(const ir::Graph& g, const LowerOptions& options, LowerReport& report);

}  // namespace ge::lower
