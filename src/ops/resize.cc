// Resize in all its modes, and Upsample as it was before it.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

constexpr const char* kModes[] = {"nearest", "linear", "cubic"};
constexpr const char* kCoordinates[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                        "asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"};
constexpr const char* kNearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};

template <size_t N>
int64_t find_name(const char* const (&names)[N], std::string_view s) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == s) return static_cast<int64_t>(i);
  return -1;
}

std::string coordinates_of(const Node& n) { return attr_string(n, "coordinate_transformation_mode", "half_pixel"); }
bool crops(const Node& n) { return coordinates_of(n) == "tf_crop_and_resize"; }

bool given(const Graph& g, const Node& n, size_t i) {
  if (i >= n.inputs.size() || !n.inputs[i]) return false;
  // An empty tensor stands for an absent one, as opset 11 had it.
  auto& t = g.value(n.inputs[i]).type;
  return !(t.ranked && t.rank() == 1 && t.dims[0].is(0));
}

// Numbers of a constant float list.
std::optional<std::vector<double>> floats(const Graph& g, const Node& n, size_t i) {
  auto* t = g.value(n.inputs[i]).constant.get();
  if (!t) return std::nullopt;
  std::vector<double> out;
  for (int64_t k = 0; k < t->count(); ++k) out.push_back(t->at(k));
  return out;
}

// The axes that sizes, scales and roi speak of.
std::vector<size_t> axes_of(const Node& n, int rank) {
  std::vector<size_t> out;
  auto axes = attr_ints(n, "axes");
  if (axes.empty())
    for (int i = 0; i < rank; ++i) out.push_back(static_cast<size_t>(i));
  for (int64_t a : axes) out.push_back(static_cast<size_t>(wrap_axis(a, rank)));
  return out;
}

Status check(const InferContext& c) {
  auto& n = c.node;
  auto known = [&](std::string_view attr, const auto& names, const char* otherwise) -> Status {
    std::string v = attr_string(n, attr, otherwise);
    if (find_name(names, v) < 0) return c.fail(format("{} '{}' is not known", attr, v));
    return ok();
  };
  GE_RETURN_IF_ERROR(known("mode", kModes, "nearest"));
  GE_RETURN_IF_ERROR(known("coordinate_transformation_mode", kCoordinates, "half_pixel"));
  GE_RETURN_IF_ERROR(known("nearest_mode", kNearest, "round_prefer_floor"));
  for (int64_t a : attr_ints(n, "axes")) {
    GE_TRY(int checked, normalize_axis(c, a, c.rank(0)));
    (void)checked;
  }
  bool sizes = given(c.graph, n, 3), scales = given(c.graph, n, 2);
  if (sizes == scales) return c.fail(sizes ? "it has both scales and sizes; one of them is needed" : "it has neither scales nor sizes; one of them is needed");
  return ok();
}

// floor(size * scale) with f32's product. Of a fraction of few bits the product is exact for all sizes that occur.
Result<Dim> scaled(const InferContext& c, const Dim& size, double scale) {
  if (!(scale > 0) || scale > 1e9) return c.fail(format("a scale is {}; it must be above 0 and at most 1e9", scale));
  constexpr int64_t kMost = 16;   // of what stands above and below in such a fraction
  for (int64_t below = 1; below <= kMost; below *= 2) {
    const double above = scale * static_cast<double>(below);
    if (above == std::floor(above) && (below == 1 || above <= static_cast<double>(kMost * below)) && !size.known())
      return floordiv(size * Dim(static_cast<int64_t>(above)), below);
  }
  return Dim::call(DimCall::scaled, {size, Dim(std::bit_cast<int32_t>(static_cast<float>(scale)))});
}

std::string policy_of(const Node& n) { return attr_string(n, "keep_aspect_ratio_policy", "stretch"); }

// Whether a task computes its sizes: of scales or a roi that data say, or by a policy from sizes that are not numbers.
bool by_data(const Graph& g, const Node& n) {
  if (!given(g, n, 3)) return !floats(g, n, 2) || (crops(n) && given(g, n, 1) && !floats(g, n, 1));
  if (policy_of(n) == "stretch") return crops(n) && given(g, n, 1) && !floats(g, n, 1);
  auto sizes = g.elements(n.inputs[3]);
  auto& dims = g.value(n.inputs[0]).type.dims;
  bool known = sizes && known_dims(*sizes).has_value();
  for (size_t a : axes_of(n, static_cast<int>(dims.size()))) known &= dims[a].known();
  return !known;
}

std::vector<Dim> fresh_sizes(InferContext& c, const std::vector<size_t>& axes) {
  auto dims = c.dims(0);
  for (size_t a : axes) dims[a] = c.fresh(format("d{}", a));
  return dims;
}

