#include "ops/physical.h"

#include <algorithm>
#include <numeric>

namespace ge::ops {

Strided storage_view(const ir::Value& v) {
  auto& dims = v.type.dims;
  if (v.layout.empty()) return Strided::dense(dims);
  Strided s;
  s.dims = dims;
  s.strides.resize(dims.size());
  Dim step(1);
  for (size_t i = v.layout.size(); i-- > 0;) {
    auto axis = static_cast<size_t>(v.layout[i]);
    s.strides[axis] = step;
    step = step * dims[axis];
  }
  return s;
}

std::vector<int> physical_order(const Strided& v) {
  auto guess = [](std::string_view) { return std::optional<int64_t>(7); };
  std::vector<int64_t> strides(v.dims.size());
  for (size_t i = 0; i < strides.size(); ++i) {
    auto s = v.strides[i].eval(guess), d = v.dims[i].eval(guess);
    if (!s.ok() || !d.ok()) return {};
    // Axes of size 1 and broadcast ones have no place of their own: they stay where they are.
    strides[i] = *d == 1 || *s == 0 ? -1 : std::abs(*s);
  }
  for (size_t i = strides.size(); i-- > 0;)
    if (strides[i] < 0) strides[i] = i + 1 < strides.size() ? strides[i + 1] : 1;
  std::vector<int> order(strides.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return strides[static_cast<size_t>(a)] > strides[static_cast<size_t>(b)]; });
  if (std::is_sorted(order.begin(), order.end())) order.clear();
  return order;
}

}  // namespace ge::ops
