// DFT and STFT.
#include "base/text.h"
#include "ops/axes_from_data.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

bool flag(const Node& n, const char* a, int64_t otherwise) { return attr_int(n, a, otherwise) != 0; }

// The one number of integer input i; nullopt where only running will tell.
std::optional<Dim> number(const InferContext& c, int i) {
  auto e = c.elements(i);
  if (!e || e->size() != 1) return std::nullopt;
  return (*e)[0];
}
Status check_complex(const InferContext& c, int rank_least) {
  if (!is_float(c.dtype(0))) return c.fail(format("{} is not a float type", name(c.dtype(0))));
  if (c.ranked(0) && c.rank(0) < rank_least) return c.fail(format("{} has too few axes", text(c.dims(0))));
  if (c.ranked(0) && c.rank(0) > 2 && c.dims(0).back().known() && !c.dims(0).back().is(1) && !c.dims(0).back().is(2))
    return c.fail(format("the last axis of {} is neither real (1) nor complex (2)", text(c.dims(0))));
  return ok();
}

// ---- DFT

std::optional<Dim> axis_of(const Graph& g, const Node& n) {
  if (n.inputs.size() < 3 || !n.inputs[2]) return Dim(-2);
  auto e = g.elements(n.inputs[2]);
  if (!e || e->size() != 1) return std::nullopt;
  return (*e)[0];
}

// What the transform makes of the size along its axis.
Dim transformed(const InferContext& c, Dim size) {
  bool inverse = flag(c.node, "inverse", 0), onesided = flag(c.node, "onesided", 0);
  if (c.has(1)) size = *number(c, 1);
  else if (inverse && onesided) size = Dim(2) * (size - Dim(1));
  return onesided && !inverse ? floordiv(size, 2) + Dim(1) : size;
}

Status infer_dft_by_data(InferContext& c, const Dim& axis) {
  if (c.has(1) && !number(c, 1)) return c.fail("its dft_length is known only at run time");
  auto dims = c.dims(0);
  auto mask = axis_mask({axis}, c.rank(0));
  for (size_t k = 0; k + 1 < dims.size(); ++k) dims[k] = select(mask[k], transformed(c, dims[k]), dims[k]);
  // The last axis holds the parts of a number.
  dims.back() = only_if(Dim(1) - mask.back(), Dim(flag(c.node, "onesided", 0) && flag(c.node, "inverse", 0) ? 1 : 2));
  c.set(0, c.dtype(0), std::move(dims));
  return ok();
}

