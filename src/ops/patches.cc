// CenterCropPad, Col2Im and MaxUnpool.
#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

// ---- CenterCropPad

Status infer_crop(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  GE_RETURN_IF_ERROR(require_index(c, 1));
  if (!c.ranked(0)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  auto dims = c.dims(0);
  auto axes = attr_ints(c.node, "axes");
  if (!ir::has_attr(c.node, "axes"))
    for (int a = 0; a < c.rank(0); ++a) axes.push_back(a);
  auto shape = c.elements(1);
  if (shape && shape->size() != axes.size()) return c.fail(format("shape has {} sizes for {} axes; one for each axis is needed", shape->size(), axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    GE_TRY(int axis, normalize_axis(c, axes[i], c.rank(0)));
    Dim size = shape ? (*shape)[i] : c.fresh(format("d{}", i));
    if (size.known() && size.value() < 0) return c.fail(format("a size is {}; none may be negative", size.value()));
    dims[static_cast<size_t>(axis)] = size;
  }
  c.set(0, c.dtype(0), std::move(dims));
  return ok();
}

Status reference_crop(LowerContext& c) {
  c.call("ref.CenterCropPad", {c.in(0)}, {c.out()});
  return ok();
}

// ---- Col2Im

Status infer_col(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 3));
  GE_RETURN_IF_ERROR(require_index(c, 1));
  GE_RETURN_IF_ERROR(require_index(c, 2));
  if (c.ranked(0) && c.rank(0) != 3) return c.fail(format("{} has not 3 axes", text(c.dims(0))));
  auto image = c.elements(1);
  auto block = c.elements(2);
  if (auto n = listed_rank(c, 1); !image && n) image = fresh_dims(c, *n);
  if (!image) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  size_t r = image->size();
  if (r < 1 || r + 2 > static_cast<size_t>(kMaxRank) || (block && block->size() != r)) return c.fail("image_shape and block_shape differ in length");
  for (auto* a : {"strides", "dilations", "pads"}) {
    size_t n = attr_ints(c.node, a).size();
    if (n && n != (a[0] == 'p' ? 2 * r : r)) return c.fail(format("attribute {} has {} numbers, not {}", a, n, a[0] == 'p' ? 2 * r : r));
  }
  Dim taps(1);
  for (size_t i = 0; block && i < r; ++i) {
    auto& b = (*block)[i];
    if (b.known() && (b.value() < 1 || b.value() > (1 << 20))) return c.fail(format("a size of block_shape is {}; it must be 1 to {}", b.value(), 1 << 20));
    taps = taps * b;
    if (taps.known() && taps.value() > (1 << 30)) return c.fail("the blocks are too large");
  }
  Dim batch = c.ranked(0) ? c.dims(0)[0] : c.fresh("n"), channels = c.ranked(0) && block ? floordiv(c.dims(0)[1], taps) : c.fresh("c");
  if (c.ranked(0) && block && c.dims(0)[1].known() && taps.known() && c.dims(0)[1].value() % taps.value())
    return c.fail(format("{} rows are no multiple of the {} elements of a block", c.dims(0)[1].value(), taps.value()));
  std::vector<Dim> out{batch, channels};
  out.insert(out.end(), image->begin(), image->end());
  c.set(0, c.dtype(0), std::move(out));
  return ok();
}

Status reference_col(LowerContext& c) {
  auto block = c.elements(2);
  if (!block) return c.fail("its block_shape is known only at run time");
  size_t r = block->size();
  auto strides = attr_ints(c.node, "strides"), dilations = attr_ints(c.node, "dilations"), pads = attr_ints(c.node, "pads");
  strides.resize(r, 1), dilations.resize(r, 1), pads.resize(2 * r, 0);
  std::vector<Dim> ints{static_cast<int64_t>(r)};
  for (size_t i = 0; i < r; ++i) ints.insert(ints.end(), {(*block)[i], dilations[i], pads[i], pads[r + i], strides[i]});
  c.call("ref.Col2Im", {c.in(0)}, {c.out()}, std::move(ints));
  return ok();
}

// ---- MaxUnpool

// The sizes that the pooled tensor had, by its attributes.
std::vector<Dim> unpooled(const Node& n, const std::vector<Dim>& x) {
  auto kernel = attr_ints(n, "kernel_shape"), strides = attr_ints(n, "strides"), pads = attr_ints(n, "pads");
  size_t r = kernel.size();
  strides.resize(r, 1), pads.resize(2 * r, 0);
  std::vector<Dim> out(x.begin(), x.begin() + 2);
  for (size_t i = 0; i < r; ++i) out.push_back((x[i + 2] - Dim(1)) * Dim(strides[i]) + Dim(kernel[i] - pads[i] - pads[r + i]));
  return out;
}

Status infer_unpool(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  if (c.dtype(1) != DType::i64) return c.fail(format("indices are {}, not i64", name(c.dtype(1))));
  if (!c.ranked(0)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  size_t r = attr_ints(c.node, "kernel_shape").size(), rank = static_cast<size_t>(c.rank(0));
  size_t strides = attr_ints(c.node, "strides").size(), pads = attr_ints(c.node, "pads").size();
  if (rank < 3 || r + 2 != rank || (strides && strides != r) || (pads && pads != 2 * r))
    return c.fail(format("kernel_shape, strides and pads do not fit the input {}: two axes come before the spatial ones", text(c.dims(0))));
  if (!c.has(2)) {
    c.set(0, c.dtype(0), unpooled(c.node, c.dims(0)));
    return ok();
  }
  auto shape = c.elements(2);
  if (!shape) shape = fresh_dims(c, rank);
  if (shape->size() != rank) return c.fail(format("output_shape has {} numbers for {} axes; one for each axis is needed", shape->size(), rank));
  c.set(0, c.dtype(0), std::move(*shape));
  return ok();
}

Status reference_unpool(LowerContext& c) {
  c.call("ref.MaxUnpool", {c.in(0), c.in(1)}, {c.out()}, unpooled(c.node, c.type(0).dims));
  return ok();
}

const Register registered[] = {
    Register(OpDef{.name = "CenterCropPad", .min_inputs = 2, .max_inputs = 2, .since = 18,
                   .attrs = {{"axes", "That the shape speaks of; default all."}},
                   .doc = "Cut or padded with zeros evenly to a shape.", .infer = infer_crop, .reference = reference_crop, .sizes = 1u << 1}),
    Register(OpDef{.name = "Col2Im", .min_inputs = 3, .max_inputs = 3, .since = 18,
                   .attrs = {{"strides", "Steps of the windows."}, {"dilations", "Steps between taps."}, {"pads", "Around the image."}},
                   .doc = "Windows added up to an image.", .types = types::numbers | types::boolean | types::complex, .infer = infer_col, .reference = reference_col, .sizes = 1u << 1 | 1u << 2}),
    Register(OpDef{.name = "MaxUnpool", .min_inputs = 2, .max_inputs = 3, .since = 9,
                   .attrs = {{"kernel_shape", "Of the pooling."}, {"strides", "Of the pooling."}, {"pads", "Of the pooling."}},
                   .doc = "Zeros with the input at the places that MaxPool gave.", .infer = infer_unpool,
                   .reference = reference_unpool, .sizes = 1u << 2}),
};

}  // namespace
}  // namespace ge::ops
