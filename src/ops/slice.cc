// Slice: a view for any starts and steps that are known or expressions over symbols.
#include <algorithm>

#include "base/text.h"
#include "ops/axes_from_data.h"
#include "ops/shape_util.h"
#include "tensor/limits.h"

namespace ge::ops {
namespace {

// Numbers beyond this are "to the end": sizes are smaller.
constexpr int64_t kFar = int64_t{1} << 40;

// The same for one axis: a tensor that has elements holds no more than kMaxTensorBytes.
int64_t far_of(const ir::Type& t, size_t axis) {
  int64_t most = kMaxTensorBytes / std::max<int64_t>(1, size_of(t.dtype));
  for (size_t k = 0; k < t.dims.size(); ++k) {
    if (k == axis) continue;
    if (!t.dims[k].known() || t.dims[k].value() <= 0) return kFar;
    most /= t.dims[k].value();
  }
  return std::min(kFar, most + 1);
}

struct Range {
  Dim start, step{1}, count;
};

// One axis: where it starts, and how many elements it takes.
struct AxisSlice {
  const Graph& g;
  const Dim& size;
  int64_t far = kFar;

  // An index that may count from the end, clamped to low..high.
  Dim clamp(const Dim& i, const Dim& low, const Dim& high) const {
    if (i.known()) {
      if (i.value() >= far) return high;
      if (i.value() <= -far) return low;
      Dim from_end = i.value() < 0 ? i + size : i;
      return max_of(g, min_of(g, from_end, high), low);
    }
    Dim positive = max_of(g, min_of(g, i, high), low);
    if (lower_bound(g, i) >= 0) return positive;
    // Data say numbers of any size: "to the end" is often the largest.
    Dim negative = max_of(g, min_of(g, (g.decided_by_data(i) ? min(i, 0) : i) + size, high), low);
    return select(Dim::call(DimCall::less, {i, Dim(0)}), negative, positive);
  }

  // A step that data say may go either way; 0 has no value.
  Range of(const Dim& start, const Dim& end, const Dim& step) const {
    if (step.known()) return of(start, end, step.value());
    return by(start, end, max(min(step, kFar), -kFar));
  }
  Range by(const Dim& start, const Dim& end, const Dim& step) const {
    Range up = of(start, end, 1), down = of(start, end, -1);
    Dim back = Dim::call(DimCall::less, {step, Dim(0)});
    Dim ups = floordiv(up.count + step - Dim(1), step), downs = floordiv(down.count - step - Dim(1), Dim(0) - step);
    return {select(back, down.start, up.start), step, max(select(back, downs, ups), 0)};
  }