Result<std::vector<Dim>> from_scales(InferContext& c, const std::vector<size_t>& axes) {
  auto dims = c.dims(0);
  auto scales = floats(c.graph, c.node, 2);
  if (by_data(c.graph, c.node)) return fresh_sizes(c, axes);
  if (scales->size() != axes.size()) return c.fail(format("there are {} scales for {} axes; one for each axis is needed", scales->size(), axes.size()));
  std::vector<double> roi;
  if (crops(c.node)) {
    auto r = given(c.graph, c.node, 1) ? floats(c.graph, c.node, 1) : std::nullopt;
    if (!r || r->size() != 2 * axes.size()) return c.fail("the roi must be a constant with a start and an end for each axis");
    roi = std::move(*r);
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    double s = (*scales)[i];
    if (!roi.empty()) s *= roi[axes.size() + i] - roi[i];
    GE_TRY(dims[axes[i]], scaled(c, dims[axes[i]], s));
  }
  return dims;
}

// keep_aspect_ratio_policy: one scale for all axes, the smallest or the largest of the ratios.
Result<double> common_scale(const Graph& g, const Node& n) {
  auto& type = g.value(n.inputs[0]).type;
  auto sizes = g.elements(n.inputs[3]);
  auto axes = axes_of(n, type.rank());
  auto fail = [&](const char* why) { return node_error(code::kBadOp, n.name, format("Resize: {}", why)); };
  if (!sizes || sizes->size() != axes.size()) return fail("keep_aspect_ratio_policy needs one known size for each axis");
  bool larger = attr_string(n, "keep_aspect_ratio_policy", "stretch") == "not_larger";
  double scale = larger ? HUGE_VAL : 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Dim &want = (*sizes)[i], &have = type.dims[axes[i]];
    if (!want.known() || !have.known()) return fail("keep_aspect_ratio_policy needs sizes that are numbers");
    if (have.is(0)) return fail("there is nothing to resize");
    double r = static_cast<double>(want.value()) / static_cast<double>(have.value());
    scale = larger ? std::min(scale, r) : std::max(scale, r);
  }
  return scale;
}

Result<std::vector<Dim>> from_sizes(InferContext& c, const std::vector<size_t>& axes) {
  auto dims = c.dims(0);
  auto sizes = c.elements(3);
  std::string policy = policy_of(c.node);
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller") return c.fail(format("keep_aspect_ratio_policy '{}' is not known; it is 'stretch', 'not_larger' or 'not_smaller'", policy));
  if (policy != "stretch" && by_data(c.graph, c.node)) return fresh_sizes(c, axes);
  if (!sizes) return c.fail("its sizes are known only at run time");
  if (sizes->size() != axes.size()) return c.fail(format("there are {} sizes for {} axes; one for each axis is needed", sizes->size(), axes.size()));
  if (policy == "stretch") {
    for (size_t i = 0; i < axes.size(); ++i) {
      if ((*sizes)[i].known() && (*sizes)[i].value() < 0) return c.fail(format("a size is {}; none may be negative", (*sizes)[i].value()));
      dims[axes[i]] = (*sizes)[i];
    }
    return dims;
  }
  GE_TRY(double scale, common_scale(c.graph, c.node));
  for (size_t a : axes) dims[a] = static_cast<int64_t>(std::floor(scale * static_cast<double>(dims[a].value()) + 0.5));
  return dims;
}

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  if (!c.ranked(0)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  GE_RETURN_IF_ERROR(check(c));
  auto axes = axes_of(c.node, c.rank(0));
  GE_TRY(auto dims, given(c.graph, c.node, 3) ? from_sizes(c, axes) : from_scales(c, axes));
  c.set(0, c.dtype(0), std::move(dims));
  return ok();
}

// A task computes sizes, scales and roi; the kernel runs when they are known.
void emit_by_data(LowerContext& c, const char* kernel, std::vector<Dim> ints, std::vector<double> f) {
  auto& n = c.node;
  auto& dims = c.type(0).dims;
  auto axes = axes_of(n, c.type(0).rank());
  std::string policy = policy_of(n);
  bool sizes = given(c.graph, n, 3);
  bool stretch = sizes && policy == "stretch";
  std::vector<Dim> what{stretch ? 4 : sizes ? policy == "not_larger" ? 1 : 2 : crops(n) ? 3 : 0};
  for (size_t a : axes) what.push_back(dims[a]);
  std::vector<Arg> in{c.in(sizes ? 3 : 2)};
  if (crops(n) && (stretch || !sizes)) in.push_back(c.in(1));
  auto count = static_cast<int64_t>(axes.size());
  Arg made = c.temp(DType::i64, {4 * count});
  c.call("host.resize", std::move(in), {made}, std::move(what));
  std::vector<Dim> scale(dims.size(), std::bit_cast<int64_t>(1.0)), start(dims.size(), 0), end(dims.size(), std::bit_cast<int32_t>(1.0f));
  for (size_t i = 0; i < axes.size(); ++i) {
    auto part = [&](const char* name, int64_t list) {
      Dim symbol = c.own(format("{}{}", name, axes[i]));
      c.size(symbol, made, static_cast<int>(list * count + static_cast<int64_t>(i)));
      return symbol;
    };
    if (!stretch) part("d", 0);
    scale[axes[i]] = stretch ? Dim(0) : part("scale", 1);
    if (crops(n)) start[axes[i]] = part("start", 2), end[axes[i]] = part("end", 3);
  }
  ints.insert(ints.end(), scale.begin(), scale.end());
  if (crops(n)) ints.insert(ints.end(), start.begin(), start.end()), ints.insert(ints.end(), end.begin(), end.end());
  c.call(kernel, {c.in(0)}, {c.out()}, std::move(ints), std::move(f));
}

