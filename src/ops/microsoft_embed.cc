// com.microsoft.EmbedLayerNormalization: on import the sum of word, position and segment embeddings, normalized.
#include "ops/rewrite.h"

namespace ge::ops {
namespace {

enum Input { kIds, kSegments, kWord, kPosition, kSegment, kScale, kShift, kMask, kPositions };

ValueId rows(UpgradeContext& c, ValueId table, ValueId ids) { return make_node(c, "Gather", {table, ids}, {{"axis", int64_t{0}}}); }

// 0 .. S - 1.
ValueId counted(UpgradeContext& c, ValueId ids) {
  ValueId length = size_of(c, ids, 1);
  return make_node(c, "Range", {number(c, 0), length, number(c, 1)});
}

// How many elements of each row of the mask are 1; zeros where there is none.
ValueId lengths(UpgradeContext& c, ValueId ids, ValueId mask) {
  const ir::Attrs i32 = {{"to", static_cast<int64_t>(DType::i32)}};
  ValueId one = c.graph.add_constant(Tensor::scalar_i64(mask ? 1 : 0), "one");
  ValueId ones = mask ? make_node(c, "Equal", {make_node(c, "Cast", {mask}, {{"to", static_cast<int64_t>(DType::i64)}}), one})
                      : make_node(c, "Mul", {make_node(c, "Cast", {ids}, {{"to", static_cast<int64_t>(DType::i64)}}), one});
  return make_node(c, "ReduceSum", {make_node(c, "Cast", {ones}, i32), c.constant_ints({1})}, {{"keepdims", int64_t{0}}});
}

Status upgrade(UpgradeContext& c) {
  ValueId ids = input_of(c, kIds), segments = input_of(c, kSegments), mask = input_of(c, kMask), positions = input_of(c, kPositions);
  const double epsilon = ir::attr_float(c.node(), "epsilon", static_cast<double>(1e-12f));
  ValueId sum = make_node(c, "Add", {rows(c, input_of(c, kWord), ids), rows(c, input_of(c, kPosition), positions ? positions : counted(c, ids))});
  if (segments && input_of(c, kSegment)) sum = make_node(c, "Add", {sum, rows(c, input_of(c, kSegment), segments)});
  auto& out = c.node().outputs;
  if (out.size() > 1 && out[1]) hand_over(c, 1, lengths(c, ids, mask));
  sum = hand_over(c, 2, sum);
  c.node().outputs.resize(1);
  std::vector<ValueId> in{sum, input_of(c, kScale)};
  if (ValueId shift = input_of(c, kShift)) in.push_back(shift);
  become(c, "LayerNormalization", std::move(in), {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  return ok();
}

const Register r([] {
  OpDef d = rewritten("com.microsoft.EmbedLayerNormalization", 7, 9, upgrade);
  d.max_outputs = 3;
  d.attrs = {{"epsilon", "Added to the variance."}, {"mask_index_type", "Not used."}};
  return d;
}());

}  // namespace
}  // namespace ge::ops
