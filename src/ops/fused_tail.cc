#include "ops/fused_tail.h"

#include <algorithm>

#include "base/text.h"

namespace ge::ops {

using kernels::vector::Program;
using kernels::vector::ProgramBuilder;
using kernels::vector::Reg;
using V = kernels::vector::Op;

std::vector<AttrDef> tail_attrs() {
  return {{"act", "none, relu, clip (to act_alpha, act_beta) or leaky (act_alpha)"},
          {"act_alpha", "a number of the activation"},
          {"act_beta", "a number of the activation"},
          {"program", "a vector program: input 0 is the activated sum, inputs 1.. the extra inputs"},
          {"dtypes", "types of the outputs; absent: that of input 0"}};
}

Result<FusedTail> read_tail(const Node& n, int first) {
  FusedTail t;
  auto bad = [&](std::string why) { return node_error(code::kBadOp, n.name, format("{}: {}", n.op, why)); };
  auto present = [&](int i) { return static_cast<size_t>(i) < n.inputs.size() && n.inputs[static_cast<size_t>(i)]; };
  if (present(first)) t.bias = first;
  if (present(first + 1)) t.residual = first + 1;
  for (int i = first + 2; i < static_cast<int>(n.inputs.size()); ++i) {
    if (!present(i)) return bad(format("input {} is missing", i));
    t.extras.push_back(i);
  }
  std::string act = ir::attr_string(n, "act", "none");
  const char* const names[] = {"none", "relu", "clip", "leaky"};
  auto it = std::find(std::begin(names), std::end(names), act);
  if (it == std::end(names)) return bad(format("unknown activation '{}'", act));
  t.act = it - std::begin(names);
  t.p = ir::attr_float(n, "act_alpha", 0);
  t.q = ir::attr_float(n, "act_beta", 0);
  std::string program = ir::attr_string(n, "program", "");
  if (!program.empty()) {
    auto p = kernels::vector::parse(program);
    if (!p.ok()) p = kernels::vector::decode(std::as_bytes(std::span(program.data(), program.size())));
    if (!p.ok()) return bad("attribute program is not a vector program");
    t.program = *std::move(p);
    if (t.program->inputs != t.extras.size() + 1 || t.program->outputs != n.outputs.size())
      return bad(format("the program has {} inputs and {} outputs, the node {} and {}", t.program->inputs,
                        t.program->outputs, t.extras.size() + 1, n.outputs.size()));
  } else if (!t.extras.empty() || n.outputs.size() != 1) {
    return bad("extra inputs or outputs without a program");
  }
  return t;
}

void set_fused_outputs(InferContext& c, const std::vector<Dim>& dims, DType otherwise) {
  auto dtypes = ir::attr_ints(c.node, "dtypes");
  for (size_t i = 0; i < c.out.size(); ++i)
    c.set(static_cast<int>(i), i < dtypes.size() ? static_cast<DType>(dtypes[i]) : otherwise, dims);
}

Program identity_program(kernels::vector::Lane lane) {
  ProgramBuilder b;
  b.store(0, b.load(0, lane));
  auto p = b.finish();
  GE_CHECK(p.ok(), "the identity program");
  return *std::move(p);
}

namespace {

// The tail's activation as instructions.
Reg activate(ProgramBuilder& b, const FusedTail& t, Reg x) {
  switch (t.act) {
    case 1: return b.op(V::relu, x);
    case 2: return b.op(V::clip, x, b.constant(static_cast<float>(t.p)), b.constant(static_cast<float>(t.q)));
    case 3: return b.op(V::leaky, x, static_cast<float>(t.p));
    default: return x;
  }
}

// One addend, times scale, joins the extras; it is added, and the rest of the tail done, by the program.
Status addend_into_program(FusedTail& t, int addend, double scale) {
  ProgramBuilder b;
  Reg x = b.load(0), y = b.load(static_cast<int>(t.extras.size()) + 1);
  if (scale != 1) y = b.op(V::mul, y, static_cast<float>(scale));
  x = activate(b, t, b.op(V::add, x, y));
  std::vector<Reg> results{x};
  if (t.program) {
    std::vector<Reg> in{x};
    for (size_t i = 0; i < t.extras.size(); ++i) in.push_back(b.load(static_cast<int>(i) + 1));
    results = b.append(*t.program, in);
  }
  for (size_t i = 0; i < results.size(); ++i) b.store(static_cast<int>(i), results[i]);
  t.extras.push_back(addend);
  GE_TRY(t.program, b.finish(static_cast<int>(t.extras.size()) + 1, static_cast<int>(results.size())));
  t.act = 0;
  return ok();
}

}  // namespace

Status settle_tail(LowerContext& c, FusedTail& t, bool bias_fits) {
  if (t.bias < 0) return ok();
  bool constant = c.constant_of(t.bias) != nullptr;
  if (bias_fits && (constant || t.bias_scale == 1)) return ok();
  if (t.residual < 0 && t.bias_scale == 1) {
    t.residual = t.bias;
    t.bias = -1;
    return ok();
  }
  GE_RETURN_IF_ERROR(addend_into_program(t, t.bias, t.bias_scale));
  t.bias = -1, t.bias_scale = 1;
  return ok();
}

Status residual_into_program(FusedTail& t) {
  GE_RETURN_IF_ERROR(addend_into_program(t, t.residual, 1));
  t.residual = -1;
  return ok();
}

bool cube_float(DType t) { return t == DType::f32 || t == DType::f16 || t == DType::bf16; }

Tensor constant_f32(const Tensor& t, double scale) {
  if (t.dtype() == DType::f32 && scale == 1) return t;
  Tensor out(DType::f32, t.dims());
  float s = static_cast<float>(scale);
  for (int64_t i = 0; i < t.count(); ++i) out.as<float>()[i] = static_cast<float>(t.at(i)) * s;
  return out;
}

void emit_copy(LowerContext& c, Arg from, DType from_type, Arg to, DType to_type) {
  c.call(from_type == to_type ? "move.copy" : "move.cast", {std::move(from)}, {std::move(to)});
}

Arg input_as_f32(LowerContext& c, int i, Strided& view) {
  view = c.view(i);
  if (c.type(i).dtype == DType::f32) return c.in(i);
  if (auto* t = c.constant_of(i)) {
    view = Strided::dense(c.type(i).dims);
    return c.weight(constant_f32(*t));
  }
  // The temporary keeps the order of the axes that the source has in memory where that is known.
  std::vector<size_t> order(view.dims.size());
  for (size_t a = 0; a < order.size(); ++a) order[a] = a;
  auto& layout = c.graph.value(c.input(i)).layout;
  if (layout.size() == order.size())
    for (size_t a = 0; a < order.size(); ++a) order[a] = static_cast<size_t>(layout[a]);
  std::vector<Dim> physical;
  for (size_t a : order) physical.push_back(view.dims[a]);
  Strided dense = Strided::dense(physical), seen{Dim(0), view.dims, std::vector<Dim>(order.size())};
  for (size_t a = 0; a < order.size(); ++a) seen.strides[order[a]] = dense.strides[a];
  Arg temp = c.temp(DType::f32, physical);
  temp.view = seen;
  emit_copy(c, c.in(i), c.type(i).dtype, temp, DType::f32);
  view = seen;
  return temp;
}

Arg bias_vector(LowerContext& c, const FusedTail& t, const Dim& count) {
  if (t.bias < 0) return {};
  if (auto* constant = c.constant_of(t.bias); constant && count.known()) {
    Tensor b = constant_f32(*constant, t.bias_scale);
    return c.weight(b.reshaped({count.value()}));
  }
  Strided view;
  Arg a = input_as_f32(c, t.bias, view);
  a.view = reshaped_vector(view, count);
  return a;
}

std::vector<std::byte> encode_program(const FusedTail& t) {
  return t.program ? kernels::vector::encode(*t.program) : std::vector<std::byte>{};
}

Strided reshaped_vector(const Strided& v, const Dim& count) {
  Strided out{v.offset, {count}, {Dim(1)}};
  for (size_t a = 0; a < v.dims.size(); ++a)
    if (!v.dims[a].is(1)) out.strides[0] = v.strides[a];
  return out;
}

Strided transposed_last(Strided v) {
  size_t n = v.dims.size();
  std::swap(v.dims[n - 1], v.dims[n - 2]);
  std::swap(v.strides[n - 1], v.strides[n - 2]);
  return v;
}

Strided with_axis(Strided v, size_t at) {
  v.dims.insert(v.dims.begin() + static_cast<ptrdiff_t>(at), Dim(1));
  v.strides.insert(v.strides.begin() + static_cast<ptrdiff_t>(at), Dim(0));
  return v;
}

}  // namespace ge::ops
