#include "ops/spatial.h"

#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

Error bad(const Node& n, std::string why) { return node_error(code::kBadOp, n.name, format("{}: {}", n.op, why)); }

// An attribute of `rank` numbers of at least `least`; `otherwise` when absent.
Result<std::vector<int64_t>> numbers(const Node& n, const char* attr, size_t rank, int64_t least, int64_t otherwise) {
  auto v = ir::attr_ints(n, attr);
  if (v.empty()) return std::vector<int64_t>(rank, otherwise);
  if (v.size() != rank) return bad(n, format("attribute {} has {} numbers, not {}", attr, v.size(), rank));
  for (int64_t x : v)
    if (x < least || x > INT32_MAX) return bad(n, format("attribute {} has the number {}", attr, x));
  return v;
}

// Output size without auto_pad: floor or ceil of the windows that fit.
Dim explicit_size(const Dim& in, const Dim& begin, const Dim& end, const Dim& extent, int64_t stride, bool ceil) {
  Dim room = in + begin + end - extent;
  if (!ceil) return floordiv(room, Dim(stride)) + Dim(1);
  Dim size = ceildiv(room, Dim(stride)) + Dim(1);
  if (stride == 1) return size;
  // A last window that would begin in the padding at the end is left out.
  Dim inside = Dim::call(DimCall::less, {(size - Dim(1)) * Dim(stride), in + begin});
  return size - Dim(1) + inside;
}

// Size and pads of one axis of SAME_UPPER and SAME_LOWER.
void same(Spatial& s, const Dim& in, const Dim& extent, int64_t stride, bool lower) {
  Dim out = ceildiv(in, Dim(stride));
  Dim total = max((out - Dim(1)) * Dim(stride) + extent - in, Dim(0));
  Dim half = floordiv(total, Dim(2));
  s.out.push_back(out);
  s.pad_begin.push_back(lower ? total - half : half);
  s.pad_end.push_back(lower ? half : total - half);
}

}  // namespace

Result<Spatial> read_spatial(const Node& n, const std::vector<Dim>& in, const std::vector<Dim>* kernel) {
  Spatial s;
  size_t rank = in.size();
  if (kernel) {
    s.kernel = *kernel;
  } else {
    if (!ir::has_attr(n, "kernel_shape")) return bad(n, "attribute kernel_shape is missing");
    GE_TRY(auto shape, numbers(n, "kernel_shape", rank, 1, 1));
    s.kernel.assign(shape.begin(), shape.end());
  }
  if (s.kernel.size() != rank) return bad(n, format("the window has {} axes, the input {}", s.kernel.size(), rank));
  GE_TRY(s.strides, numbers(n, "strides", rank, 1, 1));
  GE_TRY(s.dilations, numbers(n, "dilations", rank, 1, 1));
  GE_TRY(auto pads, numbers(n, "pads", 2 * rank, 0, 0));
  std::string mode = ir::attr_string(n, "auto_pad", "NOTSET");
  bool ceil = ir::attr_int(n, "ceil_mode", 0) != 0;
  bool is_same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (!is_same && mode != "VALID" && mode != "NOTSET" && !mode.empty()) return bad(n, format("unknown auto_pad '{}'", mode));
  for (size_t a = 0; a < rank; ++a) {
    Dim extent = (s.kernel[a] - Dim(1)) * Dim(s.dilations[a]) + Dim(1);
    if (is_same) {
      same(s, in[a], extent, s.strides[a], mode == "SAME_LOWER");
      continue;
    }
    bool valid = mode == "VALID";
    s.pad_begin.push_back(valid ? 0 : pads[a]);
    s.pad_end.push_back(valid ? 0 : pads[rank + a]);
    s.out.push_back(explicit_size(in[a], s.pad_begin[a], s.pad_end[a], extent, s.strides[a], ceil));
    if (s.out[a].known() && s.out[a].value() < 0)
      return bad(n, format("a window of {} does not fit axis {} of {}", extent.text(), a, in[a].text()));
  }
  return s;
}

std::optional<RowWindow> window_rows(const Spatial& s, int axis) {
  auto a = static_cast<size_t>(axis - 2);
  if (axis < 2 || a >= s.rank() || !s.kernel[a].known() || !known_dims(s.pad_begin) || !known_dims(s.pad_end)) return std::nullopt;
  return RowWindow{.extent = (s.kernel[a].value() - 1) * s.dilations[a] + 1, .stride = s.strides[a], .begin = s.pad_begin[a].value(), .end = s.pad_end[a].value()};
}

void cut_window(const Spatial& s, Node& to, int axis, const RowRange& out, const RowRange& in) {
  std::vector<int64_t> pads;
  for (auto* list : {&s.pad_begin, &s.pad_end})
    for (auto& d : *list) pads.push_back(d.value());
  const RowWindow w = *window_rows(s, axis);
  const auto a = static_cast<size_t>(axis - 2);
  pads[a] = in.begin - (out.begin * w.stride - w.begin);
  pads[a + s.rank()] = (out.end - 1) * w.stride - w.begin + w.extent - in.end;
  to.attrs["pads"] = std::move(pads);
  to.attrs["auto_pad"] = std::string("NOTSET");
}

std::vector<int> channels_last(int rank) {
  if (rank < 3) return {};
  std::vector<int> order{0};
  for (int a = 2; a < rank; ++a) order.push_back(a);
  order.push_back(1);
  return order;
}

std::vector<int> channels_last_layout(const Graph& g, const Node& n) {
  auto& type = g.value(n.outputs[0]).type;
  return type.ranked ? channels_last(type.rank()) : std::vector<int>{};
}

void append(std::vector<Dim>& to, const std::vector<Dim>& from) { to.insert(to.end(), from.begin(), from.end()); }
void append(std::vector<Dim>& to, const std::vector<int64_t>& from) { to.insert(to.end(), from.begin(), from.end()); }

}  // namespace ge::ops
