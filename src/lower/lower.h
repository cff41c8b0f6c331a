// Lowering: a finished Graph becomes a Package of flat data: placement of values, kernel calls, what is
// needed of them, lifetimes, size expressions, weights. The only place that knows both worlds.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "om/program.h"
#include "plan/placement.h"

namespace ge::lower {

struct LowerOptions {
  bool reuse = true;            // memory reuse, views and in-place included
  bool reference = false;       // every op by its reference kernel (the meaning; slow)
  bool aliases = true;          // views, parts and in-place; without reuse there are none in any case
  std::function<void(ir::ValueId)> read_last = {};   // called for a constant of the graph that is not read again
  std::shared_ptr<NamelessFile> file = {};           // weights are laid out there, if it has room; else in memory
};

struct LowerReport {
  struct Body {
    std::string name;           // "then_branch of If_3"
    int program;                // its index in the package
  };
  plan::AliasCounts aliases;
  int64_t weights = 0;          // bytes
  int tasks = 0;
  std::vector<std::string> reference_ops;  // ops that run on a reference kernel
  // How a run brings a state up to date: the states of the model, in their order.
  struct State {
    std::string name, input, output, update, why;   // update: kept, appended, replaced, written or copied
    std::string converted;                          // the node that converts all of it at every run, or empty
    std::string unfit;                              // why it is not stored in the type that was asked for, or empty
    int64_t capacity = 0, row = 0;                  // bytes; row: of one entry of the axis that grows
  };
  std::vector<State> states;
  std::vector<std::string> tensors;        // of each buffer of the program: the value that it ends up holding
  std::vector<Body> bodies;                // nested graphs, outer ones first
};

Result<om::Package> lower(const ir::Graph& g, const LowerOptions& options, LowerReport& report);

}  // namespace ge::lower
