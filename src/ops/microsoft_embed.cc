// com.microsoft.EmbedLayerNormalization and QEmbedLayerNormalization: on import the sum of word, position and segment embeddings, normalized.
#include "ops/rewrite.h"

namespace ge::ops {
namespace {

// Of the quantised one: the mask before last, then scales of the five tensors from kWord on, then their zero points.
enum Input { kIds, kSegments, kWord, kPosition, kSegment, kScale, kShift, kMask, kPositions, kScales = 8, kZeros = 13 };

bool quantised(const UpgradeContext& c) { return c.node().op == "com.microsoft.QEmbedLayerNormalization"; }
// Tensor i, or what was taken of it, as floats.
ValueId floats(UpgradeContext& c, ValueId v, size_t i) {
  if (!quantised(c)) return v;
  return make_node(c, "DequantizeLinear", {v, input_of(c, kScales + i - kWord), input_of(c, kZeros + i - kWord)});
}
ValueId rows(UpgradeContext& c, size_t table, ValueId ids) {
  return floats(c, make_node(c, "Gather", {input_of(c, table), ids}, {{"axis", int64_t{0}}}), table);
}

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
  ValueId ids = input_of(c, kIds), segments = input_of(c, kSegments), mask = input_of(c, kMask), positions = quantised(c) ? ValueId{} : input_of(c, kPositions);
  const double epsilon = ir::attr_float(c.node(), "epsilon", static_cast<double>(1e-12f));
  ValueId sum = make_node(c, "Add", {rows(c, kWord, ids), rows(c, kPosition, positions ? positions : counted(c, ids))});
  if (segments && input_of(c, kSegment)) sum = make_node(c, "Add", {sum, rows(c, kSegment, segments)});
  auto& out = c.node().outputs;
  if (out.size() > 1 && out[1]) hand_over(c, 1, lengths(c, ids, mask));
  sum = hand_over(c, 2, sum);
  c.node().outputs.resize(1);
  std::vector<ValueId> in{sum, floats(c, input_of(c, kScale), kScale)};
  if (ValueId shift = input_of(c, kShift)) in.push_back(floats(c, shift, kShift));
  become(c, "LayerNormalization", std::move(in), {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  return ok();
}

OpDef define(const char* name, int min_inputs, int max_inputs, uint32_t optional, Types types) {
  OpDef d = rewritten(name, min_inputs, max_inputs, types, upgrade);
  d.optional = optional;
  d.max_outputs = 3;
  d.data = kWord;
  d.attrs = {{"epsilon", "Added to the variance."}, {"mask_index_type", "Not used."}};
  return d;
}

const Register r1(define("com.microsoft.EmbedLayerNormalization", 7, 9, 0b10010, types::floats));
const Register r2(define("com.microsoft.QEmbedLayerNormalization", 18, 18, 0b1000010010010010, types::quantised | Types{DType::i32}));

}  // namespace
}  // namespace ge::ops
