#include "kernels/cube/row_space.h"

#include "base/result.h"

namespace ge::kernels::cube {

RowSpace::RowSpace(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  GE_CHECK(dims.size() <= kMaxRank, "rank");
  for (int i = 0; i < rank_; ++i) dims_[i] = dims[i];
}

bool RowSpace::add(const View& v, int tail) {
  const int lead = v.rank - tail, shift = rank_ - lead;
  if (lead < 0 || shift < 0 || operands_ == kMaxRowOperands) return false;
  auto& strides = strides_[operands_];
  for (int i = 0; i < lead; ++i) {
    if (v.dims[i] != dims_[shift + i] && v.dims[i] != 1) return false;
    strides[shift + i] = v.dims[i] == 1 ? 0 : v.strides[i];
  }
  ++operands_;
  return true;
}

void RowSpace::merge(int fixed) {
  int n = 0;  // merged axes so far, outermost first
  for (int i = 0; i < rank_; ++i) {
    if (dims_[i] == 1) continue;
    bool joins = n > 0;
    for (int o = 0; o < operands_ && joins; ++o) joins = strides_[o][n - 1] == strides_[o][i] * dims_[i];
    if (!joins) ++n;
    dims_[n - 1] = joins ? dims_[n - 1] * dims_[i] : dims_[i];
    for (int o = 0; o < operands_; ++o) strides_[o][n - 1] = strides_[o][i];
  }
  rank_ = n;
  rows_ = 1;
  row_stride_.fill(0);
  if (n > 0 && strides_[fixed][n - 1] == 0) {
    --rank_;
    rows_ = dims_[rank_];
    for (int o = 0; o < operands_; ++o) row_stride_[o] = strides_[o][rank_];
  }
  outer_ = 1;
  for (int i = 0; i < rank_; ++i) outer_ *= dims_[i];
}

int64_t RowSpace::offset(int operand, int64_t outer_index) const {
  int64_t offset = 0;
  for (int i = rank_ - 1; i >= 0; --i) {
    offset += outer_index % dims_[i] * strides_[operand][i];
    outer_index /= dims_[i];
  }
  return offset;
}

}  // namespace ge::kernels::cube
