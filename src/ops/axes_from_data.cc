#include "ops/axes_from_data.h"

#include "ops/shape_util.h"

namespace ge::ops {
namespace {

Dim is_axis(const Dim& axis, int k, int rank) { return equal(axis, Dim(k)) + equal(axis, Dim(k - rank)); }

}  // namespace

Dim only_if(const Dim& condition, const Dim& d) { return condition.is(1) ? d : d * floordiv(Dim(1), condition); }

Dim wrapped_axis(const Dim& axis, int rank) {
  if (axis.known()) return wrap_axis(axis.value(), rank);
  return select(Dim::call(DimCall::less, {axis, Dim(0)}), axis + Dim(rank), axis);
}

std::vector<Dim> axis_mask(const std::vector<Dim>& axes, int rank) {
  std::vector<Dim> mask(static_cast<size_t>(rank));
  Dim sum;
  for (int k = 0; k < rank; ++k) {
    Dim& m = mask[static_cast<size_t>(k)];
    for (auto& a : axes) m = max(m, is_axis(a, k, rank));
    sum = sum + m;
  }
  Dim all = equal(sum, Dim(static_cast<int64_t>(axes.size())));
  for (auto& m : mask) m = only_if(all, m);
  return mask;
}

std::vector<Dim> by_axis(const std::vector<Dim>& axes, const std::vector<Dim>& list, std::vector<Dim> otherwise) {
  auto rank = static_cast<int>(otherwise.size());
  for (size_t i = 0; i < axes.size(); ++i)
    for (int k = 0; k < rank; ++k) {
      Dim& d = otherwise[static_cast<size_t>(k)];
      d = select(is_axis(axes[i], k, rank), list[i], d);
    }
  return otherwise;
}

std::vector<Dim> with_ones(const std::vector<Dim>& dims, const std::vector<Dim>& mask) {
  std::vector<Dim> out;
  for (size_t k = 0; k < dims.size(); ++k) out.push_back(select(mask[k], Dim(1), dims[k]));
  return out;
}

std::vector<Dim> without_axes(const std::vector<Dim>& dims, const std::vector<Dim>& mask, size_t count) {
  std::vector<Dim> out;
  for (size_t j = 0; j + count < dims.size(); ++j) {
    // The axis before which j others are kept and which is kept itself.
    Dim size, kept;
    for (size_t k = 0; k < dims.size(); ++k) {
      size = select(equal(kept, Dim(static_cast<int64_t>(j))) * (Dim(1) - mask[k]), dims[k], size);
      kept = kept + (Dim(1) - mask[k]);
    }
    out.push_back(size);
  }
  return out;
}

std::vector<Dim> with_axes_of(const std::vector<Dim>& dims, const std::vector<Dim>& mask) {
  std::vector<Dim> out;
  Dim taken;
  for (size_t k = 0; k < mask.size(); ++k) {
    Dim size;
    for (size_t j = 0; j < dims.size(); ++j) size = select(equal(taken, Dim(static_cast<int64_t>(j))), dims[j], size);
    out.push_back(select(mask[k], Dim(1), size));
    taken = taken + (Dim(1) - mask[k]);
  }
  return out;
}

}  // namespace ge::ops
