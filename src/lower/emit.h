// What lowering hands to emission: tasks with resolved operands, where values lie, weights made on the way.
// Private to src/lower.
#pragma once

#include <map>
#include <vector>

#include "ir/graph.h"
#include "kernels/kernel.h"
#include "om/program.h"
#include "ops/op.h"
#include "plan/placement.h"

namespace ge::lower {

struct Operand {
  int storage = -1;         // -1: absent
  DType dtype = DType::none;
  ops::Strided view;
};

struct Task {
  ir::NodeId node;          // none: a copy into the caller's buffer
  const kernels::Kernel* kernel = nullptr;
  std::vector<Operand> in, out;
  ops::CallSpec spec;
  bool needed = false;
};

struct Lowered {
  std::vector<Task> tasks;
  std::vector<int> first, last;              // of each storage: the tasks that touch it
  std::vector<Tensor> packed;                // weights that lowering made
  std::map<int, size_t> packed_of;           // storage -> packed
};

// Fills the package: symbols, ports, buffers, tasks, one segment, the weights. tensors: a name for each buffer.
// What lowering packed is given back as soon as it is written.
Status emit(const ir::Graph& g, const plan::Placement& placement, Lowered& lowered, bool reuse, om::Package& package,
            std::vector<std::string>& tensors);

}  // namespace ge::lower