Status infer_dft(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  GE_RETURN_IF_ERROR(require_index(c, 1));
  for (int i : {1, 2}) GE_RETURN_IF_ERROR(require_one(c, i));
  GE_RETURN_IF_ERROR(check_complex(c, 2));
  auto axis = axis_of(c.graph, c.node);
  if (!axis) return c.fail("its axis is known only at run time", "Make the axis a constant.");
  if (!c.ranked(0)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  if (!axis->known()) return infer_dft_by_data(c, *axis);
  GE_TRY(int a, normalize_axis(c, axis->value(), c.rank(0)));
  if (a == c.rank(0) - 1) return c.fail("its axis is the last one, which holds the parts of a number");
  bool inverse = flag(c.node, "inverse", 0), onesided = flag(c.node, "onesided", 0);
  auto dims = c.dims(0);
  if (onesided && !inverse && dims.back().is(2)) return c.fail("a one-sided transform takes a real signal");
  auto& size = dims[static_cast<size_t>(a)];
  if (c.has(1)) {
    auto n = number(c, 1);
    size = n ? *n : c.fresh("length");
  } else if (inverse && onesided) {
    size = Dim(2) * (size - Dim(1));
  }
  if (size.known() && size.value() < 1) return c.fail(format("its dft_length is {}; it must be 1 or more", size.value()));
  if (onesided && !inverse) size = floordiv(size, 2) + Dim(1);
  dims.back() = Dim(onesided && inverse ? 1 : 2);
  c.set(0, c.dtype(0), std::move(dims));
  return ok();
}

Status reference_dft(LowerContext& c) {
  auto& x = c.type(0);
  Dim a = wrapped_axis(*axis_of(c.graph, c.node), x.rank());
  bool inverse = flag(c.node, "inverse", 0), onesided = flag(c.node, "onesided", 0);
  Dim length;
  for (size_t k = 0; k < x.dims.size(); ++k) length = select(equal(a, Dim(static_cast<int64_t>(k))), x.dims[k], length);
  if (c.has(1)) {
    auto e = c.elements(1);
    if (!e) return c.fail("its dft_length is known only at run time");
    length = (*e)[0];
  } else if (inverse && onesided) {
    length = Dim(2) * (length - Dim(1));
  }
  c.call("ref.DFT", {c.in(0)}, {c.out()}, {a, length, inverse, onesided});
  return ok();
}

// Before opset 20 the axis was an attribute, by default 1.
Status upgrade_dft(UpgradeContext& c) {
  if (c.version >= 20) return ok();
  if (!ir::has_attr(c.node(), "axis")) c.node().attrs["axis"] = int64_t{1};
  int64_t axis = ir::attr_int(c.node(), "axis", 1);
  c.node().attrs.erase("axis");
  while (c.node().inputs.size() < 2) c.graph.add_node_input(c.id, ValueId{});
  c.graph.add_node_input(c.id, c.graph.add_constant(Tensor::scalar_i64(axis)));
  return ok();
}

// ---- STFT

// The frame length: the input, else the window's, else the signal's.
Dim frame_length(InferContext& c) {
  if (c.has(3)) {
    auto n = number(c, 3);
    return n ? *n : c.fresh("length");
  }
  if (c.has(2) && c.ranked(2) && c.rank(2) == 1) return c.dims(2)[0];
  return c.dims(0)[1];
}

Status infer_stft(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  GE_RETURN_IF_ERROR(require_index(c, 1));
  GE_RETURN_IF_ERROR(require_index(c, 3));
  for (int i : {1, 3}) GE_RETURN_IF_ERROR(require_one(c, i));
  GE_RETURN_IF_ERROR(check_complex(c, 2));
  if (!c.ranked(0)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  if (c.rank(0) > 3) return c.fail(format("{} has too many axes", text(c.dims(0))));
  Dim length = frame_length(c);
  auto step = number(c, 1);
  if ((step && step->known() && step->value() < 1) || (length.known() && length.value() < 1)) return c.fail("frame step and length must be positive");
  bool onesided = flag(c.node, "onesided", 1);
  if (onesided && c.rank(0) == 3 && c.dims(0)[2].is(2)) return c.fail("a one-sided transform takes a real signal");
  Dim frames = step ? max(floordiv(c.dims(0)[1] - length, *step) + Dim(1), 0) : c.fresh("frames");
  c.set(0, c.dtype(0), {c.dims(0)[0], frames, onesided ? floordiv(length, 2) + Dim(1) : length, Dim(2)});
  return ok();
}

Status reference_stft(LowerContext& c) {
  auto step = c.elements(1);
  Dim length = c.has(2) ? c.type(2).dims[0] : c.type(0).dims[1];
  if (c.has(3)) {
    auto e = c.elements(3);
    if (!e) return c.fail("its frame_length is known only at run time");
    length = (*e)[0];
  }
  if (!step) return c.fail("its frame_step is known only at run time");
  std::vector<Arg> in{c.in(0)};
  if (c.has(2)) in.push_back(c.in(2));
  c.call("ref.STFT", std::move(in), {c.out()}, {length, (*step)[0]});
  return ok();
}

const Register r1(OpDef{.name = "DFT", .min_inputs = 1, .max_inputs = 3, .since = 17,
                        .attrs = {{"inverse", "The inverse transform."}, {"onesided", "Half the spectrum of a real signal."}},
                        .doc = "Discrete Fourier transform along an axis.", .types = types::floats, .infer = infer_dft, .upgrade = upgrade_dft,
                        .reference = reference_dft, .sizes = 1u << 1, .parameters = 1u << 2});
const Register r2(OpDef{.name = "STFT", .min_inputs = 2, .max_inputs = 4, .since = 17,
                        .attrs = {{"onesided", "Half the spectrum of a real signal."}},
                        .doc = "Fourier transforms of windowed frames.", .types = types::floats, .infer = infer_stft, .reference = reference_stft,
                        .sizes = 1u << 1 | 1u << 3});

}  // namespace
}  // namespace ge::ops
