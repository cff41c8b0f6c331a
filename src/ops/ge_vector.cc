// ge.Vector: a region of elementwise nodes and row reductions as one vector program.
//
// program: its text form; operand i is input i. row_axes: trailing axes that form the row (0: elementwise).
// dtypes: ONNX number of each output's type. reduced: 1 for outputs whose row axes have size 1.
#include "ops/vector_lowering.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  std::vector<Dim> dims;
  for (int i = 0; i < c.inputs(); ++i) {
    if (!c.ranked(i)) return ok();
    GE_TRY(dims, broadcast_dims(c, dims, c.dims(i)));
  }
  auto dtypes = ir::attr_ints(c.node, "dtypes");
  auto reduced = ir::attr_ints(c.node, "reduced");
  auto axes = static_cast<size_t>(ir::attr_int(c.node, "row_axes", 0));
  if (dtypes.size() != c.out.size() || axes > dims.size()) return c.fail("attributes do not fit the outputs");
  for (size_t i = 0; i < c.out.size(); ++i) {
    auto d = dims;
    if (i < reduced.size() && reduced[i])
      for (size_t k = d.size() - axes; k < d.size(); ++k) d[k] = 1;
    c.set(static_cast<int>(i), static_cast<DType>(dtypes[i]), std::move(d));
  }
  return ok();
}

Status lower(LowerContext& c) {
  GE_TRY(auto program, kernels::vector::parse(ir::attr_string(c.node, "program", "")));
  std::vector<Arg> in, out;
  for (int i = 0; i < c.inputs(); ++i) in.push_back(c.in(i));
  for (size_t i = 0; i < c.node.outputs.size(); ++i) {
    if (!c.wants(static_cast<int>(i))) return c.fail("an output is missing");
    out.push_back(c.out(static_cast<int>(i)));
  }
  emit_vector_program(c, program, static_cast<int>(ir::attr_int(c.node, "row_axes", 0)), std::move(in), std::move(out));
  return ok();
}

std::vector<int> layout(const Graph& g, const Node& n) {
  auto& out = g.value(n.outputs[0]).type;
  for (ValueId v : n.inputs)
    if (v && g.value(v).type.dims == out.dims) return g.value(v).layout;
  return {};
}

std::optional<RowWindow> rows(const Graph& g, const Node& n, int input, int axis) {
  auto row = ir::attr_int(n, "row_axes", 0);
  return axis < g.value(n.outputs[0]).type.rank() - row ? broadcast_rows(g, n, input, axis) : std::nullopt;
}

const Register r(OpDef{.name = "ge.Vector",
                       .min_inputs = 0,
                       .max_inputs = -1,
                       .min_outputs = 1,
                       .max_outputs = -1,
                       .doc = "a region of elementwise nodes and row reductions",
                       .infer = infer,
                       .lower = lower,
                       .layout = layout,
                       .window = rows});

}  // namespace
}  // namespace ge::ops
