// com.microsoft.Attention and QAttention: queries, keys and values by one product with packed weights, then ONNX's
// Attention.
#include "base/text.h"
#include "ops/microsoft_mask.h"

namespace ge::ops {
namespace {

// Where the inputs are that both have.
struct Inputs {
  int x, weights, bias, mask, past, added;
};
constexpr Inputs kFloat = {0, 1, 2, 3, 4, 5}, kInteger = {0, 1, 2, 5, 8, -1};
enum Integer { kScale = 3, kWeightScale = 4, kZero = 6, kWeightZero = 7 };

const Inputs& inputs_of(const ir::Node& n) { return n.op == "com.microsoft.QAttention" ? kInteger : kFloat; }

struct Sizes {
  int64_t q = 0, k = 0, v = 0;
};

// Columns of the weights for queries, keys and values; zeros if they are not known.
Result<Sizes> sizes(const InferContext& c) {
  const Inputs& at = inputs_of(c.node);
  auto given = ir::attr_ints(c.node, "qkv_hidden_sizes");
  if (!given.empty()) {
    if (given.size() != 3 || given[0] != given[1]) return c.fail("qkv_hidden_sizes are not three sizes, two of them equal");
    return Sizes{given[0], given[1], given[2]};
  }
  if (!c.ranked(at.weights) || c.rank(at.weights) != 2 || !c.dims(at.weights)[1].known()) return Sizes{};
  int64_t n = c.dims(at.weights)[1].value() / 3;
  return Sizes{n, n, n};
}

Status infer(InferContext& c) {
  const Inputs& at = inputs_of(c.node);
  const int64_t heads = ir::attr_int(c.node, "num_heads", 0);
  if (heads < 1) return c.fail("num_heads is missing");
  if (ir::attr_int(c.node, "do_rotary", 0)) return c.fail("do_rotary is not supported");
  if (ir::attr_int(c.node, "past_present_share_buffer", 0)) return c.fail("past_present_share_buffer is not supported");
  if (c.ranked(at.x) && c.rank(at.x) != 3) return c.fail(format("its input has {} axes, not 3", c.rank(at.x)));
  if (at.added >= 0)
    for (int i = at.added + 1; i < c.inputs(); ++i)
      if (c.has(i)) return c.fail(format("input {} is not supported", i));
  GE_TRY(Sizes s, sizes(c));
  if (s.q % heads || s.v % heads) return c.fail(format("{} and {} features do not divide into {} heads", s.q, s.v, heads));
  const DType dtype = c.dtype(c.has(at.bias) ? at.bias : at.added < 0 ? int{kScale} : at.x);
  c.set_unranked(1, dtype);
  if (!c.ranked(at.x) || !s.q) c.set_unranked(0, dtype);
  else c.set(0, dtype, {c.dims(at.x)[0], c.dims(at.x)[1], Dim(s.v)});
  return ok();
}

// x times the weights, [B, S, features].
ValueId product(UpgradeContext& c) {
  if (&inputs_of(c.node()) == &kFloat) return make_node(c, "MatMul", {input_of(c, kFloat.x), input_of(c, kFloat.weights)});
  std::vector<ValueId> in{input_of(c, kInteger.x), input_of(c, kInteger.weights), input_of(c, kZero), input_of(c, kWeightZero)};
  while (!in.back()) in.pop_back();
  ValueId sums = make_node(c, "MatMulInteger", std::move(in));
  ValueId scale = make_node(c, "Mul", {input_of(c, kScale), input_of(c, kWeightScale)});
  return make_node(c, "Mul", {make_node(c, "CastLike", {sums, scale}), scale});
}

Result<bool> expand(UpgradeContext& c) {
  const ir::Node n = c.node();
  const Inputs& at = inputs_of(n);
  ValueId x = input_of(c, static_cast<size_t>(at.x)), mask = input_of(c, static_cast<size_t>(at.mask)), past = input_of(c, static_cast<size_t>(at.past));
  if (!c.graph.value(x).type.ranked || (mask && !c.graph.value(mask).type.ranked)) return false;
  InferContext types(c.graph, n);
  GE_TRY(Sizes s, sizes(types));
  if (!s.q) return false;
  ValueId all = product(c);
  if (ValueId bias = input_of(c, static_cast<size_t>(at.bias))) all = make_node(c, "Add", {all, bias});
  std::vector<ValueId> in{cut(c, all, 0, s.q, 2), cut(c, all, s.q, s.q + s.k, 2), cut(c, all, s.q + s.k, s.q + s.k + s.v, 2)};
  MaskInputs m{mask, at.added < 0 ? ValueId{} : input_of(c, static_cast<size_t>(at.added)), size_of(c, x, 0), size_of(c, x, 1),
               ir::attr_float(n, "mask_filter_value", -10000)};
  if (past) m.total = make_node(c, "Add", {m.total, size_of(c, past, 3)});
  GE_TRY(ValueId bias, added_to_scores(c, m));
  in.push_back(bias);
  auto half = [&](int64_t i) { return make_node(c, "Squeeze", {cut(c, past, i, i + 1, 0), c.constant_ints({0})}); };
  if (past) in.push_back(half(0)), in.push_back(half(1));
  while (!in.back()) in.pop_back();
  const int64_t heads = ir::attr_int(n, "num_heads", 0);
  ir::Attrs attrs = {{"q_num_heads", heads}, {"kv_num_heads", heads}, {"is_causal", ir::attr_int(n, "unidirectional", 0)}};
  if (double scale = ir::attr_float(n, "scale", 0); scale != 0) attrs["scale"] = scale;
  const auto made = c.graph.node(c.graph.insert("Attention", std::move(in), {Type{}, Type{}, Type{}}, std::move(attrs), c.id)).outputs;
  c.graph.replace_uses(n.outputs[0], made[0]);
  if (n.outputs.size() > 1 && n.outputs[1]) {
    auto stacked = [&](ValueId v) { return make_node(c, "Unsqueeze", {v, c.constant_ints({0})}); };
    ValueId present = make_node(c, "Concat", {stacked(made[1]), stacked(made[2])}, {{"axis", int64_t{0}}});
    c.graph.replace_uses(n.outputs[1], present);
  }
  c.graph.erase(c.id);
  return true;
}

OpDef packed(const char* name, int min_inputs, int max_inputs, Types types) {
  return {.name = name,
          .min_inputs = min_inputs,
          .max_inputs = max_inputs,
          .max_outputs = 2,
          .attrs = {{"num_heads", "heads"},
                    {"mask_filter_value", "added where the mask is 0"},
                    {"scale", "factor of the scores; 0: 1 / sqrt(head size)"},
                    {"qkv_hidden_sizes", "columns of the weights for queries, keys and values; thirds if not given"},
                    {"unidirectional", "1: later keys are hidden"}},
          .unit = kernels::Unit::cube,
          .doc = "written as a product and Attention",
          .types = types,
          .infer = infer,
          .expand = expand};
}
const Register r1(packed("com.microsoft.Attention", 2, 7, types::floats));
const Register r2(packed("com.microsoft.QAttention", 5, 9, {DType::u8, DType::i8}));

}  // namespace
}  // namespace ge::ops
