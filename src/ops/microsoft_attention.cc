// com.microsoft.MultiHeadAttention, RotaryEmbedding and MRotaryEmbedding, written as ONNX's Attention and RotaryEmbedding once types
// are known.
#include <algorithm>

#include "base/text.h"
#include "ops/microsoft_mask.h"

namespace ge::ops {
namespace {

// --- MultiHeadAttention ---

enum Input { kQ, kK, kV, kBias, kPadding, kAdded, kPastKey, kPastValue, kPastLength, kBeams };

Status check_multi_head(const InferContext& c) {
  if (!c.has(kK) || !c.has(kV)) return c.fail("packed keys and values are not supported");
  for (int i : {kQ, kK, kV})
    if (c.ranked(i) && c.rank(i) != 3 && (i == kQ || c.rank(i) != 4)) return c.fail(format("input {} has {} axes, which is not supported", i, c.rank(i)));
  if (c.ranked(kK) && c.ranked(kV) && c.rank(kK) != c.rank(kV)) return c.fail("keys and values differ in rank");
  if (c.ranked(kK) && c.rank(kK) == 4 && c.has(kPastKey)) return c.fail("a past of keys that have their heads apart is not supported");
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
  else c.set(0, c.dtype(kQ), {c.dims(kQ)[0], c.dims(kQ)[1], c.rank(kV) == 4 ? c.dims(kV)[1] * c.dims(kV)[3] : c.dims(kV)[2]});
  return ok();
}

Result<bool> expand_multi_head(UpgradeContext& c) {
  for (int i : {kQ, kK, kV, kPadding})
    if (ValueId v = input_of(c, static_cast<size_t>(i)); v && !c.graph.value(v).type.ranked) return false;
  std::vector<ValueId> in{input_of(c, kQ), input_of(c, kK), input_of(c, kV)};
  // Keys and values that another node keeps, [B, heads, T, size]: the bias is in them.
  const bool kept = c.graph.value(in[kK]).type.rank() == 4;
  const Dim q = c.graph.value(in[kQ]).type.dims[2], k = c.graph.value(in[kK]).type.dims[2];
  ValueId bias = input_of(c, kBias);
  if (bias && (!q.known() || (!kept && !k.known()))) return false;
  for (size_t i = kK; kept && i <= kV; ++i)
    in[i] = make_node(c, "Reshape", {make_node(c, "Transpose", {in[i]}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}), c.constant_ints({0, 0, -1})});
  if (bias) {
    const int64_t cut[] = {0, q.value(), kept ? 0 : q.value() + k.value(), INT64_MAX};
    for (size_t i = 0; i < (kept ? 1 : 3); ++i)
      in[i] = make_node(c, "Add", {in[i], make_node(c, "Slice", {bias, c.constant_ints({cut[i]}), c.constant_ints({cut[i + 1]}), c.constant_ints({0})})});
  }
  MaskInputs m{input_of(c, kPadding), input_of(c, kAdded), size_of(c, in[kQ], 0), size_of(c, in[kK], 1), ir::attr_float(c.node(), "mask_filter_value", -10000)};
  if (ValueId past = input_of(c, kPastKey)) m.total = make_node(c, "Add", {m.total, size_of(c, past, 2)});
  GE_TRY(ValueId added, added_to_scores(c, m));
  in.push_back(added);
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

// --- MRotaryEmbedding: three positions of each token, of which each number of the tables has one ---

Status infer_three(InferContext& c) {
  auto sections = ir::attr_ints(c.node, "mrope_section");
  if (sections.size() != 3 || *std::min_element(sections.begin(), sections.end()) < 0) return c.fail("mrope_section are not three sizes");
  if (int64_t layout = ir::attr_int(c.node, "mrope_layout", 0); layout != 0 && layout != 1) return c.fail(format("mrope_layout {} is not known", layout));
  if (c.ranked(1) && c.rank(1) != 3) return c.fail(format("the positions {} have not 3 axes", text(c.dims(1))));
  for (int i : {2, 3})
    if (c.ranked(i) && c.rank(i) == 2 && c.dims(i)[1].known() && c.dims(i)[1].value() != sections[0] + sections[1] + sections[2])
      return c.fail(format("sections of {}, {} and {} for tables of {}", sections[0], sections[1], sections[2], c.dims(i)[1].value()));
  return infer_rotary(c);
}

Result<bool> expand_three(UpgradeContext& c) {
  const ir::Node n = c.node();
  const Type type = c.graph.value(n.inputs[0]).type;
  if (!type.ranked) return false;
  auto sections = ir::attr_ints(n, "mrope_section");
  const int64_t half = sections[0] + sections[1] + sections[2], turned = ir::attr_int(n, "rotary_embedding_dim", 0);
  int64_t heads = ir::attr_int(n, "num_heads", 0);
  if (type.rank() == 3 && !heads) {
    if (!type.dims[2].known() || half < 1) return false;
    heads = type.dims[2].value() / (2 * half);
  }
  // Which position each number follows.
  Tensor second(DType::boolean, {half}), third(DType::boolean, {half});
  for (int64_t i = 0; i < half; ++i) {
    const bool mixed = ir::attr_int(n, "mrope_layout", 0) != 0;
    second.as<uint8_t>()[i] = mixed ? i % 3 == 1 && i < 3 * sections[1] : i >= sections[0] && i < sections[0] + sections[1];
    third.as<uint8_t>()[i] = mixed ? i % 3 == 2 && i < 3 * sections[2] : i >= sections[0] + sections[1];
  }
  ValueId with_second = c.graph.add_constant(std::move(second), "height"), with_third = c.graph.add_constant(std::move(third), "width");
  auto chosen = [&](ValueId table) {
    auto rows = [&](int64_t k) { return make_node(c, "Gather", {table, make_node(c, "Gather", {n.inputs[1], number(c, k)}, {{"axis", int64_t{0}}})}); };
    return make_node(c, "Where", {with_third, rows(2), make_node(c, "Where", {with_second, rows(1), rows(0)})});
  };
  ir::Attrs attrs = {{"interleaved", ir::attr_int(n, "interleaved", 0)}, {"rotary_embedding_dim", turned}};
  if (type.rank() == 3) attrs["num_heads"] = heads;
  become(c, "RotaryEmbedding", {n.inputs[0], chosen(n.inputs[2]), chosen(n.inputs[3])}, std::move(attrs));
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
const Register r3(OpDef{.name = "com.microsoft.MRotaryEmbedding",
                        .min_inputs = 4,
                        .max_inputs = 4,
                        .attrs = {{"mrope_section", "how many numbers of the tables follow each of the three positions"},
                                  {"mrope_layout", "1: they take turns"},
                                  {"interleaved", "1: neighbours are pairs"},
                                  {"num_heads", "heads, for an input of 3 axes"},
                                  {"rotary_embedding_dim", "how many features are turned; 0: all"}},
                        .doc = "written as ONNX's RotaryEmbedding",
                        .types = types::floats,
                        .infer = infer_three,
                        .expand = expand_three});

}  // namespace
}  // namespace ge::ops
