// Lanes: which stream of real GE each task would belong to. A hint and a view: it shows in reports, results do not
// depend on it, and every thread helps with every task.
#pragma once

#include <string>

#include "base/result.h"
#include "om/program.h"

namespace ge::lower {

struct LaneOptions {
  enum class Mode : uint8_t { single, units, balance, main };
  // single: all in lane 0. units: Cube in 0, Vector in 1, host in 2. balance: `count` lanes that finish together.
  // main: the longest chain of tasks in lane 0, what is beside it in lanes 1..count-1.
  Mode mode = Mode::units;
  int count = 1;
};

// ATC's --multi_stream_parallel_mode: "cv", "LoadBalance:N", "MainStream:N", N from 1 to 64.
Result<LaneOptions> parse_lanes(const std::string& text);
// List scheduling over what tasks read and write; a task's weight is the elements that it touches, with sizes that
// are not known taken as 32.
void assign_lanes(om::ProgramT& program, const LaneOptions& options);

}  // namespace ge::lower