Status emit(LowerContext& c, const char* kernel) {
  auto& n = c.node;
  auto rank = static_cast<size_t>(c.type(0).rank());
  auto axes = axes_of(n, c.type(0).rank());
  std::vector<Dim> ints{find_name(kModes, attr_string(n, "mode", "nearest")), find_name(kCoordinates, coordinates_of(n)),
                        find_name(kNearest, attr_string(n, "nearest_mode", "round_prefer_floor")),
                        attr_int(n, "exclude_outside", 0) != 0, attr_int(n, "antialias", 0) != 0};
  std::vector<double> f{attr_float(n, "cubic_coeff_a", -0.75), attr_float(n, "extrapolation_value", 0)};
  if (by_data(c.graph, n)) {
    emit_by_data(c, kernel, std::move(ints), std::move(f));
    return ok();
  }
  std::vector<double> scale(rank, 1.0), start(rank, 0.0), end(rank, 1.0);
  bool by_sizes = given(c.graph, n, 3);
  if (by_sizes) {
    double common = 0;
    if (attr_string(n, "keep_aspect_ratio_policy", "stretch") != "stretch") {
      GE_TRY(common, common_scale(c.graph, n));
    }
    for (size_t a : axes) scale[a] = common;
  } else {
    auto s = floats(c.graph, n, 2);
    if (!s) return c.fail("its scales are known only at run time");
    for (size_t i = 0; i < axes.size(); ++i) scale[axes[i]] = (*s)[i];
  }
  f.insert(f.end(), scale.begin(), scale.end());
  if (crops(n)) {
    auto roi = given(c.graph, n, 1) ? floats(c.graph, n, 1) : std::nullopt;
    if (!roi || roi->size() != 2 * axes.size()) return c.fail("the roi must be a constant with a start and an end for each axis");
    for (size_t i = 0; i < axes.size(); ++i) start[axes[i]] = (*roi)[i], end[axes[i]] = (*roi)[axes.size() + i];
    f.insert(f.end(), start.begin(), start.end());
    f.insert(f.end(), end.begin(), end.end());
  }
  c.call(kernel, {c.in(0)}, {c.out()}, std::move(ints), std::move(f));
  return ok();
}
Status lower(LowerContext& c) { return emit(c, "move.resize"); }
Status reference(LowerContext& c) { return emit(c, "ref.Resize"); }

void set_default(Node& n, const char* attr, const char* value) {
  if (!has_attr(n, attr)) n.attrs[attr] = std::string(value);
}

// Opset 10 had (x, scales) and one way to compute coordinates.
Status upgrade(UpgradeContext& c) {
  if (c.version >= 11) return ok();
  Node& n = c.node();
  ValueId scales = n.inputs.size() > 1 ? n.inputs[1] : ValueId{};
  while (c.node().inputs.size() < 3) c.graph.add_node_input(c.id, {});
  c.graph.set_input(c.id, 1, {});
  c.graph.set_input(c.id, 2, scales);
  set_default(c.node(), "coordinate_transformation_mode", "asymmetric");
  set_default(c.node(), "nearest_mode", "floor");
  return ok();
}

Status upgrade_upsample(UpgradeContext& c) {
  if (c.version < 9) c.attr_to_input("scales", 1);
  c.node().op = "Resize";
  c.version = 10;
  return upgrade(c);
}

const Register resize(OpDef{.name = "Resize",
                            .min_inputs = 1,
                            .max_inputs = 4,
                            .since = 10,
                            .attrs = {{"mode", "nearest, linear or cubic."},
                                      {"coordinate_transformation_mode", "Where output positions lie in the input."},
                                      {"nearest_mode", "How nearest rounds."},
                                      {"cubic_coeff_a", "Shape of the cubic."},
                                      {"exclude_outside", "Weights outside of the input become 0."},
                                      {"extrapolation_value", "Outside of the input with tf_crop_and_resize."},
                                      {"antialias", "Widen the filter when shrinking."},
                                      {"axes", "What scales, sizes and roi speak of."},
                                      {"keep_aspect_ratio_policy", "stretch, not_larger or not_smaller."}},
                            .doc = "Resamples the input to other sizes.",
                            .infer = infer,
                            .upgrade = upgrade,
                            .reference = reference,
                            .lower = lower,
                            .layout = layout_of_input,
                            .sizes = 1u << 3});
const Register upsample(OpDef{.name = "Upsample",
                              .min_inputs = 1,
                              .max_inputs = 2,
                              .attrs = {{"mode", "nearest or linear."}},
                              .doc = "Resize of before opset 10.",
                              .upgrade = upgrade_upsample});

}  // namespace
}  // namespace ge::ops
