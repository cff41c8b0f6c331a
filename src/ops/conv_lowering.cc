#include "ops/conv_lowering.h"

#include "base/text.h"
#include "kernels/cube/conv_pack.h"
#include "kernels/cube/winograd.h"
#include "ops/bf16.h"
#include "ops/shape_util.h"

namespace ge::ops {

Result<Spatial> conv_spatial(const Graph& g, const Node& n, int weights) {
  auto& x = g.value(n.inputs[0]).type.dims;
  auto& w = g.value(n.inputs[static_cast<size_t>(weights)]).type.dims;
  std::vector<Dim> in(x.begin() + 2, x.end()), kernel(w.begin() + 2, w.end());
  return read_spatial(n, in, &kernel);
}

Result<std::vector<Dim>> conv_dims(const InferContext& c, int weights) {
  auto &x = c.dims(0), &w = c.dims(weights);
  if (x.size() < 3) return c.fail(format("the input {} has no spatial axes", text(x)));
  if (w.size() != x.size()) return c.fail(format("the weights {} have another rank than the input {}", text(w), text(x)));
  auto shape = ir::attr_ints(c.node, "kernel_shape");
  for (size_t i = 0; i < shape.size(); ++i)
    if (i + 2 < w.size() && w[i + 2].known() && !w[i + 2].is(shape[i]))
      return c.fail(format("kernel_shape does not agree with the weights {}", text(w)));
  int64_t groups = ir::attr_int(c.node, "group", 1);
  if (groups < 1) return c.fail(format("attribute group is {}; it must be 1 or more", groups));
  Dim channels = w[1] * Dim(groups);
  if (channels.known() && x[1].known() && !(channels == x[1]))
    return c.fail(format("{} groups of {} channels do not make the input's {}", groups, w[1].text(), x[1].text()));
  if (w[0].known() && w[0].value() % groups) return c.fail(format("its {} filters do not divide into {} groups", w[0].text(), groups));
  GE_TRY(auto s, conv_spatial(c.graph, c.node, weights));
  std::vector<Dim> dims{x[0], w[0]};
  append(dims, s.out);
  return dims;
}

std::optional<RowWindow> conv_rows(const Graph& g, const Node& n, int input, int axis) {
  if (input > 0 && input < 3) return RowWindow{.whole = true};
  if (input > 2) return broadcast_rows(g, n, input, axis);
  auto s = conv_spatial(g, n);
  return s.ok() ? window_rows(*s, axis) : std::nullopt;
}

void cut_conv_rows(const Graph& g, const Node& from, Node& to, int axis, const RowRange& out, const RowRange& in) {
  if (auto s = conv_spatial(g, from); s.ok()) cut_window(*s, to, axis, out, in);
  auto& size = g.value(from.outputs[0]).type.dims[static_cast<size_t>(axis)];
  if (ir::attr_int(from, "winograd", 0) && axis == 2) to.attrs["winograd_rows"] = size.text();
}

namespace {

// The weights as w[groups, M / groups, C / groups, k...], for those computed while running: copied to
// [groups, k..., C / groups, M / groups], then packed as matrices.
Arg pack_computed(LowerContext& c, int64_t groups) {
  Strided v = c.view(1), moved;
  size_t rank = v.dims.size();
  Dim mg = floordiv(v.dims[0], Dim(groups));
  moved.offset = v.offset;
  auto axis = [&](const Dim& d, const Dim& stride) { moved.dims.push_back(d), moved.strides.push_back(stride); };
  axis(Dim(groups), v.strides[0] * mg);
  for (size_t a = 2; a < rank; ++a) axis(v.dims[a], v.strides[a]);
  axis(v.dims[1], v.strides[1]);
  axis(mg, v.strides[0]);
  Arg rows = c.temp(DType::f32, moved.dims);
  emit_copy(c, c.in_as(1, moved), c.type(1).dtype, rows, DType::f32);
  Dim k = product(moved.dims, 1, rank);
  rows.view = Strided::dense({Dim(groups), k, mg});
  Arg packed = c.temp(DType::f32, {Dim(groups), ceildiv(mg, Dim(16)), k, Dim(16)});
  c.call("cube.pack_b", {rows}, {packed});
  return packed;
}

Tensor pack_conv(const Tensor& w, int64_t groups) {
  Tensor f = constant_f32(w);
  int64_t mg = w.dims()[0] / groups, k = w.dims()[0] ? w.count() / w.dims()[0] : 0;
  if (kernels::cube::narrow_groups(w.dims()[1] * groups, w.dims()[0], groups)) {
    Tensor narrow(DType::f32, {kernels::cube::packed_narrow_floats(f.view())});
    kernels::cube::pack_narrow_weights(f.view(), narrow.as<float>());
    return narrow;
  }
  Tensor out(DType::f32, {groups, (mg + 15) / 16, k, 16});
  kernels::cube::pack_conv_weights(f.view(), groups, out.as<float>());
  return out;
}

Tensor pack_winograd(const Tensor& w, int tile) {
  Tensor f = constant_f32(w);
  Tensor out(DType::f32, {kernels::cube::packed_winograd_floats(f.view(), tile)});
  kernels::cube::pack_winograd_weights(f.view(), tile, out.as<float>());
  return out;
}

struct RunFilters {
  Arg direct, transformed;
};

// The transformed weights, made in each run from those of a direct sum. Where the run chooses between both, the
// convolution's sizes go with them; `rows` of axis 2, where it is not 0: a piece decides as the whole does.
RunFilters filters_of_run(LowerContext& c, const Tensor& w, int tile, bool choose, bool kept, const Dim& rows) {
  Tensor direct = pack_conv(w, 1);
  auto& d = w.dims();
  auto& y = c.out_type(0).dims;
  size_t rank = y.size();
  int64_t taps = 1, edge = tile + 2;
  for (size_t a = 2; a < d.size(); ++a) taps *= d[a];
  bool two_axes = taps == 9;
  std::vector<Dim> ints{Dim(tile), Dim(two_axes ? 2 : 1)};
  if (choose) {
    auto dilations = ir::attr_ints(c.node, "dilations");
    auto dilation = [&](size_t from_end) { return Dim(dilations.size() >= from_end ? dilations[dilations.size() - from_end] : 1); };
    auto size = y;
    if (!rows.is(0)) size[2] = rows;
    append(ints, {Dim(d[0]), rank == 5 ? size[0] * size[2] : size[0], rank >= 4 ? size[rank - 2] : Dim(1), size[rank - 1], dilation(2), dilation(1), Dim(int64_t{kept})});
  }
  int64_t panels = (d[0] + 15) / 16;
  RunFilters f;
  f.direct = c.weight(direct.reshaped({panels, taps, d[1], 16}));
  f.transformed = c.temp(DType::f32, {Dim(two_axes ? edge * edge : edge), Dim(panels), Dim(d[1]), Dim(16)});
  c.call("cube.winograd_filters", {f.direct}, {f.transformed}, std::move(ints));
  return f;
}

Tensor pack_depthwise(const Tensor& w) {
  Tensor f = constant_f32(w);
  int64_t m = w.dims()[0], taps = m ? w.count() / m : 0;
  Tensor out(DType::f32, {taps, (m + 15) / 16 * 16});
  kernels::cube::pack_depthwise_weights(f.view(), out.as<float>());
  return out;
}

// A temporary with the given dims that lies channels-last.
Arg channels_last_temp(LowerContext& c, DType t, const std::vector<Dim>& dims) {
  auto order = channels_last(static_cast<int>(dims.size()));
  std::vector<Dim> physical;
  for (int a : order) physical.push_back(dims[static_cast<size_t>(a)]);
  Strided dense = Strided::dense(physical), seen{Dim(0), dims, std::vector<Dim>(dims.size())};
  for (size_t a = 0; a < order.size(); ++a) seen.strides[static_cast<size_t>(order[a])] = dense.strides[a];
  Arg temp = c.temp(t, physical);
  temp.view = seen;
  return temp;
}

// An operand of the program: contiguous or broadcast along the channels, else copied so.
Arg extra_operand(LowerContext& c, int i, size_t rank) {
  Strided v = c.view(i);
  while (v.dims.size() < rank && v.dims.size() < 2) v = with_axis(v, 0);
  size_t n = v.dims.size();
  // Axis 1 of the output is axis 1 - (rank - n) of the operand.
  bool has_channels = n + 1 >= rank;
  size_t channel = has_channels ? 1 - (rank - n) : 0;
  if (!has_channels || v.dims[channel].is(1) || v.strides[channel].is(1) || v.strides[channel].is(0)) return c.in_as(i, v);
  while (v.dims.size() < rank) v = with_axis(v, 0);
  Arg copy = channels_last_temp(c, c.type(i).dtype, v.dims);
  emit_copy(c, c.in_as(i, v), c.type(i).dtype, copy, c.type(i).dtype);
  return copy;
}

// The residual must have the output's very shape; one that broadcasts becomes part of the program.
Status settle_residual(LowerContext& c, FusedTail& t) {
  if (t.residual < 0 || c.type(t.residual).dims == c.out_type(0).dims) return ok();
  return residual_into_program(t);
}

Strided without_last(Strided v) {
  if (!v.dims.empty()) v.dims.pop_back(), v.strides.pop_back();
  return v;
}

// Signals that lie as images of width 1 (H x 1): the kernels run along the last axis, which then is the long one. Views
// of the operands that have an axis for the width lose it. True if it was such an image.
bool drop_width(Spatial& s, const std::vector<Dim>& x, const std::vector<Dim>& y, std::vector<Arg>& in, Arg& out) {
  if (s.kernel.size() < 2 || !s.kernel.back().is(1) || !s.pad_begin.back().is(0) || !x.back().is(1) || !y.back().is(1)) return false;
  for (size_t i = 4; i < in.size(); ++i)
    if (!in[i].view->dims.empty() && !in[i].view->dims.back().is(1)) return false;
  for (size_t i = 0; i < in.size(); ++i)
    if (i != 1 && i != 2 && in[i].view) in[i].view = without_last(*in[i].view);
  out.view = without_last(*out.view);
  for (auto* numbers : {&s.kernel, &s.pad_begin}) numbers->pop_back();
  s.strides.pop_back(), s.dilations.pop_back();
  return true;
}

}  // namespace

Status lower_conv(LowerContext& c, FusedTail tail) {
  const Type &x = c.type(0), &w = c.type(1), &y = c.out_type(0);
  size_t rank = y.dims.size();
  if (!cube_float(x.dtype) || !cube_float(w.dtype) || rank < 3 || rank > 5) return ok();
  GE_TRY(Spatial s, conv_spatial(c.graph, c.node));
  int64_t groups = ir::attr_int(c.node, "group", 1);
  GE_RETURN_IF_ERROR(settle_residual(c, tail));
  const Tensor* weights = c.constant_of(1);
  bool depthwise = weights && groups > 1 && w.dims[1].is(1);

  Strided x_view;
  std::vector<Arg> in{input_as_f32(c, 0, x_view)};
  int tile = weights && x.dtype == DType::f32 ? static_cast<int>(ir::attr_int(c.node, "winograd", 0)) : 0;
  const bool kept = ir::attr_int(c.node, "winograd_kept", 0) != 0;
  const bool stored = ir::attr_int(c.node, "winograd_stored", 0) != 0;
  const bool choose = tile && !stored && !known_dims(y.dims) && 5 + tail.extras.size() <= kernels::cube::kMostOfChoice;
  GE_TRY(Dim rows, Dim::parse(ir::attr_string(c.node, "winograd_rows", "0")));
  RunFilters run_filters;
  if (tile && stored) in.push_back(c.weight(pack_winograd(*weights, tile)));
  else if (tile) in.push_back((run_filters = filters_of_run(c, *weights, tile, choose, kept, rows)).transformed);
  else if (depthwise) in.push_back(c.weight(pack_depthwise(*weights)));
  else if (weights && computes_bf16(c.node)) in.push_back(c.weight(pair_panels(pack_conv(*weights, groups), w.dims[1].value())));
  else if (weights) in.push_back(c.weight(pack_conv(*weights, groups)));
  else in.push_back(pack_computed(c, groups));
  in.push_back(bias_vector(c, tail, w.dims[0]));
  in[0].view = x_view;
  Strided residual;
  in.push_back(tail.residual >= 0 ? input_as_f32(c, tail.residual, residual) : Arg{});
  if (tail.residual >= 0) in[3].view = residual;
  for (int i : tail.extras) in.push_back(extra_operand(c, i, rank));
  while (!choose && in.back().kind == Arg::Kind::none) in.pop_back();
  if (choose) in.push_back(run_filters.direct);

  bool cast = y.dtype != DType::f32;
  Arg out = cast ? channels_last_temp(c, DType::f32, y.dims) : c.out(), whole = out;
  if (!out.view) out.view = c.out_view();
  std::vector<Dim> x_dims = x.dims, y_dims = y.dims;
  while (!tile && drop_width(s, x_dims, y_dims, in, out)) x_dims.pop_back(), y_dims.pop_back();
  std::vector<Dim> ints{Dim(static_cast<int64_t>(s.kernel.size())), Dim(groups)};
  append(ints, s.kernel);
  append(ints, s.strides);
  append(ints, s.dilations);
  append(ints, s.pad_begin);
  ints.push_back(Dim(tail.act));
  if (choose) append(ints, {Dim(int64_t{kept}), rows});
  c.call(choose ? "cube.winograd_or_direct" : tile ? "cube.winograd" : depthwise ? "cube.depthwise" : "cube.conv", std::move(in), {out}, std::move(ints),
         {tail.p, tail.q}, encode_program(tail));
  if (cast) emit_copy(c, whole, DType::f32, c.out(), y.dtype);
  return ok();
}

}  // namespace ge::ops
