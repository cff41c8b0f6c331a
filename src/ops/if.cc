// If: one of two nested graphs. What a branch is decided by constants or sizes is put in its place
// (passes/inline_branches.cc); others run as tasks.
#include "base/text.h"
#include "ops/infer.h"
#include "ops/sequence.h"
#include "ops/shape_util.h"
#include "ops/size_condition.h"
#include "ops/subgraph.h"

namespace ge::ops {
namespace {

constexpr const char* kBranches[] = {"then_branch", "else_branch"};

// The type of both: sizes on which they agree, else what only the run tells.
Result<Type> either(InferContext& c, size_t output, const Type& a, const Type& b) {
  if (a.dtype != b.dtype || a.kind != b.kind)
    return c.fail(format("output {} is {} in one branch and {} in the other", output, text(a), text(b)));
  if (a.kind != ir::TypeKind::tensor) return either_element(a, b);
  Type out = a;
  if (!a.ranked || !b.ranked || a.rank() != b.rank()) {
    out.ranked = false;
    out.dims.clear();
    return out;
  }
  for (size_t k = 0; k < out.dims.size(); ++k)
    if (!(a.dims[k] == b.dims[k])) out.dims[k] = c.fresh(format("o{}.d{}", output, k));
  return out;
}

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  if (c.dtype(0) != DType::boolean) return c.fail(format("the condition is {}, not bool", name(c.dtype(0))));
  auto elements = c.elements(0);
  const Dim* condition = elements && elements->size() == 1 ? &(*elements)[0] : nullptr;
  auto known = condition ? decided(c.graph, *condition) : std::nullopt;
  std::vector<std::vector<Type>> types(2);
  Status failed[2];
  for (size_t b = 0; b < 2; ++b) {
    GE_TRY(auto branch, require_nested(c, kBranches[b]));
    if (branch->outputs.size() < c.out.size())
      return c.fail(format("{} gives {} outputs instead of {}", kBranches[b], branch->outputs.size(), c.out.size()));
    Border border(c.graph, *branch);
    enter_branch(c, border, *branch, b == 0);
    Status inferred = ops::infer(*branch).context(format("{} of {}", kBranches[b], c.node.name));
    // A branch that is never taken may be one that these sizes do not allow, and says nothing of the output.
    if (known && *known != (b == 0)) continue;
    failed[b] = std::move(inferred);
    if (!failed[b].ok()) continue;
    for (size_t i = 0; i < c.out.size(); ++i)
      types[b].push_back(border.leave(branch->value(branch->outputs[i]).type, [&](size_t k) { return c.fresh(format("o{}.d{}", i, k)); }));
  }
  // Data may never take a branch that the sizes do not allow: passes/branch_ranks.cc makes it one that fails when taken.
  for (size_t b = 0; b < 2; ++b)
    if (!failed[b].ok() && (known || !failed[1 - b].ok() || failed[b].error().code != code::kBadOp)) return std::move(failed[b]);
  for (size_t i = 0; i < c.out.size(); ++i) {
    if (types[0].empty() || types[1].empty()) c.out[i] = types[types[0].empty()][i];
    else {
      GE_TRY(c.out[i], either(c, i, types[0][i], types[1][i]));
    }
  }
  return ok();
}

Status lower(LowerContext& c) {
  std::vector<Arg> in, out;
  for (int i = 0; i < c.inputs(); ++i) in.push_back(c.in(i));
  for (size_t i = 0; i < c.node.outputs.size(); ++i) out.push_back(c.out(static_cast<int>(i)));
  c.call("flow.if", std::move(in), std::move(out));
  c.calls.back().graphs = {nested(c.node, kBranches[0]), nested(c.node, kBranches[1])};
  return ok();
}

const Register r(OpDef{.name = "If",
                       .min_inputs = 1,
                       .max_inputs = 1,
                       .max_outputs = -1,
                       .attrs = {{"then_branch", "Runs when the condition is true."}, {"else_branch", "Runs when it is false."}},
                       .unit = kernels::Unit::host,
                       .doc = "One of two graphs.",
                       .types = types::boolean,
                       .infer = infer,
                       .reference = lower,
                       .executor = true,
                       .foldable = false});

}  // namespace
}  // namespace ge::ops
