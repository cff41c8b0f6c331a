//   Conv|ConvTranspose|MatMul -> elementwise -> elementwise ...   becomes   ge.Conv|ge.MatMul {program}
// and the same behind a sum of bytes, which may end in bytes again (QuantizeLinear).
// A chain of elementwise nodes after a product or convolution runs as a vector program on each finished
// tile. Other operands of the chain broadcast to the tile. Relu, bias and residual have rules of their own,
// which run in registers.
#include <cmath>

#include "base/text.h"
#include "ops/integer_product.h"
#include "ops/quantization.h"
#include "ops/vector_lowering.h"
#include "passes/fusions/cube_group.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;
using kernels::vector::ProgramBuilder;
using kernels::vector::Reg;

constexpr size_t kMaxExtras = 6;

bool is_transposed(const ir::Node& n) { return n.op == "ConvTranspose" || n.op == "ge.ConvTranspose"; }
bool is_cube(const ir::Node& n) { return n.op == "Conv" || n.op == "ge.Conv" || n.op == "MatMul" || n.op == "Gemm" || n.op == "ge.MatMul" || is_transposed(n) || is_integer_product(n); }

// A constant of one element as an immediate of the program.
std::optional<Reg> immediate(const ir::Graph& g, ValueId v, ProgramBuilder& b) {
  auto& t = g.value(v);
  if (!t.constant || t.constant->count() != 1) return std::nullopt;
  if (t.type.dtype == DType::f32) return b.constant(static_cast<float>(t.constant->at(0)));
  if (t.type.dtype == DType::u8 || t.type.dtype == DType::i8) return b.constant_i32(static_cast<int32_t>(t.constant->at_int(0)));
  return std::nullopt;
}

Reg loaded(const ir::Graph& g, ValueId v, ProgramBuilder& b, CubeGroup& group) {
  group.extras.push_back(v);
  return b.load(static_cast<int>(group.extras.size()), ops::vector_lane(g.value(v).type.dtype));
}

// Another operand of the chain. Dequantised bytes are read as bytes where the tile is of bytes too.
std::optional<Reg> operand(const ir::Graph& g, ValueId v, bool bytes, ProgramBuilder& b, CubeGroup& group) {
  if (auto r = immediate(g, v, b)) return r;
  NodeId p = g.value(v).producer;
  if (!bytes || !p || g.node(p).op != "DequantizeLinear") return loaded(g, v, b, group);
  auto& n = g.node(p);
  std::vector<Reg> in{loaded(g, n.inputs[0], b, group)};
  for (size_t i = 1; i < n.inputs.size(); ++i) {
    auto r = n.inputs[i] ? immediate(g, n.inputs[i], b) : std::optional(kernels::vector::kNoReg);
    if (!r) {
      group.extras.pop_back();
      return loaded(g, v, b, group);
    }
    in.push_back(*r);
  }
  auto made = ops::append_vector(g, n, b, std::move(in));
  return made ? std::optional((*made)[0]) : std::nullopt;
}

// QuantizeLinear of the tile by a constant scale: the sums of bytes have been multiplied by scales, so one more
// factor stands for the division.
std::optional<std::vector<Reg>> requantized(const ir::Graph& g, const ir::Node& n, ProgramBuilder& b, const std::vector<Reg>& in) {
  auto scale = scalar_constant(g, n.inputs[1]);
  DType to = g.value(n.outputs[0]).type.dtype;
  if (!scale || g.value(n.inputs[0]).type.dtype != DType::f32 || !ops::is_byte(to) || ir::attr_int(n, "precision", 1) != 1) return std::nullopt;
  const float factor = 1 / static_cast<float>(*scale);
  if (!std::isnormal(factor)) return std::nullopt;
  return std::vector<Reg>{ops::saturate(b, b.op(kernels::vector::Op::mul, in[0], factor), in.size() > 2 ? in[2] : kernels::vector::kNoReg, to)};
}

