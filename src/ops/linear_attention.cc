// LinearAttention: attention as a recurrence over a state of fixed size.
#include "base/text.h"
#include "ops/outputs.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

int64_t query_heads(const Node& n) { return attr_int(n, "q_num_heads", 0); }
int64_t heads(const Node& n) { return attr_int(n, "kv_num_heads", 0); }

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 3));
  std::string rule = attr_string(c.node, "update_rule", "gated_delta");
  bool gated = rule.starts_with("gated"), delta = rule.ends_with("delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta") return c.fail(format("update_rule '{}' is not known; it is 'linear', 'gated', 'delta' or 'gated_delta'", rule));
  if (c.has(4) != gated || c.has(5) != delta) return c.fail(format("its inputs are not those of update_rule '{}'", rule));
  int64_t hq = query_heads(c.node), h = heads(c.node);
  if (h < 1 || hq < 1 || hq % h) return c.fail(format("{} heads of queries cannot share {} heads of keys: the one must be a multiple of the other", hq, h));
  DType state = c.has(3) ? c.dtype(3) : c.dtype(0);
  for (int i = 0; i < 3; ++i)
    if (c.ranked(i) && c.rank(i) != 3) return c.fail(format("input {} {} has not 3 axes", i, text(c.dims(i))));
  if (!c.ranked(0) || !c.ranked(2)) {
    c.set_unranked(0, c.dtype(0));
    c.set_unranked(1, state);
    return ok();
  }
  auto &q = c.dims(0), &v = c.dims(2);
  Dim dk = floordiv(q[2], hq), dv = floordiv(v[2], h);
  c.set(0, c.dtype(0), {q[0], q[1], dv * Dim(hq)});
  c.set(1, state, {q[0], Dim(h), dk, dv});
  return ok();
}

Status reference(LowerContext& c) {
  std::vector<Arg> in;
  for (int i = 0; i < 6; ++i) in.push_back(c.in(i));
  std::vector<Arg> out{c.out()};
  if (c.wants(1)) out.push_back(c.out(1));
  c.call("ref.LinearAttention", std::move(in), std::move(out), {query_heads(c.node), heads(c.node)}, {ir::attr_float(c.node, "scale", 0)});
  return ok();
}

const Register r(OpDef{.name = "LinearAttention", .min_inputs = 3, .max_inputs = 6, .max_outputs = 2, .since = 27,
                       .attrs = {{"q_num_heads", "Heads of the queries."}, {"kv_num_heads", "Heads of keys and values."},
                                 {"scale", "Of the output; 0: by the width of a head."},
                                 {"update_rule", "linear, gated, delta or gated_delta."}, {"chunk_size", "A hint; not used."}},
                       .unit = kernels::Unit::cube, .doc = "Attention by a state that each step updates.", .types = types::floats, .infer = infer, .upgrade = with_first_output,
                       .reference = reference});

}  // namespace
}  // namespace ge::ops
