// FlexAttention (ai.onnx.preview): written as Attention, or, where a nested graph changes scores or probabilities, as
// products, Softmax and the nodes of those graphs.
#include <cmath>

#include "base/text.h"
#include "ops/rewrite.h"
#include "ops/shape_util.h"
#include "ops/subgraph.h"

namespace ge::ops {
namespace {

enum Input { kQ, kK, kV };

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 3));
  for (int i : {kQ, kK, kV})
    if (c.ranked(i) && c.rank(i) != 4) return c.fail(format("input {} has {} axes, not 4", i, c.rank(i)));
  for (auto* name : {"score_mod", "prob_mod"})
    if (auto g = nested(c.node, name); g && (g->outputs.size() != 1 || g->inputs.empty())) return c.fail(format("{} is not a graph of one input and one output", name));
  if (!c.ranked(kQ) || !c.ranked(kV)) {
    c.set_unranked(0, c.dtype(kQ));
    return ok();
  }
  auto dims = c.dims(kQ);
  dims[3] = c.dims(kV)[3];
  if (c.ranked(kK) && dims[1].known() && c.dims(kK)[1].known() && (c.dims(kK)[1].value() < 1 || dims[1].value() % c.dims(kK)[1].value()))
    return c.fail(format("{} heads of queries cannot share {} of keys: the one must be a multiple of the other", dims[1].value(), c.dims(kK)[1].value()));
  c.set(0, c.dtype(kQ), std::move(dims));
  return ok();
}

DType softmax_type(const Graph& g, const Node& n) {
  if (auto t = ir::attr_int(n, "softmax_precision", 0); t) return static_cast<DType>(t);
  return g.value(n.inputs[kQ]).type.dtype == DType::f64 ? DType::f64 : DType::f32;
}

ValueId cast(UpgradeContext& c, ValueId v, DType t) { return make_node(c, "Cast", {v}, {{"to", static_cast<int64_t>(t)}}); }

// The nested graph's nodes on v; what it captures stands behind the operator's own inputs, score_mod's first.
ValueId modified(UpgradeContext& c, const char* name, ValueId v, size_t& captured) {
  auto inner = nested(c.node(), name);
  if (!inner) return v;
  std::vector<ValueId> in{v};
  for (size_t i = 1; i < inner->inputs.size(); ++i) in.push_back(input_of(c, captured++));
  return put_in(c.graph, *inner, in, c.id)[0];
}

Result<bool> expand(UpgradeContext& c) {
  const Node n = c.node();
  auto& q = c.graph.value(n.inputs[kQ]).type;
  auto& k = c.graph.value(n.inputs[kK]).type;
  if (!q.ranked || !k.ranked || !q.dims[1].known() || !k.dims[1].known() || k.dims[1].value() < 1) return false;
  const int64_t heads = q.dims[1].value(), groups = k.dims[1].value();
  const DType outer = q.dtype, inner = softmax_type(c.graph, n);
  if (!nested(n, "score_mod") && !nested(n, "prob_mod")) {
    ir::Attrs attrs = {{"softmax_precision", static_cast<int64_t>(inner)}};
    if (ir::has_attr(n, "scale")) attrs["scale"] = ir::attr_float(n, "scale", 1);
    become(c, "Attention", {n.inputs[kQ], n.inputs[kK], n.inputs[kV]}, std::move(attrs));
    return true;
  }
  double scale = ir::attr_float(n, "scale", 0);
  if (!ir::has_attr(n, "scale")) {
    if (!q.dims[3].known() || q.dims[3].value() < 1) return false;
    scale = 1 / std::sqrt(static_cast<double>(q.dims[3].value()));
  }
  // Heads that share keys lie next to one another: [B, groups, heads / groups, ., .] times [B, groups, 1, ., .].
  const bool shared = heads != groups;
  auto apart = [&](ValueId v) { return shared ? make_node(c, "Unsqueeze", {v, c.constant_ints({2})}) : v; };
  auto reshaped = [&](ValueId v, std::vector<int64_t> dims, ValueId like) {
    // The last two sizes as they are in `like`.
    ValueId shape = make_node(c, "Concat", {c.constant_ints(dims), make_node(c, "Shape", {like}, {{"start", int64_t{-2}}})}, {{"axis", int64_t{0}}});
    return make_node(c, "Reshape", {v, shape});
  };
  auto split = [&](ValueId v) { return shared ? reshaped(v, {0, groups, heads / groups}, v) : v; };
  auto joined = [&](ValueId v) { return shared ? reshaped(v, {0, heads}, v) : v; };
  const int64_t last = shared ? 4 : 3;
  std::vector<int64_t> perm;
  for (int64_t a = 0; a < last - 1; ++a) perm.push_back(a);
  perm.push_back(last), perm.push_back(last - 1);
  ValueId keys = make_node(c, "Transpose", {apart(n.inputs[kK])}, {{"perm", perm}});
  ValueId scores = cast(c, joined(make_node(c, "MatMul", {split(n.inputs[kQ]), keys})), inner);
  scores = make_node(c, "Mul", {scores, cast(c, c.constant_float(static_cast<float>(scale)), inner)});
  size_t captured = 3;
  scores = modified(c, "score_mod", scores, captured);
  ValueId p = make_node(c, "Softmax", {scores}, {{"axis", int64_t{-1}}});
  p = cast(c, modified(c, "prob_mod", p, captured), outer);
  ValueId y = joined(make_node(c, "MatMul", {split(p), apart(n.inputs[kV])}));
  become(c, "Identity", {y});
  return true;
}

const Register r(OpDef{.name = "ai.onnx.preview.FlexAttention",
                       .min_inputs = 3,
                       .max_inputs = -1,
                       .attrs = {{"score_mod", "Graph that changes the scores."}, {"prob_mod", "Graph that changes the probabilities."},
                                 {"scale", "Factor of the scores; 1 / sqrt(head size)."}, {"softmax_precision", "Type of scores and probabilities."}},
                       .unit = kernels::Unit::cube,
                       .doc = "Attention with graphs that change scores and probabilities.",
                       .types = types::floats | Types{DType::i32, DType::i64, DType::u32, DType::u64},
                       .infer = infer,
                       .expand = expand});

}  // namespace
}  // namespace ge::ops
