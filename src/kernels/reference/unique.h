// The different entries of a tensor along an axis, and where they are. No kernel: how many there are only running
// tells, so the runtime calls it for a task that makes its outputs itself.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/view.h"

namespace ge::kernels::reference {

struct Different {
  std::vector<int64_t> first;     // the index of each different entry's first appearance
  std::vector<int64_t> which;     // for each entry of the input: its place among them
  std::vector<int64_t> count;     // how often each appears
};

// x: dense, of numbers; `outer` runs of `entries` entries of `inner` elements. sorted: in rising order (NaN last, one
// NaN as good as another), else as they first appear.
Different different_entries(DType t, const std::byte* x, int64_t outer, int64_t entries, int64_t inner, bool sorted);

}  // namespace ge::kernels::reference