// The group with node e taken into its program; the verdict says why not.
Verdict take(const ir::Graph& g, NodeId cube, NodeId e, CubeGroup& group, std::string& program) {
  auto& n = g.node(e);
  ValueId tile = g.node(cube).outputs[0];
  auto& out = g.value(tile).type;
  if (ops::vector_row_axes(g, n) != std::optional(0)) return no(format("{} is not elementwise", n.op));
  if (n.outputs.size() != 1) return no(format("{} has several outputs", n.op));
  auto& made = g.value(n.outputs[0]).type;
  const bool bytes = is_integer_product(g.node(cube));
  auto fits = [&](DType t) { return t == DType::f32 || (bytes && (t == DType::u8 || t == DType::i8)); };
  if (!fits(out.dtype) || !fits(made.dtype)) return no("the values are not f32", n.op == "Cast" && !g.is_output(n.outputs[0]) ? "remove the Cast" : "");
  if (made.dims != out.dims) return no(format("{} makes shape {} from {}", n.op, ir::text(made), ir::text(out)));
  Verdict v = takes_tail(g, cube);
  if (v) v = read_group(g, cube, group);
  if (!v) return v;
  if (bytes) group.attrs["dtypes"] = std::vector<int64_t>{static_cast<int64_t>(made.dtype)};
  ProgramBuilder b;
  Reg value = b.load(0);
  std::vector<Reg> inputs = {value};
  for (size_t i = 0; i < group.extras.size(); ++i)
    inputs.push_back(b.load(static_cast<int>(i) + 1, ops::vector_lane(g.value(group.extras[i]).type.dtype)));
  if (group.has_program()) {
    auto old = kernels::vector::parse(std::get<std::string>(group.attrs["program"]));
    if (!old.ok()) return no("its program cannot be read");
    value = b.append(*old, inputs)[0];
  }
  std::vector<Reg> regs;
  for (ValueId in : n.inputs) {
    if (!in) {
      regs.push_back(kernels::vector::kNoReg);
      continue;
    }
    if (in == tile) {
      regs.push_back(value);
      continue;
    }
    if (!ops::vector_dtype(g.value(in).type.dtype)) return no(format("{} is {}", g.value(in).name, name(g.value(in).type.dtype)));
    auto reg = operand(g, in, bytes, b, group);
    if (!reg) return no(format("{} has no vector form", g.value(in).name));
    regs.push_back(*reg);
  }
  if (!group.extras.empty() && is_transposed(g.node(cube))) return no("a transposed convolution takes no further operands");
  if (group.extras.size() > kMaxExtras) return no("the chain has too many operands");
  auto result = bytes && n.op == "QuantizeLinear" ? requantized(g, n, b, regs) : std::nullopt;
  if (!result) result = ops::append_vector(g, n, b, std::move(regs));
  if (!result) return no(format("{} has no vector form for these types", n.op));
  b.store(0, (*result)[0]);
  auto p = b.finish(static_cast<int>(group.extras.size()) + 1, 1);
  if (!p.ok() || p->phases.size() > 1) return no(p.ok() ? "it needs a whole row" : p.error().message);
  program = kernels::vector::print(*p);
  return yes();
}

// An elementwise reader that cannot be taken because the sums are read elsewhere too.
void trace_readers(const ir::Graph& g, NodeId cube, Trace& trace) {
  ValueId v = g.node(cube).outputs[0];
  for (auto& u : g.value(v).uses) {
    if (ops::vector_row_axes(g, g.node(u.node)) != std::optional(0)) continue;
    Verdict shared = read_by_others(g, v, [&](NodeId id) { return id == u.node; }, u.node);
    trace.near_miss({"cube_epilogue", g.node(u.node).name, 1, 2, shared.node, shared.why, shared.help});
  }
}

Result<bool> search(ir::Graph& g, PassContext& c) {
  Trace& trace = c.trace;
  bool changed = false;
  for (NodeId id : g.order()) {
    if (g.node(id).dead || !is_cube(g.node(id))) continue;
    NodeId cube = id;
    bool taken = false;
    std::string anchor;
    for (int step = 0; step < 24; ++step) {
      NodeId e = g.only_reader(g.node(cube).outputs[0]);
      if (!e) {
        trace_readers(g, cube, trace);
        break;
      }
      CubeGroup group;
      std::string program;
      Verdict v = take(g, cube, e, group, program);
      if (v) v = in_scope(c.options, g, e);
      if (v && c.options.disabled_at.count({"cube_epilogue", g.node(e).name})) v = beyond_eps();
      if (v) v = not_switched_off(g, e, c.options);
      if (!v) {
        if (ops::vector_row_axes(g, g.node(e)) == std::optional(0)) trace.near_miss({"cube_epilogue", g.node(e).name, 1, 2, g.node(e).name, v.why, v.help});
        break;
      }
      group.attrs["program"] = program;
      if (!taken) anchor = g.node(e).name;
      Match m;
      m.g = &g;
      m.anchor = e;
      m.nodes = {{"cube", cube}, {"e", e}};
      cube = write_group(g, m, group, g.node(e).outputs[0]);
      taken = changed = true;
    }
    if (taken) trace.fused("cube_epilogue", g, cube, anchor);
  }
  return changed;
}

const RegisterFusion r(Fusion{.name = "cube_epilogue", .doc = "elementwise chains on the finished tile of a product or convolution", .order = 3, .search = search});

}  // namespace
}  // namespace ge::passes
