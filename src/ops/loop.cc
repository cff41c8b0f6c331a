// Loop: a nested graph over and over, as often as a number and a condition say. Carried values go from one
// iteration to the next; the others that it gives are stacked.
#include "base/text.h"
#include "ops/carried.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

size_t capture_count(const Node& n) { return static_cast<size_t>(attr_int(n, "captures", 0)); }
size_t carried_count(const Node& n) { return n.inputs.size() - 2 - capture_count(n); }

bool is_true(const Graph& g, ValueId v) {
  auto e = g.elements(v);
  return e && e->size() == 1 && (*e)[0].is(1);
}

// How often it runs, when no condition ends it earlier.
std::optional<Dim> trip_count(InferContext& c, const Graph& body) {
  auto first = c.elements(1);
  if (first && first->size() == 1 && (*first)[0].is(0)) return Dim(0);
  if (c.has(1) && !is_true(c.graph, c.node.inputs[1])) return std::nullopt;
  ValueId next = body.outputs[0];
  if (next != body.inputs[1] && !is_true(body, next)) return std::nullopt;
  auto most = c.elements(0);
  if (!most || most->size() != 1) return std::nullopt;
  return max_of(c.graph, (*most)[0], 0);
}

Status infer(InferContext& c) {
  if (c.node.inputs.size() < 2 + capture_count(c.node)) return c.fail("it has too few inputs; a trip count and a condition come first, either may be empty");
  GE_TRY(auto body, require_nested(c, "body"));
  size_t carried = carried_count(c.node);
  if (body->inputs.size() != 2 + carried + capture_count(c.node))
    return c.fail(format("its graph takes {} values, but the node gives it {} (the iteration, the condition, and what is carried)", body->inputs.size() - capture_count(c.node), 2 + carried));
  if (body->outputs.size() < 1 + carried || c.out.size() > body->outputs.size() - 1)
    return c.fail(format("its graph gives {} outputs, but the node carries {} values and has {} outputs: it gives the condition, then what is carried, then what is stacked", body->outputs.size(), carried, c.out.size()));
  if (c.has(0) && c.dtype(0) != DType::i64) return c.fail(format("the trip count is {}, not i64", name(c.dtype(0))));
  if (c.has(1) && c.dtype(1) != DType::boolean) return c.fail(format("the condition is {}, not bool", name(c.dtype(1))));
  Border border(c.graph, *body);
  body->value(body->inputs[0]).type = Type::tensor(DType::i64, {});
  body->value(body->inputs[1]).type = Type::tensor(DType::boolean, {});
  set_captures(c, border, *body, 2 + carried, 2 + carried);
  std::vector<Type> types;
  GE_RETURN_IF_ERROR(infer_carried(c, border, *body, carried, 2, 2, 1, types));
  Dim trips;
  if (c.out.size() > carried) {
    auto known = trip_count(c, *body);
    trips = known ? *known : c.fresh("trips");
  }
  for (size_t i = 0; i < c.out.size(); ++i) {
    if (i < carried) {
      c.out[i] = types[i];
      continue;
    }
    const Type& one = body->value(body->outputs[1 + i]).type;
    if (one.kind != ir::TypeKind::tensor) return c.fail(format("output {} stacks what is no tensor", i));
    Type all = border.leave(one, [&](size_t k) { return c.fresh(format("s{}.d{}", i, k)); });
    if (all.ranked) all.dims.insert(all.dims.begin(), trips);
    c.out[i] = std::move(all);
  }
  return ok();
}

Status lower(LowerContext& c) {
  std::vector<Arg> in, out;
  for (int i = 0; i < c.inputs(); ++i) in.push_back(c.in(i));
  auto body = nested(c.node, "body");
  for (size_t i = 0; i + 1 < body->outputs.size(); ++i) out.push_back(c.out(static_cast<int>(i)));
  c.call("flow.loop", std::move(in), std::move(out), {static_cast<int64_t>(carried_count(c.node))});
  c.calls.back().graphs = {body};
  return ok();
}

const Register r(OpDef{.name = "Loop",
                       .min_inputs = 2,
                       .max_inputs = -1,
                       .optional = 0b11,
                       .min_outputs = 0,
                       .max_outputs = -1,
                       .attrs = {{"body", "What runs."}},
                       .unit = kernels::Unit::host,
                       .doc = "A graph over and over.",
                       .data = 2,
                       .infer = infer,
                       .reference = lower,
                       .executor = true,
                       .foldable = false});

}  // namespace
}  // namespace ge::ops
