//   op(Gather(T, index), c)   becomes   Gather(op(T, c), index)     T, c constant, op elementwise
// T's rows are computed once, while compiling, where they are no more than a run reads.
#include <algorithm>

#include "ops/evaluate.h"
#include "ops/vector_lowering.h"
#include "passes/fusion.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

constexpr int64_t kMostBytes = 1 << 20;   // of a table that is made

// The Gather of rows of a constant that makes v; none: another node does.
NodeId rows_of_table(const ir::Graph& g, ValueId v) {
  NodeId id = v ? g.value(v).producer : NodeId{};
  if (!id) return {};
  auto& n = g.node(id);
  const bool rows = n.op == "Gather" && ir::attr_int(n, "axis", 0) == 0 && g.is_constant(n.inputs[0]) && !g.is_constant(n.inputs[1]);
  return rows && g.value(n.inputs[0]).constant->rank() > 0 && g.value(n.inputs[1]).type.ranked ? id : NodeId{};
}

// Elements that a run reads at least: open sizes count as 1.
int64_t least_count(const ir::Type& t) {
  int64_t count = 1;
  for (auto& d : t.dims)
    if (d.known() && __builtin_mul_overflow(count, d.value(), &count)) return INT64_MAX;
  return count;
}

// A constant as it broadcasts to the rows of a table: without leading axes of size 1 beyond theirs. None: it is not one value for
// each row.
ValueId along_row(ir::Graph& g, ValueId v, size_t row_rank) {
  const Tensor& c = *g.value(v).constant;
  auto dims = c.dims();
  if (dims.size() <= row_rank) return v;
  const auto last = dims.end() - static_cast<ptrdiff_t>(row_rank);
  if (std::any_of(dims.begin(), last, [](int64_t d) { return d != 1; })) return {};
  return g.add_constant(c.reshaped({last, dims.end()}), g.value(v).name);
}

// The node on the table that serves for n; none: n is not of that kind.
NodeId on_table(ir::Graph& g, NodeId id) {
  const ir::Node n = g.node(id);
  if (n.outputs.size() != 1 || !n.outputs[0] || n.op == "Gather" || ops::vector_row_axes(g, n) != std::optional(0)) return {};
  auto& out = g.value(n.outputs[0]);
  if (!out.type.ranked || out.content || !ops::vector_dtype(out.type.dtype)) return {};
  NodeId gather;
  for (ValueId v : n.inputs) {
    NodeId from = rows_of_table(g, v);
    if (!from) {
      if (v && !g.is_constant(v)) return {};
      continue;
    }
    if (gather && (g.node(gather).inputs[1] != g.node(from).inputs[1] || g.value(g.node(gather).inputs[0]).type.dims != g.value(g.node(from).inputs[0]).type.dims)) return {};
    gather = from;
  }
  if (!gather) return {};
  const ValueId table = g.node(gather).inputs[0], index = g.node(gather).inputs[1];
  const Tensor& t = *g.value(table).constant;
  if (g.value(g.node(gather).outputs[0]).type.dims != out.type.dims) return {};
  if (t.count() > least_count(out.type) || t.count() * size_of(out.type.dtype) > kMostBytes) return {};
  std::vector<ValueId> inputs;
  for (ValueId v : n.inputs) {
    if (NodeId from = rows_of_table(g, v)) v = g.node(from).inputs[0];
    else if (v && !(v = along_row(g, v, static_cast<size_t>(t.rank() - 1)))) return {};
    inputs.push_back(v);
  }
  ir::Type type = g.value(table).type;
  const ir::Type result = out.type;
  type.dtype = result.dtype;
  NodeId made = g.insert(n.op, std::move(inputs), {type}, n.attrs, id);
  auto values = ops::evaluate(g, g.node(made));
  const ValueId made_table = g.node(made).outputs[0];
  if (values.ok() && (*values)[0].dims() == t.dims()) {
    g.make_constant(made_table, std::move((*values)[0]));
    g.erase(made);
    return g.insert("Gather", {made_table, index}, {result}, {{"axis", int64_t{0}}}, id);
  }
  g.erase(made);
  return {};
}

Result<bool> search(ir::Graph& g, PassContext& c) {
  bool changed = false;
  for (NodeId id : g.order()) {
    if (g.node(id).dead || !in_scope(c.options, g, id) || c.options.disabled_at.count({"gather_table", g.node(id).name})) continue;
    NodeId made = on_table(g, id);
    if (!made) continue;
    const ir::Node n = g.node(id);
    g.replace_uses(n.outputs[0], g.node(made).outputs[0]);
    g.erase(id);
    for (ValueId v : n.inputs)
      if (NodeId from = rows_of_table(g, v); from && !g.node(from).dead && g.reader_count(v) == 0) g.erase(from);
    c.trace.fused("gather_table", g, made, n.name);
    changed = true;
  }
  return changed;
}

const RegisterFusion r(Fusion{.name = "gather_table", .doc = "what follows a lookup in a small table is computed on the table", .order = 0, .search = search});

}  // namespace
}  // namespace ge::passes
