// RotaryEmbedding: pairs of features are turned by an angle of their position. Written as ge.Rotary where the type
// is f32 or a 16-bit float.
#include "base/text.h"
#include "ops/fused_tail.h"
#include "ops/rewrite.h"

namespace ge::ops {
namespace {

// Of a node whose input is ranked: heads and size of a head.
struct Sizes {
  bool flat = false;   // [B, S, heads * D], not [B, heads, S, D]
  Dim heads, depth, turned;
};
Sizes sizes_of(const Graph& g, const Node& n) {
  auto& x = g.value(n.inputs[0]).type.dims;
  Sizes s;
  s.flat = x.size() == 3;
  s.heads = s.flat ? Dim(ir::attr_int(n, "num_heads", 0)) : x[1];
  s.depth = s.flat ? floordiv(x[2], s.heads) : x[3];
  int64_t turned = ir::attr_int(n, "rotary_embedding_dim", 0);
  s.turned = turned ? Dim(turned) : s.depth;
  return s;
}

bool has_positions(const Node& n) { return n.inputs.size() > 3 && n.inputs[3]; }

Status infer(InferContext& c) {
  if (!c.ranked(0)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  int64_t turned = ir::attr_int(c.node, "rotary_embedding_dim", 0);
  if (c.rank(0) != 3 && c.rank(0) != 4) return c.fail("its input has not 3 or 4 axes");
  if (c.rank(0) == 3 && ir::attr_int(c.node, "num_heads", 0) < 1) return c.fail("an input of 3 axes needs num_heads");
  if (turned < 0 || turned % 2) return c.fail(format("attribute rotary_embedding_dim is {}; it must be even and 0 (all) or more", turned));
  Sizes s = sizes_of(c.graph, c.node);
  if (s.flat && c.dims(0)[2].known() && c.dims(0)[2].value() % s.heads.value()) return c.fail(format("{} features do not divide into {} heads", c.dims(0)[2].text(), s.heads.text()));
  if (s.depth.known() && (turned > s.depth.value() || (!turned && s.depth.value() % 2))) return c.fail(format("{} of the {} features of a head cannot be turned: an even number of at most all is possible", s.turned.text(), s.depth.text()));
  int tables = has_positions(c.node) ? 2 : 3;
  for (int i : {1, 2}) {
    if (!c.ranked(i)) continue;
    if (c.rank(i) != tables) return c.fail(format("its tables have {} axes, {} are expected", c.rank(i), tables));
    auto& width = c.dims(i).back();
    if (width.known() && s.turned.known() && !(width * Dim(2) == s.turned)) return c.fail(format("a table is {} wide, half of {} is expected", width.text(), s.turned.text()));
  }
  if (has_positions(c.node) && (c.dtype(3) != DType::i64 || (c.ranked(3) && c.rank(3) != 2))) return c.fail("position_ids is not i64 with two axes");
  c.set(0, c.dtype(0), c.dims(0));
  return ok();
}

Strided by_heads(const Strided& v, const Sizes& s) {
  if (!s.flat) return v;
  return {v.offset, {v.dims[0], s.heads, v.dims[1], s.depth}, {v.strides[0], v.strides[2] * s.depth, v.strides[1], v.strides[2]}};
}

Status reference(LowerContext& c) {
  Sizes s = sizes_of(c.graph, c.node);
  std::vector<Arg> in{c.in_as(0, by_heads(c.view(0), s)), c.in(1), c.in(2)};
  if (c.has(3)) in.push_back(c.in(3));
  c.call("ref.RotaryEmbedding", std::move(in), {c.out_as(0, by_heads(c.out_view(), s))}, {ir::attr_int(c.node, "interleaved", 0), s.turned});
  return ok();
}

// Input i as f32: a table, by position where positions are given, with an axis for the heads.
ValueId table(UpgradeContext& c, size_t i, bool flat) {
  ValueId v = input_of(c, i);
  DType t = c.graph.value(v).type.dtype;
  if (has_positions(c.node())) v = make_node(c, "Gather", {v, input_of(c, 3)}, {{"axis", int64_t{0}}});
  if (t != DType::f32) v = make_node(c, "Cast", {v}, {{"to", static_cast<int64_t>(DType::f32)}});
  return make_node(c, "Unsqueeze", {v, c.constant_ints({flat ? 2 : 1})});
}

Result<bool> expand(UpgradeContext& c) {
  const Type x = c.graph.value(input_of(c, 0)).type;
  if (!x.ranked || !cube_float(x.dtype)) return false;
  Sizes s = sizes_of(c.graph, c.node());
  if (!s.depth.known() || s.turned.value() < 1) return false;
  const int64_t depth = s.depth.value(), turned = s.turned.value(), interleaved = ir::attr_int(c.node(), "interleaved", 0);
  ValueId v = input_of(c, 0);
  if (s.flat) v = make_node(c, "Reshape", {v, c.constant_ints({0, 0, s.heads.value(), depth})});
  ValueId rest;
  auto part = [&](int64_t from, int64_t to) { return make_node(c, "Slice", {v, c.constant_ints({from}), c.constant_ints({to}), c.constant_ints({3})}); };
  if (turned < depth) rest = part(turned, depth), v = part(0, turned);
  if (x.dtype != DType::f32) v = make_node(c, "Cast", {v}, {{"to", static_cast<int64_t>(DType::f32)}});
  ir::Attrs attrs;
  if (interleaved) attrs["interleaved"] = int64_t{1};
  v = make_node(c, "ge.Rotary", {v, table(c, 1, s.flat), table(c, 2, s.flat)}, std::move(attrs));
  if (x.dtype != DType::f32) v = make_node(c, "Cast", {v}, {{"to", static_cast<int64_t>(x.dtype)}});
  if (rest) v = make_node(c, "Concat", {v, rest}, {{"axis", int64_t{3}}});
  if (s.flat) v = make_node(c, "Reshape", {v, c.constant_ints({0, 0, s.heads.value() * depth})});
  c.graph.replace_uses(c.node().outputs[0], v);
  c.graph.erase(c.id);
  return true;
}

const Register r(OpDef{.name = "RotaryEmbedding",
                       .min_inputs = 3,
                       .max_inputs = 4,
                       .since = 23,
                       .attrs = {{"interleaved", "1: neighbours are pairs, else the halves"},
                                 {"num_heads", "heads, for an input of 3 axes"},
                                 {"rotary_embedding_dim", "how many features are turned; 0: all"}},
                       .doc = "rotary position embedding",
                       .types = types::floats,
                       .infer = infer,
                       .expand = expand,
                       .reference = reference});

}  // namespace
}  // namespace ge::ops
