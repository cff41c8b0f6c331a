// Work in forked processes: each has the memory of this one as it was, and gives all of its own back when it ends.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"

namespace ge {

// Runs every job, each in a process of its own, at most `most` at a time. Its Status comes back; what it did to
// memory does not. A process that ends without one gives an error. Where none can be made the job runs in this one.
// begun, if given: called in this process when a job's has been started, which has its own memory from then on.
std::vector<Status> in_processes(const std::vector<std::function<Status()>>& jobs, int most, const std::function<void(size_t)>& begun = {});

}  // namespace ge
