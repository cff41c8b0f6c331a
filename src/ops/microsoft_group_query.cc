// com.microsoft.GroupQueryAttention, written as RotaryEmbedding and Attention over a cache. The past of each batch
// entry may be shorter than its buffer: new keys and values go right behind it (ge.Append).
#include <limits>

#include "base/text.h"
#include "ops/rewrite.h"

namespace ge::ops {
namespace {

enum Input { kQ, kK, kV, kPastKey, kPastValue, kLast, kTotal, kCos, kSin, kPositions, kAdded };

Status infer(InferContext& c) {
  int64_t heads = ir::attr_int(c.node, "num_heads", 0), groups = ir::attr_int(c.node, "kv_num_heads", 0);
  if (heads < 1 || groups < 1 || heads % groups) return c.fail(format("{} heads of queries cannot share {} of keys", heads, groups));
  if (c.has(kK) != c.has(kV)) return c.fail("keys and values come together or not at all");
  if (c.has(kPastKey) != c.has(kPastValue)) return c.fail("past_key and past_value come together or not at all");
  if (!c.has(kLast) || !c.has(kTotal)) return c.fail("seqlens_k and total_sequence_length are missing");
  for (int i = kAdded + 1; i < c.inputs(); ++i)
    if (c.has(i)) return c.fail(format("input {} is not supported", i));
  if (ir::attr_int(c.node, "do_rotary", 0) && (!c.has(kCos) || !c.has(kSin))) return c.fail("cos_cache and sin_cache are missing");
  for (auto* a : {"smooth_softmax", "qk_output"})
    if (ir::attr_int(c.node, a, 0) > 0) return c.fail(format("{} is not supported", a));
  if (c.wants(3)) return c.fail("the scores as an output are not supported");
  // Presents: their length is known once it is Attention.
  for (int i : {1, 2}) {
    if (c.ranked(kQ) && c.rank(kQ) == 3) c.set(i, c.dtype(kQ), {c.dims(kQ)[0], groups, c.fresh(i == 1 ? "keys" : "values"), floordiv(c.dims(kQ)[2], Dim(c.has(kK) ? heads : heads + 2 * groups))});
    else c.set_unranked(i, c.dtype(kQ));
  }
  if (!c.ranked(kQ)) {
    c.set_unranked(0, c.dtype(kQ));
    return ok();
  }
  if (c.rank(kQ) != 3) return c.fail("its queries have not 3 axes");
  auto dims = c.dims(kQ);
  if (!c.has(kK)) dims[2] = floordiv(dims[2], Dim(heads + 2 * groups)) * Dim(heads);
  c.set(0, c.dtype(kQ), std::move(dims));
  return ok();
}

class Expansion {
 public:
  explicit Expansion(UpgradeContext& c)
      : c_(c), heads_(ir::attr_int(c.node(), "num_heads", 0)), groups_(ir::attr_int(c.node(), "kv_num_heads", 0)) {}

  bool run() {
    const Type type = c_.graph.value(input_of(c_, kQ)).type;
    if (!type.ranked || !type.dims[2].known()) return false;
    bool packed = !input_of(c_, kK);
    depth_ = type.dims[2].value() / (packed ? heads_ + 2 * groups_ : heads_);
    ValueId q = packed ? slice(input_of(c_, kQ), 0, heads_) : input_of(c_, kQ);
    ValueId k = packed ? slice(input_of(c_, kQ), heads_, heads_ + groups_) : input_of(c_, kK);
    ValueId v = packed ? slice(input_of(c_, kQ), heads_ + groups_, heads_ + 2 * groups_) : input_of(c_, kV);
    find_past(q);
    if (ir::attr_int(c_.node(), "do_rotary", 0)) {
      ValueId positions = input_of(c_, kPositions);
      if (!positions) positions = make("Add", {make("Unsqueeze", {past_, ints({1})}), range(queries_)});
      q = turned(q, positions, heads_), k = turned(k, positions, groups_);
    }
    ValueId buffer = input_of(c_, kPastKey) ? size(input_of(c_, kPastKey), 2) : number(0);
    ValueId total = make("Max", {buffer, total_});
    k = make("ge.Append", {input_of(c_, kPastKey), by_heads(k, groups_), past_, total});
    v = make("ge.Append", {input_of(c_, kPastValue), by_heads(v, groups_), past_, total});
    finish(by_heads(q, heads_), k, v, mask(range(size(k, 2))));
    return true;
  }

