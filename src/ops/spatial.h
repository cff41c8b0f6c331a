// Windows that slide over spatial axes: attributes, output sizes and pads of convolutions and pools, with
// sizes as expressions. Shared by their inference and lowering.
#pragma once

#include "ops/op.h"

namespace ge::ops {

struct Spatial {
  std::vector<Dim> kernel, out, pad_begin, pad_end;
  std::vector<int64_t> strides, dilations;
  size_t rank() const { return kernel.size(); }
};

// Reads kernel_shape (or `kernel` when that is given), strides, dilations, pads, auto_pad and ceil_mode of
// a node whose input has these spatial sizes.
Result<Spatial> read_spatial(const Node& n, const std::vector<Dim>& in, const std::vector<Dim>* kernel = nullptr);

// OpDef::window of input 0 and OpDef::cut_rows of a node with such a window; nothing where padding is not known.
std::optional<RowWindow> window_rows(const Spatial& s, int axis);
void cut_window(const Spatial& s, Node& to, int axis, const RowRange& out, const RowRange& in);

// {0, 2, 3, 1} and the like: channels innermost; empty below rank 3.
std::vector<int> channels_last(int rank);
std::vector<int> channels_last_layout(const Graph& g, const Node& n);

// Appends numbers to kernel parameters.
void append(std::vector<Dim>& to, const std::vector<Dim>& from);
void append(std::vector<Dim>& to, const std::vector<int64_t>& from);

}  // namespace ge::ops
