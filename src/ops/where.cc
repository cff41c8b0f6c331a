// Where.
#include "base/text.h"
#include "kernels/vector/program.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

// Elements where all three inputs are scalars or lists of one length.
void where_elements(InferContext& c) {
  auto condition = known_elements(c, 0), x = known_elements(c, 1), y = known_elements(c, 2);
  if (!condition || !x || !y || c.out[0].rank() > 1) return;
  size_t n = std::max({condition->values.size(), x->values.size(), y->values.size()});
  for (auto* e : {&*condition, &*x, &*y})
    if (e->values.size() != n && e->values.size() != 1) return;
  std::vector<Dim> out;
  auto at = [](const KnownElements& e, size_t i) { return e.values[e.values.size() == 1 ? 0 : i]; };
  for (size_t i = 0; i < n; ++i) out.push_back(select(at(*condition, i), at(*x, i), at(*y, i)));
  c.set_elements(0, std::move(out));
}

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 3));
  if (c.dtype(0) != DType::boolean) return c.fail(format("the condition is {}, not bool", name(c.dtype(0))));
  if (c.dtype(1) != c.dtype(2)) return c.fail(format("its inputs are {} and {}; they need one type", name(c.dtype(1)), name(c.dtype(2))));
  if (!c.ranked(0) || !c.ranked(1) || !c.ranked(2)) {
    c.set_unranked(0, c.dtype(1));
    return ok();
  }
  GE_TRY(auto dims, broadcast_dims(c, c.dims(1), c.dims(2)));
  GE_TRY(dims, broadcast_dims(c, c.dims(0), dims));
  c.set(0, c.dtype(1), std::move(dims));
  where_elements(c);
  return ok();
}

bool vector(VectorContext& c) {
  using kernels::vector::Op;
  DType t = c.graph.value(c.node.inputs[1]).type.dtype;
  if (t != DType::f32 && t != DType::f16 && t != DType::bf16 && t != DType::i32 && t != DType::boolean) return false;
  c.out[0] = c.builder.op(Op::select, c.in[0], c.in[1], c.in[2]);
  return true;
}

// Types that vector programs hold go there.
Status lower(LowerContext& c) {
  DType t = c.type(1).dtype;
  if (t == DType::f32 || t == DType::i32) return ok();
  c.call("move.where", {c.in(0), c.in(1), c.in(2)}, {c.out()});
  return ok();
}

Status reference(LowerContext& c) {
  c.call("ref.Where", {c.in(0), c.in(1), c.in(2)}, {c.out()});
  return ok();
}

// The order of the axes of an input that has them all.
std::vector<int> layout(const Graph& g, const Node& n) {
  auto& out = g.value(n.outputs[0]).type;
  for (ValueId v : n.inputs)
    if (v && g.value(v).type.ranked && out.ranked && g.value(v).type.dims == out.dims && !g.value(v).layout.empty())
      return g.value(v).layout;
  return {};
}

const Register where(OpDef{.name = "Where",
                           .min_inputs = 3,
                           .max_inputs = 3,
                           .since = 9,
                           .doc = "Elements of the second input where the condition holds, else of the third.",
                           .data = 1,
                           .infer = infer,
                           .reference = reference,
                           .lower = lower,
                           .vector_kind = VectorKind::elementwise,
                           .vector = vector,
                           .layout = layout});

}  // namespace
}  // namespace ge::ops
