// Attention: softmax(scale * Q K' + masks) V with heads, caches and windows. Written as ge.Attention between
// Reshapes and Transposes where that says the same: no scores as output, f32 or 16-bit floats, nothing asked
// to be in double.
#include <cmath>
#include <limits>

#include "base/text.h"
#include "ops/fused_tail.h"
#include "ops/outputs.h"
#include "ops/rewrite.h"

namespace ge::ops {
namespace {

enum Input { kQ, kK, kV, kMask, kPastKey, kPastValue, kLengths };

struct Sizes {
  bool flat = false;   // Q, K, V are [B, S, heads * D], not [B, heads, S, D]
  Dim batch, heads, groups, queries, depth, width, past, fresh, keys;
};

ValueId input_at(const Node& n, size_t i) { return i < n.inputs.size() ? n.inputs[i] : ValueId{}; }

// Of a node whose Q, K and V are ranked.
Sizes sizes_of(const Graph& g, const Node& n) {
  auto dims = [&](size_t i) -> const std::vector<Dim>& { return g.value(n.inputs[i]).type.dims; };
  Sizes s;
  s.flat = dims(kQ).size() == 3;
  s.batch = dims(kQ)[0];
  if (s.flat) {
    s.heads = ir::attr_int(n, "q_num_heads", 0), s.groups = ir::attr_int(n, "kv_num_heads", 0);
    s.queries = dims(kQ)[1], s.fresh = dims(kK)[1];
    s.depth = floordiv(dims(kQ)[2], s.heads), s.width = floordiv(dims(kV)[2], s.groups);
  } else {
    s.heads = dims(kQ)[1], s.groups = dims(kK)[1];
    s.queries = dims(kQ)[2], s.fresh = dims(kK)[2];
    s.depth = dims(kQ)[3], s.width = dims(kV)[3];
  }
  if (ValueId past = input_at(n, kPastKey)) s.past = g.value(past).type.dims[2];
  s.keys = s.past + s.fresh;
  return s;
}

Status check_attributes(const InferContext& c) {
  int64_t mode = ir::attr_int(c.node, "qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) return c.fail(format("qk_matmul_output_mode is {}, not 0 to 3", mode));
  for (auto* a : {"left_window_size", "right_window_size"})
    if (ir::attr_int(c.node, a, -1) < -1) return c.fail(format("attribute {} is {}; it must be -1 (no limit) or more", a, ir::attr_int(c.node, a, -1)));
  if (!(ir::attr_float(c.node, "softcap", 0) >= 0)) return c.fail("attribute softcap is negative; it must be 0 (none) or more");
  if (c.has(kPastKey) != c.has(kPastValue)) return c.fail("past_key and past_value come together or not at all");
  if (c.has(kPastKey) && c.has(kLengths)) return c.fail("nonpad_kv_seqlen does not go with past_key");
  if (c.has(kLengths) && c.dtype(kLengths) != DType::i64) return c.fail(format("nonpad_kv_seqlen is {}; it must be i64", name(c.dtype(kLengths))));
  if (c.has(kMask) && c.dtype(kMask) != DType::boolean && !is_float(c.dtype(kMask)) && !is_integer(c.dtype(kMask))) return c.fail(format("attn_mask is {}; it must be bool or numbers", name(c.dtype(kMask))));
  return ok();
}

Status check_shapes(const InferContext& c) {
  int rank = c.rank(kQ);
  if ((rank != 3 && rank != 4) || c.rank(kK) != rank || c.rank(kV) != rank)
    return c.fail(format("Q, K and V have {}, {} and {} axes; all 3 or all 4 are expected", rank, c.rank(kK), c.rank(kV)));
  if (rank == 3 && (ir::attr_int(c.node, "q_num_heads", 0) < 1 || ir::attr_int(c.node, "kv_num_heads", 0) < 1))
    return c.fail("Q, K and V of 3 axes need q_num_heads and kv_num_heads");
  Sizes s = sizes_of(c.graph, c.node);
  auto divides = [](const Dim& whole, const Dim& part) { return !whole.known() || !part.known() || (part.value() ? whole.value() % part.value() == 0 : whole.is(0)); };
  if (!divides(s.heads, s.groups)) return c.fail(format("{} heads of queries cannot share {} of keys: the one must be a multiple of the other", s.heads.text(), s.groups.text()));
  if (rank == 3 && (!divides(c.dims(kQ)[2], s.heads) || !divides(c.dims(kK)[2], s.groups) || !divides(c.dims(kV)[2], s.groups)))
    return c.fail(format("Q {}, K {} and V {} do not divide into {} and {} heads", text(c.dims(kQ)), text(c.dims(kK)), text(c.dims(kV)), s.heads.text(), s.groups.text()));
  if (c.has(kMask) && c.ranked(kMask) && (c.rank(kMask) < 1 || c.rank(kMask) > 4)) return c.fail("attn_mask has not 1 to 4 axes");
  if (c.has(kLengths) && c.ranked(kLengths) && c.rank(kLengths) != 1) return c.fail("nonpad_kv_seqlen has not one axis");
  return ok();
}

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(check_attributes(c));
  bool known = c.ranked(kQ) && c.ranked(kK) && c.ranked(kV);
  for (int past : {kPastKey, kPastValue}) {
    if (!c.has(past)) continue;
    known &= c.ranked(past);
    if (c.ranked(past) && c.rank(past) != 4) return c.fail("past_key and past_value have 4 axes");
  }
  if (!known) {
    for (int i = 0; i < 4; ++i) c.set_unranked(i, c.dtype(i == 2 ? kV : kQ));
    return ok();
  }
  GE_RETURN_IF_ERROR(check_shapes(c));
  Sizes s = sizes_of(c.graph, c.node);
  if (s.flat) c.set(0, c.dtype(kQ), {s.batch, s.queries, s.heads * s.width});
  else c.set(0, c.dtype(kQ), {s.batch, s.heads, s.queries, s.width});
  c.set(1, c.dtype(kK), {s.batch, s.groups, s.keys, s.depth});
  c.set(2, c.dtype(kV), {s.batch, s.groups, s.keys, s.width});
  c.set(3, c.dtype(kQ), {s.batch, s.heads, s.queries, s.keys});
  return ok();
}

// --- the meaning ---

// [B, S, heads * D] seen as [B, heads, S, D].
Strided by_heads(const Strided& v, const Dim& heads, const Dim& depth) {
  if (v.dims.size() == 4) return v;
  return {v.offset, {v.dims[0], heads, v.dims[1], depth}, {v.strides[0], v.strides[2] * depth, v.strides[1], v.strides[2]}};
}

// Keys or values with the past before them; also written to output `present`.
Arg with_past(LowerContext& c, int fresh, int past, int present, const Dim& depth, const Sizes& s) {
  DType t = c.type(fresh).dtype;
  Arg now = c.in_as(fresh, by_heads(c.view(fresh), s.groups, depth));
  if (!c.has(past)) {
    if (c.wants(present)) emit_copy(c, now, t, c.out_as(present, c.out_view(present)), t);
    return now;
  }
  Arg all = c.temp(t, {s.batch, s.groups, s.keys, depth});
  Strided before = Strided::dense({s.batch, s.groups, s.keys, depth}), after = before;
  before.dims[2] = s.past, after.dims[2] = s.fresh;
  after.offset = s.past * depth;
  Arg first = all, second = all;
  first.view = before, second.view = after;
  emit_copy(c, c.in_as(past, c.view(past)), c.type(past).dtype, first, t);
  emit_copy(c, now, t, second, t);
  all.view = Strided::dense({s.batch, s.groups, s.keys, depth});
  if (c.wants(present)) emit_copy(c, all, t, c.out_as(present, c.out_view(present)), t);
  return all;
}

Status reference(LowerContext& c) {
  Sizes s = sizes_of(c.graph, c.node);
  Arg k = with_past(c, kK, kPastKey, 1, s.depth, s), v = with_past(c, kV, kPastValue, 2, s.width, s);
  Arg mask, lengths, scores;
  if (c.has(kMask)) {
    Strided m = c.view(kMask);
    while (m.dims.size() < 4) m = with_axis(std::move(m), 0);
    mask = c.in_as(kMask, m);
  }
  if (c.has(kLengths)) lengths = c.in(kLengths);
  if (c.wants(3)) scores = c.out(3);
  auto number = [&](const char* a, int64_t otherwise) { return ir::attr_int(c.node, a, otherwise); };
  c.call("ref.Attention", {c.in_as(kQ, by_heads(c.view(kQ), s.heads, s.depth)), k, v, mask, lengths},
         {c.out_as(0, by_heads(c.out_view(), s.heads, s.width)), scores},
         {number("is_causal", 0), s.past, number("left_window_size", -1), number("right_window_size", -1), number("qk_matmul_output_mode", 0)},
         {ir::attr_float(c.node, "scale", std::numeric_limits<double>::quiet_NaN()), ir::attr_float(c.node, "softcap", 0)});
  return ok();
}

// --- as ge.Attention ---

class Expansion {
 public:
  Expansion(UpgradeContext& c, const Sizes& s) : c_(c), s_(s) {}

