#include "kernels/move/nest.h"

#include <algorithm>

namespace ge::kernels::move {

Nest Nest::of(std::span<const View> views) {
  Nest n;
  n.operands = static_cast<int>(views.size());
  n.rank = views[0].rank;
  for (int i = 0; i < n.rank; ++i) {
    n.dims[i] = views[0].dims[i];
    for (int k = 0; k < n.operands; ++k)
      n.steps[k][i] = views[static_cast<size_t>(k)].strides[i] * size_of(views[static_cast<size_t>(k)].dtype);
  }
  return n;
}

int64_t Nest::count() const {
  int64_t c = 1;
  for (int i = 0; i < rank; ++i)
    if (dims[i] == 0) return 0;
  for (int i = 0; i < rank; ++i) c *= dims[i];
  return c;
}

void Nest::sort_for(int k) {
  auto distance = [&](int i) { return magnitude(steps[k][i]); };
  // Insertion sort: few axes, and equal steps keep their order.
  for (int i = 1; i < rank; ++i)
    for (int j = i; j > 0 && distance(j - 1) < distance(j); --j) {
      std::swap(dims[j - 1], dims[j]);
      for (int o = 0; o < operands; ++o) std::swap(steps[o][j - 1], steps[o][j]);
    }
}

void Nest::simplify() {
  if (count() == 0) {
    rank = 1;
    dims[0] = 0;
    for (int k = 0; k < operands; ++k) steps[k][0] = 0;
    return;
  }
  int out = 0;
  for (int i = 0; i < rank; ++i) {
    if (dims[i] == 1) continue;
    bool joins = out > 0;
    for (int k = 0; joins && k < operands; ++k) joins = steps[k][out - 1] == steps[k][i] * dims[i];
    if (joins) {
      dims[out - 1] *= dims[i];
    } else {
      dims[out] = dims[i];
      ++out;
    }
    for (int k = 0; k < operands; ++k) steps[k][out - 1] = steps[k][i];
  }
  rank = out;
}

Walker::Walker(const Nest& n, int outer_rank, int64_t start) : nest(n), rank(outer_rank) {
  for (int k = 0; k < n.operands; ++k) at[k] = 0;
  for (int i = rank - 1; i >= 0; --i) {
    index[i] = start % n.dims[i];
    start /= n.dims[i];
    for (int k = 0; k < n.operands; ++k) at[k] += index[i] * n.steps[k][i];
  }
}

int64_t chunks_for(int64_t units, int64_t unit_bytes) {
  if (units <= 0) return 0;
  constexpr int64_t kChunkBytes = 128 << 10;
  int64_t per_chunk = std::max<int64_t>(1, kChunkBytes / std::max<int64_t>(1, unit_bytes));
  return std::min<int64_t>({(units + per_chunk - 1) / per_chunk, units, 256});
}

}  // namespace ge::kernels::move
