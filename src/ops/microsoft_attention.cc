// com.microsoft.MultiHeadAttention and RotaryEmbedding, written as ONNX's Attention and RotaryEmbedding once types
// are known.
#include "base/text.h"
#include "ops/microsoft_mask.h"

namespace ge::ops {
namespace {

// --- MultiHeadAttention ---

enum Input { kQ, kK, kV, kBias, kPadding, kAdded, kPastKey, kPastValue, kPastLength, kBeams };

Status check_multi_head(const InferContext& c) {
  if (!c.has(kK) || !c.has(kV)) return c.fail("packed keys and values are not supported");
  for (int i : {kQ, kK, kV})
    if (c.ranked(i) && c.rank(i) != 3) return c.fail(format("input {} has {} axes; only 3 are supported", i, c.rank(i)));
  if (c.has(kPastLength) || c.has(kBeams)) return c.fail("past_sequence_length and cache_indirection are not supported");
  if (c.has(kPastKey) != c.has(kPastValue)) return c.fail("past_key and past_value come together or not at all");
  if (c.wants(3)) return c.fail("the scores as an output are not supported");
  if (ir::attr_int(c.node, "num_heads", 0) < 1) return c.fail("num_heads is missing");
  return ok();
}

Status infer_multi_head(InferContext& c) {
  GE_RETURN_IF_ERROR(check_multi_head(c));
  // Presents: known once it is Attention.
  c.set_unranked(1, c.dtype(kQ));
  c.set_unranked(2, c.dtype(kQ));
  if (!c.ranked(kQ) || !c.ranked(kV)) c.set_unranked(0, c.dtype(kQ));
  else c.set(0, c.dtype(kQ), {c.dims(kQ)[0], c.dims(kQ)[1], c.dims(kV)[2]});
  return ok();
}

Result<bool> expand_multi_head(UpgradeContext& c) {
  for (int i : {kQ, kK, kV, kPadding})
    if (ValueId v = input_of(c, static_cast<size_t>(i)); v && !c.graph.value(v).type.ranked) return false;
  std::vector<ValueId> in{input_of(c, kQ), input_of(c, kK), input_of(c, kV)};
  if (ValueId bias = input_of(c, kBias)) {
    const Dim q = c.graph.value(in[kQ]).type.dims[2], k = c.graph.value(in[kK]).type.dims[2];
    if (!q.known() || !k.known()) return false;
    const int64_t cut[] = {0, q.value(), q.value() + k.value(), INT64_MAX};
    for (size_t i = 0; i < 3; ++i)
      in[i] = make_node(c, "Add", {in[i], make_node(c, "Slice", {bias, c.constant_ints({cut[i]}), c.constant_ints({cut[i + 1]}), c.constant_ints({0})})});
  }
  MaskInputs m{input_of(c, kPadding), input_of(c, kAdded), size_of(c, in[kQ], 0), size_of(c, in[kK], 1), ir::attr_float(c.node(), "mask_filter_value", -10000)};
  if (ValueId past = input_of(c, kPastKey)) m.total = make_node(c, "Add", {m.total, size_of(c, past, 2)});
  GE_TRY(ValueId bias, added_to_scores(c, m));
  in.push_back(bias);
  if (ValueId past = input_of(c, kPastKey)) in.push_back(past), in.push_back(input_of(c, kPastValue));
  while (!in.back()) in.pop_back();
  int64_t heads = ir::attr_int(c.node(), "num_heads", 0);
  ir::Attrs attrs = {{"q_num_heads", heads}, {"kv_num_heads", heads}, {"is_causal", ir::attr_int(c.node(), "unidirectional", 0)}};
  if (double scale = ir::attr_float(c.node(), "scale", 0); scale != 0) attrs["scale"] = scale;
  become(c, "Attention", std::move(in), std::move(attrs));
  return true;
}

// --- RotaryEmbedding ---

Status infer_rotary(InferContext& c) {
  if (ir::attr_int(c.node, "is_packed_batching", 0)) return c.fail("packed batching is not supported");
  if (ir::attr_float(c.node, "scale", 1) != 1) return c.fail("a scale is not supported");
  c.out[0] = c.type(0);
  return ok();
}

// Positions [1] (of the first element) or [B, S], tables [rows, R / 2].
Result<bool> expand_rotary(UpgradeContext& c) {
  ValueId x = input_of(c, 0), positions = input_of(c, 1), cos = input_of(c, 2), sin = input_of(c, 3);
  const Type type = c.graph.value(x).type, tables = c.graph.value(cos).type, at = c.graph.value(positions).type;
  if (!type.ranked || !tables.ranked || !at.ranked) return false;
  int64_t heads = ir::attr_int(c.node(), "num_heads", 0), turned = ir::attr_int(c.node(), "rotary_embedding_dim", 0);
  bool flat = type.rank() == 3;
  if (flat && !heads) {
    if (!type.dims[2].known() || !tables.dims.back().known() || tables.dims.back().value() < 1) return false;
    heads = type.dims[2].value() / (2 * tables.dims.back().value());
  }
  if (at.rank() == 1) {
    ValueId length = size_of(c, x, flat ? 1 : 2);
    positions = make_node(c, "Add", {make_node(c, "Range", {number(c, 0), length, number(c, 1)}), positions});
    positions = make_node(c, "Unsqueeze", {positions, c.constant_ints({0})});
  }
  ir::Attrs attrs = {{"interleaved", ir::attr_int(c.node(), "interleaved", 0)}, {"rotary_embedding_dim", turned}};
  if (flat) attrs["num_heads"] = heads;
  become(c, "RotaryEmbedding", {x, cos, sin, positions}, std::move(attrs));
  return true;
}

const Register r1(OpDef{.name = "com.microsoft.MultiHeadAttention",
                        .min_inputs = 1,
                        .max_inputs = 10,
                        .max_outputs = 4,
                        .attrs = {{"num_heads", "heads"},
                                  {"mask_filter_value", "added where key_padding_mask is 0"},
                                  {"scale", "factor of the scores; 0: 1 / sqrt(head size)"},
                                  {"unidirectional", "1: later keys are hidden"}},
                        .unit = kernels::Unit::cube,
                        .doc = "written as Attention",
                        .types = types::floats,
                        .infer = infer_multi_head,
                        .expand = expand_multi_head});
const Register r2(OpDef{.name = "com.microsoft.RotaryEmbedding",
                        .min_inputs = 4,
                        .max_inputs = 4,
                        .attrs = {{"interleaved", "1: neighbours are pairs"},
                                  {"num_heads", "heads, for an input of 3 axes"},
                                  {"rotary_embedding_dim", "how many features are turned; 0: all"}},
                        .doc = "written as ONNX's RotaryEmbedding",
                        .types = types::floats,
                        .infer = infer_rotary,
                        .expand = expand_rotary});

}  // namespace
}  // namespace ge::ops