  void run() {
    const Node n = c_.node();
    ValueId q = by_heads(n.inputs[kQ], s_.heads, s_.depth);
    ValueId k = with_past(n.inputs[kK], input_at(n, kPastKey), s_.depth, 1);
    ValueId v = with_past(n.inputs[kV], input_at(n, kPastValue), s_.width, 2);
    DType t = type(n.inputs[kQ]).dtype;
    ir::Attrs attrs = {{"rows", int64_t{0}}, {"scale", scale(n)}};
    if (double cap = ir::attr_float(n, "softcap", 0); cap > 0) attrs["softcap"] = cap;
    bool per_batch = bool(input_at(n, kLengths));
    if (ir::attr_int(n, "is_causal", 0) && !per_batch) {
      attrs["causal"] = int64_t{1};
      if (!s_.past.is(0)) attrs["offset"] = s_.past.text();
    }
    std::vector<ValueId> in{as_f32(q, t), make("Transpose", {as_f32(k, type(n.inputs[kK]).dtype)}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}}),
                            as_f32(v, type(n.inputs[kV]).dtype)};
    if (ValueId m = mask(n)) in.push_back(m);
    ValueId y = make("ge.Attention", in, std::move(attrs));
    if (t != DType::f32) y = cast(y, t);
    if (s_.flat) {
      y = make("Transpose", {y}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
      y = reshape(y, {s_.batch, s_.queries}, {s_.heads * s_.width});
    }
    c_.graph.replace_uses(n.outputs[0], y);
  }