  Range of(const Dim& start, const Dim& end, int64_t step) const {
    Range r;
    step = std::clamp(step, -kFar, kFar);
    r.step = step;
    if (step > 0) {
      r.start = clamp(start, 0, size);
      Dim length = clamp(end, 0, size) - r.start;
      r.count = max_of(g, step == 1 ? length : ceildiv(length, step), 0);
    } else {
      // A size of 0 gives start and end -1, and so nothing.
      r.start = min_of(g, clamp(start, 0, size - Dim(1)), size - Dim(1));
      Dim length = r.start - clamp(end, -1, size - Dim(1));
      r.count = max_of(g, step == -1 ? length : ceildiv(length, -step), 0);
    }
    return r;
  }
};

// Parameters as lists of one length; nullopt while something is known only at run time.
struct Parameters {
  std::vector<Dim> starts, ends, axes, steps;
};

std::optional<std::vector<int64_t>> numbers(const Graph& g, ValueId v) {
  auto e = g.elements(v);
  if (!e) return std::nullopt;
  return known_dims(*e);
}

std::optional<Parameters> parameters(const Graph& g, const Node& n) {
  auto has = [&](size_t i) { return i < n.inputs.size() && n.inputs[i]; };
  Parameters p;
  auto starts = g.elements(n.inputs[1]), ends = g.elements(n.inputs[2]);
  if (!starts || !ends) return std::nullopt;
  p.starts = std::move(*starts), p.ends = std::move(*ends);
  if (has(3)) {
    auto axes = g.elements(n.inputs[3]);
    if (!axes) return std::nullopt;
    p.axes = std::move(*axes);
  } else {
    for (size_t i = 0; i < p.starts.size(); ++i) p.axes.push_back(static_cast<int64_t>(i));
  }
  if (has(4)) {
    auto steps = g.elements(n.inputs[4]);
    if (!steps) return std::nullopt;
    p.steps = std::move(*steps);
  } else {
    p.steps.assign(p.starts.size(), 1);
  }
  return p;
}

// For each axis of the input.
std::vector<Range> ranges(const Graph& g, const Parameters& p, const ir::Type& type) {
  auto& dims = type.dims;
  std::vector<Range> out;
  for (auto& d : dims) out.push_back({Dim(0), Dim(1), d});
  if (!known_dims(p.axes)) {
    auto named = axis_mask(p.axes, static_cast<int>(dims.size()));
    auto starts = by_axis(p.axes, p.starts, std::vector<Dim>(dims.size())), ends = by_axis(p.axes, p.ends, dims);
    auto steps = by_axis(p.axes, p.steps, std::vector<Dim>(dims.size(), Dim(1)));
    for (size_t k = 0; k < dims.size(); ++k) {
      Range cut = AxisSlice{g, dims[k]}.of(starts[k], ends[k], steps[k]);
      out[k] = {select(named[k], cut.start, 0), select(named[k], cut.step, 1), select(named[k], cut.count, dims[k])};
    }
    return out;
  }
  for (size_t i = 0; i < p.axes.size(); ++i) {
    auto axis = static_cast<size_t>(wrap_axis(p.axes[i].value(), static_cast<int>(dims.size())));
    out[axis] = AxisSlice{g, dims[axis], far_of(type, axis)}.of(p.starts[i], p.ends[i], p.steps[i]);
  }
  return out;
}

Status check(const InferContext& c, const Parameters& p) {
  size_t n = p.starts.size();
  if (p.ends.size() != n || p.axes.size() != n || p.steps.size() != n)
    return c.fail(format("there are {} starts, {} ends, {} axes and {} steps; as many of each are needed", n, p.ends.size(), p.axes.size(), p.steps.size()));
  std::vector<bool> seen(static_cast<size_t>(c.rank(0)));
  for (size_t i = 0; i < n; ++i) {
    if (p.steps[i].is(0)) return c.fail("a step is 0; steps are positive or negative");
    if (!p.axes[i].known()) continue;
    GE_TRY(int axis, normalize_axis(c, p.axes[i].value(), c.rank(0)));
    if (seen[static_cast<size_t>(axis)]) return c.fail(format("axis {} is given twice", p.axes[i].value()));
    seen[static_cast<size_t>(axis)] = true;
  }
  return ok();
}

// Axes that are cut get unknown sizes.
Status infer_unknown(InferContext& c) {
  auto dims = c.dims(0);
  auto axes = c.has(3) ? numbers(c.graph, c.node.inputs[3]) : std::nullopt;
  std::vector<bool> cut(dims.size(), !axes);
  if (axes)
    for (int64_t a : *axes) {
      GE_TRY(int axis, normalize_axis(c, a, c.rank(0)));
      cut[static_cast<size_t>(axis)] = true;
    }
  if (!axes && !c.has(3) && c.ranked(1) && c.rank(1) == 1 && c.dims(1)[0].known())
    for (size_t i = 0; i < cut.size(); ++i) cut[i] = static_cast<int64_t>(i) < c.dims(1)[0].value();
  for (size_t i = 0; i < dims.size(); ++i)
    if (cut[i]) dims[i] = c.fresh(format("d{}", i));
  c.set(0, c.dtype(0), std::move(dims));
  return ok();
}

void slice_elements(InferContext& c, const std::vector<Range>& r) {
  auto e = known_elements(c, 0);
  if (!e || e->dims.size() != 1 || !r[0].start.known() || !r[0].count.known() || !r[0].step.known()) return;
  std::vector<Dim> out;
  for (int64_t i = 0; i < r[0].count.value(); ++i)
    out.push_back(e->values[static_cast<size_t>(r[0].start.value() + i * r[0].step.value())]);
  c.set_elements(0, std::move(out));
}

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 3));
  for (int i = 1; i < 5; ++i) GE_RETURN_IF_ERROR(require_index(c, i));
  if (!c.ranked(0)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  auto p = parameters(c.graph, c.node);
  if (!p) return infer_unknown(c);
  GE_RETURN_IF_ERROR(check(c, *p));
  auto r = ranges(c.graph, *p, c.type(0));
  std::vector<Dim> dims;
  for (auto& x : r) dims.push_back(x.count);
  c.set(0, c.dtype(0), std::move(dims));
  slice_elements(c, r);
  return ok();
}

std::optional<Strided> view(const Graph& g, const Node& n, int, const Strided& in) {
  auto p = parameters(g, n);
  if (!p) return std::nullopt;
  Strided v = in;
  auto r = ranges(g, *p, g.value(n.inputs[0]).type);
  for (size_t i = 0; i < r.size(); ++i) {
    v.dims[i] = r[i].count;
    v.offset = v.offset + r[i].start * in.strides[i];
    v.strides[i] = in.strides[i] * r[i].step;
  }
  return v;
}

Status reference(LowerContext& c) {
  auto p = parameters(c.graph, c.node);
  if (!p) return c.fail("its parameters are known only at run time");
  std::vector<Dim> starts, steps;
  for (auto& r : ranges(c.graph, *p, c.type(0))) starts.push_back(r.start), steps.push_back(r.step);
  starts.insert(starts.end(), steps.begin(), steps.end());
  c.call("ref.Slice", {c.in(0)}, {c.out()}, std::move(starts));
  return ok();
}

Status upgrade(UpgradeContext& c) {
  if (c.version >= 10) return ok();
  c.attr_to_input("starts", 1);
  c.attr_to_input("ends", 2);
  c.attr_to_input("axes", 3);
  return ok();
}

const Register slice(OpDef{.name = "Slice",
                           .min_inputs = 3,
                           .max_inputs = 5,
                           .doc = "Part of the input: from start to end by step along each axis.",
                           .infer = infer,
                           .upgrade = upgrade,
                           .reference = reference,
                           .lower = lower_views,
                           .view = view,
                           .layout = layout_of_input,
                           .parameters = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4});

}  // namespace
}  // namespace ge::ops