 private:
  ValueId make(const char* op, std::vector<ValueId> in, ir::Attrs attrs = {}) { return make_node(c_, op, std::move(in), std::move(attrs)); }
  ValueId ints(const std::vector<int64_t>& v) { return c_.constant_ints(v); }
  ValueId number(int64_t v) { return ops::number(c_, v); }
  ValueId as_i64(ValueId v) { return make("Cast", {v}, {{"to", static_cast<int64_t>(DType::i64)}}); }
  ValueId size(ValueId v, int64_t axis) { return size_of(c_, v, axis); }
  ValueId range(ValueId n) { return make("Range", {number(0), n, number(1)}); }
  ValueId swapped(ValueId v) { return make("Transpose", {v}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}); }
  ValueId slice(ValueId v, int64_t from, int64_t to) { return make("Slice", {v, ints({from * depth_}), ints({to * depth_}), ints({2})}); }
  ValueId split(ValueId v, int64_t heads) { return make("Reshape", {v, ints({0, 0, heads, depth_})}); }
  ValueId by_heads(ValueId v, int64_t heads) { return swapped(split(v, heads)); }

  // past_ [B]: how many keys of each batch entry come before the new ones. A call in which all keys are new is a
  // prompt: its entries start at 0, however many of them count.
  void find_past(ValueId q) {
    queries_ = size(q, 1);
    total_ = make("Squeeze", {as_i64(input_of(c_, kTotal))});
    ValueId last = make("Reshape", {as_i64(input_of(c_, kLast)), ints({-1})});
    ValueId before = make("Sub", {make("Add", {last, number(1)}), queries_});
    past_ = make("Where", {make("Equal", {total_, queries_}), number(0), before});
  }

  ValueId turned(ValueId x, ValueId positions, int64_t heads) {
    auto& table = c_.graph.value(input_of(c_, kCos)).type;
    ir::Attrs attrs = {{"num_heads", heads}, {"interleaved", ir::attr_int(c_.node(), "rotary_interleaved", 0)}};
    if (table.ranked && table.dims.back().known()) attrs["rotary_embedding_dim"] = 2 * table.dims.back().value();
    return make("RotaryEmbedding", {x, input_of(c_, kCos), input_of(c_, kSin), positions}, std::move(attrs));
  }

  ValueId mask(ValueId key) {
    ValueId at = make("Add", {make("Reshape", {past_, ints({-1, 1, 1, 1})}), make("Unsqueeze", {range(queries_), ints({1})})});
    ValueId seen = make("LessOrEqual", {key, at});
    if (int64_t window = ir::attr_int(c_.node(), "local_window_size", -1); window > 0)
      seen = make("And", {seen, make("Greater", {key, make("Sub", {at, number(window)})})});
    ValueId bias = input_of(c_, kAdded);
    if (!bias) return seen;
    return make("Where", {seen, bias, make("CastLike", {c_.constant_float(-std::numeric_limits<float>::infinity()), bias})});
  }

  void finish(ValueId q, ValueId k, ValueId v, ValueId mask) {
    const Node n = c_.node();
    ir::Attrs attrs;
    if (double scale = ir::attr_float(n, "scale", 0); scale != 0) attrs["scale"] = scale;
    if (double cap = ir::attr_float(n, "softcap", 0); cap != 0) attrs["softcap"] = cap;
    ValueId y = make("Attention", {q, k, v, mask}, std::move(attrs));
    y = make("Reshape", {swapped(y), ints({0, 0, heads_ * depth_})});
    const ValueId made[] = {y, k, v};
    for (size_t i = 0; i < std::min<size_t>(n.outputs.size(), 3); ++i)
      if (n.outputs[i]) c_.graph.replace_uses(n.outputs[i], made[i]);
    c_.graph.erase(c_.id);
  }

  UpgradeContext& c_;
  int64_t heads_, groups_, depth_ = 0;
  ValueId queries_, total_, past_;
};

Result<bool> expand(UpgradeContext& c) { return Expansion(c).run(); }

const Register r(OpDef{.name = "com.microsoft.GroupQueryAttention",
                       .min_inputs = 7,
                       .max_inputs = -1,
                       .optional = 0b11110,
                       .max_outputs = 4,
                       .attrs = {{"num_heads", "heads of queries"},
                                 {"kv_num_heads", "heads of keys and values"},
                                 {"scale", "factor of the scores; 0: 1 / sqrt(head size)"},
                                 {"softcap", "c > 0: scores become c * tanh(score / c)"},
                                 {"do_rotary", "1: queries and keys are turned by cos_cache and sin_cache"},
                                 {"rotary_interleaved", "1: neighbours are pairs"},
                                 {"local_window_size", "how many keys a query sees at most"}},
                       .unit = kernels::Unit::cube,
                       .doc = "written as Attention over a cache",
                       .types = types::floats,
                       .infer = infer,
                       .expand = expand});

}  // namespace
}  // namespace ge::ops