 private:
  ValueId make(const char* op, std::vector<ValueId> in, ir::Attrs attrs = {}) { return make_node(c_, op, std::move(in), std::move(attrs)); }
  const Type& type(ValueId v) const { return c_.graph.value(v).type; }
  ValueId cast(ValueId v, DType to) { return make("Cast", {v}, {{"to", static_cast<int64_t>(to)}}); }
  ValueId as_f32(ValueId v, DType from) { return from == DType::f32 ? v : cast(v, DType::f32); }

  ValueId sizes(const std::vector<Dim>& dims) {
    std::vector<int64_t> known;
    std::vector<std::string> texts;
    for (auto& d : dims) {
      texts.push_back(d.text());
      if (d.known()) known.push_back(d.value());
    }
    return known.size() == dims.size() ? c_.constant_ints(known) : make("ge.Sizes", {}, {{"sizes", texts}});
  }
  // To [kept..., last...], where v has the kept sizes first.
  ValueId reshape(ValueId v, std::vector<Dim> kept, const std::vector<Dim>& last) {
    bool numbers = true;   // and no zeros: a zero in the target stands for the size at its place
    for (auto& d : last) numbers &= d.known() && d.value() > 0;
    if (numbers) kept.assign(kept.size(), Dim(0));
    kept.insert(kept.end(), last.begin(), last.end());
    return make("Reshape", {v, sizes(kept)}, numbers ? ir::Attrs{} : ir::Attrs{{"allowzero", int64_t{1}}});
  }
  ValueId number(const Dim& d) {
    if (d.known()) return c_.graph.add_constant(Tensor::scalar_i64(d.value()), "number");
    return make("Squeeze", {sizes({d})});
  }
  // 0, 1, ... before n, as [n], or [n, 1] when upright.
  ValueId range(const Dim& n, bool upright) {
    ValueId r = make("Range", {number(0), number(n), number(1)});
    return upright ? make("Unsqueeze", {r, c_.constant_ints({1})}) : r;
  }

