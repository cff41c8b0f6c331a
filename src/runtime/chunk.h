// One chunk of a task's work, as a team runs it.
#pragma once

#include "runtime/binding.h"

namespace ge::runtime {

struct Chunks {
  const kernels::Call* call;
  const BoundTask* task;
};
// context: a Chunks. Each rank has a part of the scratch of its own.
inline Status run_chunk(void* context, int64_t chunk, int rank) {
  auto& c = *static_cast<const Chunks*>(context);
  kernels::Call call = *c.call;
  if (call.scratch) call.scratch += rank * c.task->work.scratch;
  return c.task->kernel->run(call, chunk);
}

}  // namespace ge::runtime
