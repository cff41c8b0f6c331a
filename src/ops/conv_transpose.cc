// ConvTranspose, and ge.ConvTranspose with what follows it: inputs x, w, bias, residual; the attributes of
// both ConvTranspose and fused_tail.h. Constant weights: each phase of the output (position modulo stride) is a
// convolution of stride 1 over some of the taps, written into its strided part of the output by cube.conv. Phases of
// the last axis that lie side by side in memory and do not overlap are channels of one convolution.
#include "ops/conv_transpose.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "kernels/cube/conv_pack.h"
#include "ops/fused_tail.h"
#include "ops/shape_util.h"
#include "ops/spatial.h"

namespace ge::ops {
namespace {

struct Transposed {
  std::vector<Dim> kernel, out, pad_begin;
  std::vector<int64_t> strides, dilations;
};

Result<Transposed> read(const Graph& g, const Node& n) {
  auto& x = g.value(n.inputs[0]).type.dims;
  auto& w = g.value(n.inputs[1]).type.dims;
  size_t rank = x.size() - 2;
  auto bad = [&](std::string why) { return node_error(code::kBadOp, n.name, format("ConvTranspose: {}", why)); };
  Transposed t;
  t.kernel.assign(w.begin() + 2, w.end());
  auto numbers = [&](const char* attr, size_t count, int64_t otherwise) {
    auto v = ir::attr_ints(n, attr);
    return v.empty() ? std::vector<int64_t>(count, otherwise) : v;
  };
  t.strides = numbers("strides", rank, 1), t.dilations = numbers("dilations", rank, 1);
  auto pads = numbers("pads", 2 * rank, 0), extra = numbers("output_padding", rank, 0);
  auto wanted = ir::attr_ints(n, "output_shape");
  if (wanted.size() == rank + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (t.strides.size() != rank || t.dilations.size() != rank || pads.size() != 2 * rank || extra.size() != rank ||
      (!wanted.empty() && wanted.size() != rank))
    return bad("an attribute has the wrong number of axes");
  for (size_t a = 0; a < rank; ++a)
    if (t.strides[a] < 1 || t.dilations[a] < 1 || pads[a] < 0 || pads[rank + a] < 0 || extra[a] < 0)
      return bad("an attribute has a number out of range");
  std::string mode = ir::attr_string(n, "auto_pad", "NOTSET");
  bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  for (size_t a = 0; a < rank; ++a) {
    Dim extent = (t.kernel[a] - Dim(1)) * Dim(t.dilations[a]) + Dim(1);
    Dim whole = Dim(t.strides[a]) * (x[a + 2] - Dim(1)) + Dim(extra[a]) + extent;
    if (wanted.empty() && !same) {
      bool valid = mode == "VALID";
      t.pad_begin.push_back(valid ? 0 : pads[a]);
      t.out.push_back(whole - (valid ? Dim(0) : Dim(pads[a] + pads[rank + a])));
      if (t.out[a].known() && t.out[a].value() < 0) return bad(format("axis {} of the output would have {} elements", a, t.out[a].text()));
      continue;
    }
    t.out.push_back(wanted.empty() ? x[a + 2] * Dim(t.strides[a]) : Dim(wanted[a]));
    Dim total = max(whole - t.out[a], Dim(0)), half = floordiv(total, Dim(2));
    t.pad_begin.push_back(mode == "SAME_UPPER" ? half : total - half);
  }
  return t;
}

int64_t groups_of(const Node& n) { return ir::attr_int(n, "group", 1); }

Status infer(InferContext& c) {
  if (!c.ranked(0) || !c.ranked(1)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  auto &x = c.dims(0), &w = c.dims(1);
  if (x.size() < 3 || w.size() != x.size()) return c.fail(format("the input {} and the weights {} must have one number of axes, 3 or more", text(x), text(w)));
  int64_t groups = groups_of(c.node);
  if (groups < 1 || (x[1].known() && x[1].value() % groups) || (x[1].known() && w[0].known() && !(x[1] == w[0])))
    return c.fail(format("the channels of input {} and weights {} do not fit {} groups", text(x), text(w), groups));
  GE_TRY(auto t, read(c.graph, c.node));
  std::vector<Dim> dims{x[0], w[1] * Dim(groups)};
  append(dims, t.out);
  c.set(0, c.dtype(0), std::move(dims));
  return ok();
}

Status reference(LowerContext& c) {
  GE_TRY(auto t, read(c.graph, c.node));
  std::vector<Dim> ints{Dim(groups_of(c.node))};
  append(ints, t.strides);
  append(ints, t.dilations);
  append(ints, t.pad_begin);
  std::vector<Arg> in{c.in(0), c.in(1)};
  if (c.has(2)) in.push_back(c.in(2));
  c.call("ref.ConvTranspose", std::move(in), {c.out()}, std::move(ints));
  return ok();
}

// The taps of one axis that reach outputs of one phase, in the order of the input positions that they read:
// output phase + stride * q reads input q + first + j * step with tap taps[j].
struct Phase {
  int64_t at = 0, first = 0, step = 1;
  std::vector<int64_t> taps;  // empty: nothing reaches these outputs
};

Phase phase_of(int64_t at, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad) {
  Phase p;
  p.at = at;
  p.step = dilation / std::gcd(stride, dilation);
  for (int64_t tap = kernel; tap-- > 0;) {
    int64_t reach = at + pad - tap * dilation;
    if (reach % stride) continue;
    if (p.taps.empty()) p.first = reach / stride;
    p.taps.push_back(tap);
  }
  return p;
}

int64_t extent_of(const Transposed& t, size_t axis) { return (t.kernel[axis].value() - 1) * t.dilations[axis] + 1; }

std::optional<RowWindow> rows(const Graph& g, const Node& n, int input, int axis) {
  if (input > 0 && input < 3) return RowWindow{.whole = true};
  if (input > 2) return broadcast_rows(g, n, input, axis);
  auto t = read(g, n);
  auto a = static_cast<size_t>(axis - 2);
  if (!t.ok() || axis < 2 || !known_dims(t->kernel) || !known_dims(t->out) || !known_dims(t->pad_begin)) return std::nullopt;
  const int64_t extent = extent_of(*t, a);
  if (extent < t->strides[a]) return std::nullopt;   // no piece begins with rows that no input reaches
  return RowWindow{.extent = extent, .begin = extent - 1 - t->pad_begin[a].value(), .scale = t->strides[a]};
}

void cut_rows(const Graph& g, const Node& from, Node& to, int axis, const RowRange& out, const RowRange& in) {
  auto t = read(g, from);
  if (!t.ok()) return;
  auto& x = g.value(from.inputs[0]).type.dims;
  const size_t rank = t->kernel.size();
  std::vector<int64_t> pads(2 * rank), extra(rank);
  for (size_t a = 0; a < rank; ++a) {
    const bool cut = static_cast<int>(a) + 2 == axis;
    const int64_t extent = extent_of(*t, a), count = cut ? in.count() : x[a + 2].value();
    pads[a] = t->pad_begin[a].value() + (cut ? out.begin - in.begin * t->strides[a] : 0);
    // What is left behind the rows that are wanted; rows that no input reaches where it is negative.
    const int64_t behind = (count - 1) * t->strides[a] + extent - pads[a] - (cut ? out.count() : t->out[a].value());
    pads[rank + a] = std::max<int64_t>(0, behind), extra[a] = std::max<int64_t>(0, -behind);
  }
  to.attrs["pads"] = std::move(pads), to.attrs["output_padding"] = std::move(extra);
  to.attrs["auto_pad"] = std::string("NOTSET");
  to.attrs.erase("output_shape");
}

// Weights [M, C / groups, taps...] of a convolution, from [C, M / groups, k...]; zeros where there are no taps.
Tensor phase_weights(const Tensor& w, int64_t groups, const std::vector<Phase>& phases) {
  auto& d = w.dims();
  int64_t cg = d[0] / groups, mg = d[1], taps = 1;
  std::vector<int64_t> dims{mg * groups, cg};
  bool none = false;
  for (auto& p : phases) {
    none |= p.taps.empty();
    dims.push_back(std::max<int64_t>(1, static_cast<int64_t>(p.taps.size())));
    taps *= dims.back();
  }
  Tensor out(DType::f32, dims);
  auto strides = dense_strides(d);
  for (int64_t i = 0, count = out.count(); i < count; ++i) {
    int64_t left = i % taps, from = 0, ch = i / taps % cg, m = i / taps / cg;
    for (size_t a = phases.size(); a-- > 0; left /= dims[a + 2])
      if (!none) from += phases[a].taps[static_cast<size_t>(left % dims[a + 2])] * strides[a + 2];
    from += (m / mg * cg + ch) * strides[0] + m % mg * strides[1];
    out.as<float>()[i] = none ? 0 : static_cast<float>(w.at(from));
  }
  return out;
}

// Of an operand of the output's shape, the elements of one phase.
Strided elements_of(Strided v, const Transposed& t, const std::vector<Phase>& phases) {
  for (size_t a = 0; a < phases.size(); ++a) {
    v.offset = v.offset + Dim(phases[a].at) * v.strides[a + 2];
    v.dims[a + 2] = ceildiv(v.dims[a + 2] - Dim(phases[a].at), Dim(t.strides[a]));
    v.strides[a + 2] = v.strides[a + 2] * Dim(t.strides[a]);
  }
  return v;
}

// f32 operands of all phases.
struct Operands {
  Arg x, y, bias, residual;
  Strided x_view, y_view, residual_view;
};

// The view of an operand of the output's shape, [N, M, ..., W * stride], as [N, stride * M, ..., W], the steps outermost.
Strided steps_as_channels(Strided v, const Dim& stride) {
  v.strides[1] = v.dims[1].is(1) ? v.strides.back() : v.strides[1];
  v.dims[1] = v.dims[1] * stride;
  v.dims.back() = floordiv(v.dims.back(), stride);
  v.strides.back() = v.strides.back() * stride;
  return v;
}

// Weights [C, M, ..., stride] as [C, stride * M, ..., 1].
Tensor steps_as_channels(const Tensor& w) {
  auto dims = w.dims();
  const int64_t channels = dims[1], steps = dims.back();
  int64_t between = 1;
  for (size_t a = 2; a + 1 < dims.size(); ++a) between *= dims[a];
  dims[1] *= steps, dims.back() = 1;
  Tensor out(DType::f32, dims);
  float* to = out.as<float>();
  for (int64_t c = 0; c < dims[0]; ++c)
    for (int64_t step = 0; step < steps; ++step)
      for (int64_t m = 0; m < channels; ++m)
        for (int64_t i = 0; i < between; ++i) *to++ = static_cast<float>(w.at(((c * channels + m) * between + i) * steps + step));
  return out;
}

// A vector of `count` elements `times` over.
Arg repeated(LowerContext& c, Arg vector, int64_t times, int64_t count) {
  if (vector.kind == Arg::Kind::constant) {
    const Tensor& one = c.constants[static_cast<size_t>(vector.index)];
    Tensor all(DType::f32, {times * count});
    for (int64_t i = 0; i < times; ++i) std::copy_n(one.as<float>(), count, all.as<float>() + i * count);
    return c.weight(std::move(all));
  }
  Strided from = vector.view ? *vector.view : Strided::dense({Dim(count)});
  vector.view = Strided{from.offset, {Dim(times), Dim(count)}, {Dim(0), from.strides[0]}};
  Arg all = c.temp(DType::f32, {Dim(times * count)}), to = all;
  to.view = Strided::dense({Dim(times), Dim(count)});
  emit_copy(c, std::move(vector), DType::f32, std::move(to), DType::f32);
  return all;
}

// Does so where windows of the last axis meet without overlap and their outputs lie side by side.
void merge_last_axis(LowerContext& c, Operands& o, Transposed& t, Tensor& w) {
  const size_t last = t.strides.size() - 1, axis = last + 2;
  const int64_t stride = t.strides[last], channels = w.dims()[1];
  auto side_by_side = [&](const Strided& v) {
    return channels == 1 || (v.strides[1].is(1) && v.strides[axis].is(channels));
  };
  if (stride == 1 || groups_of(c.node) != 1 || w.dims()[axis] != stride || t.dilations[last] != 1 ||
      !t.pad_begin[last].is(0) || !(t.out[last] == o.x_view.dims[axis] * Dim(stride)) || !side_by_side(o.y_view) ||
      (o.residual.kind != Arg::Kind::none && !side_by_side(o.residual_view)))
    return;
  if (o.bias.kind != Arg::Kind::none) o.bias = repeated(c, o.bias, stride, channels);
  w = steps_as_channels(w);
  o.y_view = steps_as_channels(o.y_view, Dim(stride));
  if (o.residual.kind != Arg::Kind::none) o.residual_view = steps_as_channels(o.residual_view, Dim(stride));
  t.strides[last] = 1, t.out[last] = o.x_view.dims[axis], t.kernel[last] = 1;
}

void emit_phase(LowerContext& c, Operands o, const FusedTail& tail, const Transposed& t, const Tensor& weights,
                const std::vector<Phase>& phases) {
  int64_t groups = groups_of(c.node);
  Tensor w = phase_weights(weights, groups, phases);
  std::vector<Dim> kernel, dilations, pads;
  for (size_t a = 0; a < phases.size(); ++a) {
    auto& p = phases[a];
    kernel.push_back(w.dims()[a + 2]);
    dilations.push_back(p.step);
    pads.push_back(std::max<int64_t>(0, -p.first));
    if (p.first > 0 || p.taps.empty()) {  // the first inputs are not read at all, or none
      Dim size = o.x_view.dims[a + 2], skipped = p.taps.empty() ? size : min(Dim(p.first), size);
      o.x_view.offset = o.x_view.offset + skipped * o.x_view.strides[a + 2];
      o.x_view.dims[a + 2] = o.x_view.dims[a + 2] - skipped;
    }
  }
  bool depthwise = groups > 1 && w.dims()[1] == 1;
  int64_t m = w.dims()[0], mg = m / groups, k = m ? w.count() / m : 0;
  Tensor packed(DType::f32, depthwise ? std::vector<int64_t>{k, (m + 15) / 16 * 16} : std::vector<int64_t>{groups, (mg + 15) / 16, k, 16});
  if (depthwise) kernels::cube::pack_depthwise_weights(w.view(), packed.as<float>());
  else kernels::cube::pack_conv_weights(w.view(), groups, packed.as<float>());
  std::vector<Dim> ints{Dim(static_cast<int64_t>(phases.size())), Dim(groups)};
  append(ints, kernel);
  append(ints, std::vector<int64_t>(phases.size(), 1));
  append(ints, dilations);
  append(ints, pads);
  ints.push_back(Dim(tail.act));
  o.x.view = o.x_view, o.y.view = elements_of(o.y_view, t, phases);
  std::vector<Arg> in{o.x, c.weight(std::move(packed)), o.bias, o.residual};
  if (o.residual.kind != Arg::Kind::none) in[3].view = elements_of(o.residual_view, t, phases);
  while (in.back().kind == Arg::Kind::none) in.pop_back();
  c.call(depthwise ? "cube.depthwise" : "cube.conv", std::move(in), {o.y}, std::move(ints), {tail.p, tail.q}, encode_program(tail));
}

Status lower_with(LowerContext& c, const FusedTail& tail) {
  if (!conv_transpose_by_phases(c.graph, c.node)) return ok();
  auto& yt = c.out_type(0);
  size_t rank = yt.dims.size() - 2;
  Tensor w = *c.constant_of(1);
  GE_TRY(auto t, read(c.graph, c.node));
  Operands o;
  o.x = input_as_f32(c, 0, o.x_view), o.y = c.out(), o.y_view = c.out_view();
  bool cast = yt.dtype != DType::f32;
  if (cast) o.y = c.temp(DType::f32, yt.dims), o.y_view = Strided::dense(yt.dims);
  o.bias = bias_vector(c, tail, yt.dims[1]);
  if (tail.residual >= 0) o.residual = input_as_f32(c, tail.residual, o.residual_view);
  merge_last_axis(c, o, t, w);
  int64_t phases = std::accumulate(t.strides.begin(), t.strides.end(), int64_t{1}, std::multiplies<>());
  for (int64_t i = 0; i < phases; ++i) {
    std::vector<Phase> p;
    int64_t left = i;
    bool empty = false;
    for (size_t a = 0; a < rank; ++a, left /= t.strides[a - 1]) {
      p.push_back(phase_of(left % t.strides[a], w.dims()[a + 2], t.strides[a], t.dilations[a], t.pad_begin[a].value()));
      empty |= t.out[a].known() && p[a].at >= t.out[a].value();
    }
    if (!empty) emit_phase(c, o, tail, t, w, p);
  }
  if (cast) emit_copy(c, o.y, DType::f32, c.out(), yt.dtype);
  return ok();
}

Status lower(LowerContext& c) {
  FusedTail tail;
  if (c.has(2)) tail.bias = 2;
  return lower_with(c, tail);
}

Status infer_fused(InferContext& c) {
  GE_TRY(auto tail, read_tail(c.node, 2));
  if (!tail.extras.empty()) return c.fail("its program takes no further inputs");
  return infer(c);
}

Status lower_fused(LowerContext& c) {
  GE_TRY(auto tail, read_tail(c.node, 2));
  return lower_with(c, tail);
}

std::vector<AttrDef> attrs() {
  return {{"auto_pad", "NOTSET, SAME_UPPER, SAME_LOWER or VALID"},
          {"dilations", "distance of the taps"},
          {"group", "groups of channels"},
          {"kernel_shape", "spatial size of the weights"},
          {"output_padding", "additional outputs at the end"},
          {"output_shape", "spatial size of the output"},
          {"pads", "begins, then ends"},
          {"strides", "steps of the window"}};
}

std::vector<AttrDef> fused_attrs() {
  auto a = attrs();
  for (auto& t : tail_attrs()) a.push_back(t);
  return a;
}

const Register fused(OpDef{.name = "ge.ConvTranspose",
                           .min_inputs = 2,
                           .max_inputs = 4,
                           .attrs = fused_attrs(),
                           .unit = kernels::Unit::cube,
                           .doc = "ConvTranspose with bias, residual, activation and a vector program",
                           .infer = infer_fused,
                           .lower = lower_fused,
                           .layout = channels_last_layout,
                           .window = rows,
                           .cut_rows = cut_rows});

const Register r(OpDef{.name = "ConvTranspose",
                       .min_inputs = 2,
                       .max_inputs = 3,
                       .attrs = attrs(),
                       .unit = kernels::Unit::cube,
                       .doc = "the gradient of a convolution with respect to its input",
                       .types = types::numbers,
                       .infer = infer,
                       .reference = reference,
                       .lower = lower,
                       .layout = channels_last_layout,
                       .window = rows,
                       .cut_rows = cut_rows});

}  // namespace

Verdict conv_transpose_by_phases(const Graph& g, const Node& n) {
  auto& x = g.value(n.inputs[0]).type;
  auto& w = g.value(n.inputs[1]);
  if (!x.ranked || x.rank() < 3 || x.rank() > 5) return no("more than 3 spatial axes");
  if (!w.constant || w.constant->count() == 0) return no("the weights are not constant", "make them constants of the model");
  if (!cube_float(x.dtype) || !cube_float(w.type.dtype)) return no(format("the values are {}", name(x.dtype)));
  auto t = read(g, n);
  if (!t.ok()) return no(t.error().message);
  int64_t phases = 1;
  for (size_t a = 0; a < t->strides.size(); ++a) {
    if (!t->pad_begin[a].known()) return no("the padding is not known", "give the inputs' shapes with --input_shape");
    phases *= t->strides[a];
    if (phases > 64) return no("the strides are large");
  }
  return yes();
}

}  // namespace ge::ops