  ValueId by_heads(ValueId v, const Dim& heads, const Dim& depth) {
    if (!s_.flat) return v;
    Type t = type(v);
    v = reshape(v, {t.dims[0], t.dims[1]}, {heads, depth});
    return make("Transpose", {v}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  }

  ValueId with_past(ValueId fresh, ValueId past, const Dim& depth, size_t present) {
    ValueId all = by_heads(fresh, s_.groups, depth);
    if (past) all = make("Concat", {past, all}, {{"axis", int64_t{2}}});
    auto& out = c_.node().outputs;
    if (present < out.size() && out[present]) c_.graph.replace_uses(out[present], all);
    return all;
  }

  double scale(const Node& n) const { return ir::attr_float(n, "scale", 1 / std::sqrt(static_cast<double>(s_.depth.known() ? s_.depth.value() : 1))); }

  // attn_mask for all keys: what it does not reach is hidden.
  ValueId given_mask(const Node& n, bool& additive) {
    ValueId m = input_at(n, kMask);
    if (!m) return m;
    Type t = type(m);
    additive = t.dtype != DType::boolean;
    if (additive) m = as_f32(m, t.dtype);
    if (t.dims.back() == s_.keys) return m;
    std::vector<Dim> pads(2 * t.dims.size(), Dim(0));
    pads.back() = max(s_.keys - t.dims.back(), Dim(0));
    Tensor hidden(additive ? DType::f32 : DType::boolean, {});
    if (additive) hidden.as<float>()[0] = -std::numeric_limits<float>::infinity();
    else hidden.as<uint8_t>()[0] = 0;
    return make("Pad", {m, sizes(pads), c_.graph.add_constant(std::move(hidden), "hidden")});
  }

  // What lengths and windows leave to be seen, bool; none if they hide nothing.
  ValueId seen(const Node& n) {
    ValueId lengths = input_at(n, kLengths), all;
    int64_t left = ir::attr_int(n, "left_window_size", -1), right = ir::attr_int(n, "right_window_size", -1);
    if (!lengths && left < 0 && right < 0) return {};
    ValueId key = range(s_.keys, false), position = range(s_.queries, true), offset = number(s_.past);
    auto also = [&](ValueId v) { all = all ? make("And", {all, v}) : v; };
    if (lengths) {
      lengths = make("Reshape", {lengths, c_.constant_ints({-1, 1, 1, 1})});
      offset = make("Sub", {lengths, number(s_.queries)});
      also(make("Less", {key, lengths}));
    }
    position = make("Add", {position, offset});
    if (lengths && ir::attr_int(n, "is_causal", 0)) also(make("LessOrEqual", {key, position}));
    if (left >= 0) also(make("GreaterOrEqual", {key, make("Sub", {position, number(left)})}));
    if (right >= 0) also(make("LessOrEqual", {key, make("Add", {position, number(right)})}));
    return all;
  }

  ValueId mask(const Node& n) {
    bool additive = false;
    ValueId given = given_mask(n, additive), visible = seen(n);
    if (!given || !visible) return given ? given : visible;
    if (!additive) return make("And", {given, visible});
    return make("Where", {visible, given, c_.constant_float(-std::numeric_limits<float>::infinity())});
  }

  UpgradeContext& c_;
  const Sizes& s_;
};

Result<bool> expand(UpgradeContext& c) {
  const Node& n = c.node();
  if (!n.outputs[0]) {   // what another operator became
    GE_RETURN_IF_ERROR(with_first_output(c));
    return true;
  }
  auto type = [&](size_t i) { return c.graph.value(n.inputs[i]).type; };
  // Integers are added like floats.
  if (n.inputs.size() > kMask && n.inputs[kMask] && is_integer(type(kMask).dtype)) {
    ValueId mask = make_node(c, "Cast", {n.inputs[kMask]}, {{"to", static_cast<int64_t>(type(0).dtype)}});
    c.graph.set_input(c.id, kMask, mask);
    return true;
  }
  bool fits = !(n.outputs.size() > 3 && n.outputs[3]) && ir::attr_int(n, "softmax_precision", 1) != 11 /* double */;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (!n.inputs[i]) continue;
    fits &= type(i).ranked;
    if (i != kMask && i != kLengths) fits &= cube_float(type(i).dtype);
    if (i == kMask) fits &= cube_float(type(i).dtype) || type(i).dtype == DType::boolean;
  }
  if (!fits) return false;
  Sizes s = sizes_of(c.graph, n);
  if (!ir::has_attr(n, "scale") && (!s.depth.known() || s.depth.value() < 1)) return false;
  Expansion(c, s).run();
  c.graph.erase(c.id);
  return true;
}

const Register r(OpDef{.name = "Attention",
                       .min_inputs = 3,
                       .max_inputs = 7,
                       .max_outputs = 4,
                       .since = 23,
                       .attrs = {{"q_num_heads", "heads of queries, for 3 axes"},
                                 {"kv_num_heads", "heads of keys and values, for 3 axes"},
                                 {"scale", "factor of the scores; absent: 1 / sqrt(head size)"},
                                 {"softcap", "c > 0: scores become c * tanh(score / c) before the masks"},
                                 {"is_causal", "1: later keys are hidden"},
                                 {"left_window_size", "hides keys further back, from 0"},
                                 {"right_window_size", "hides keys further ahead, from 0"},
                                 {"qk_matmul_output_mode", "output 3: 0 product, 1 capped, 2 masked, 3 softmax"},
                                 {"softmax_precision", "type of the softmax at least"}},
                       .unit = kernels::Unit::cube,
                       .doc = "attention with heads, caches, masks and windows",
                       .types = types::floats,
                       .infer = infer,
                       .upgrade = with_first_output,
                       .expand = expand,
                       .reference = reference});

}  // namespace
}  // namespace ge::ops
