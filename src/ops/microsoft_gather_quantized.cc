// com.microsoft.GatherBlockQuantized: rows of a table that is quantised in blocks, gathered as they lie and then dequantised.
#include "base/text.h"
#include "ops/rewrite.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

enum Input { kData, kIndices, kScales, kZeros };

Status infer(InferContext& c) {
  c.set_unranked(0, c.dtype(kScales));
  const int64_t bits = ir::attr_int(c.node, "bits", 4), block = ir::attr_int(c.node, "block_size", 128);
  if (bits != 2 && bits != 4 && bits != 8) return c.fail(format("attribute bits is {}; it must be 2, 4 or 8", bits));
  if (block < 16 || block > (int64_t{1} << 30)) return c.fail(format("attribute block_size is {}; it must be 16 or more", block));
  if (!c.ranked(kData)) return ok();
  GE_TRY(int gathered, normalize_axis(c, ir::attr_int(c.node, "gather_axis", 0), c.rank(kData)));
  GE_TRY(int axis, normalize_axis(c, ir::attr_int(c.node, "quantize_axis", 1), c.rank(kData)));
  if (gathered == axis) return c.fail("the axis of the blocks is gathered");
  if (c.ranked(kScales) && c.rank(kScales) != c.rank(kData)) return c.fail("scales and data differ in rank");
  return ok();
}

Result<bool> expand(UpgradeContext& c) {
  const ir::Node n = c.node();
  const Type data = c.graph.value(n.inputs[kData]).type, indices = c.graph.value(n.inputs[kIndices]).type;
  if (!data.ranked || !indices.ranked) return false;
  const int64_t bits = ir::attr_int(n, "bits", 4), block = ir::attr_int(n, "block_size", 128);
  const int gathered = wrap_axis(ir::attr_int(n, "gather_axis", 0), data.rank());
  int axis = wrap_axis(ir::attr_int(n, "quantize_axis", 1), data.rank());
  if (axis > gathered) axis += indices.rank() - 1;
  auto taken = [&](size_t i) { return make_node(c, "Gather", {n.inputs[i], n.inputs[kIndices]}, {{"axis", int64_t{gathered}}}); };
  // Bytes hold several numbers of the last axis.
  const bool packed = data.dtype == DType::u8 && bits < 8;
  auto unpacked = [&](ValueId v) { return packed ? make_node(c, "ge.UnpackBits", {v}, {{"bits", bits}}) : v; };
  ValueId q = unpacked(taken(kData)), scale = taken(kScales), zero;
  if (input_of(c, kZeros)) {
    zero = unpacked(taken(kZeros));
    // Whole bytes may hold more than there are blocks.
    if (packed) zero = make_node(c, "Slice", {zero, c.constant_ints({0}), make_node(c, "Shape", {scale}, {{"start", int64_t{-1}}}), c.constant_ints({-1})});
  } else if (data.dtype == DType::u8) {
    Tensor middle(packed ? bits == 4 ? DType::u4 : DType::u2 : DType::u8, {});
    *middle.as<uint8_t>() = static_cast<uint8_t>(1 << (bits - 1));
    zero = make_node(c, "Expand", {c.graph.add_constant(std::move(middle), "middle"), make_node(c, "Shape", {scale})});
  }
  std::vector<ValueId> in{q, scale};
  if (zero) in.push_back(zero);
  become(c, "DequantizeLinear", std::move(in), {{"axis", int64_t{axis}}, {"block_size", block}});
  return true;
}

const Register r(OpDef{.name = "com.microsoft.GatherBlockQuantized",
                       .min_inputs = 3,
                       .max_inputs = 4,
                       .attrs = {{"bits", "Of a number where bytes hold several."}, {"block_size", "Numbers that share a scale."},
                                 {"gather_axis", "Of the indices."}, {"quantize_axis", "Of the blocks."}},
                       .doc = "written as Gather and DequantizeLinear",
                       .types = {DType::u8, DType::u4, DType::i4},
                       .infer = infer,
                       .expand = expand});

}  // namespace
}  // namespace ge::ops
