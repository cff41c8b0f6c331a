// Elementwise operators with numpy broadcasting: unary, binary, comparisons, logic, bits, Max, Min, Sum,
// Mean, Clip, PRelu. One table; lowering goes to vector programs, else to typed loops, else to the
// reference.
#include "ops/elementwise.h"

#include "base/text.h"

namespace ge::ops {
namespace {

constexpr double f(float v) { return v; }

const EwEntry kTable[] = {
    {"Abs", Ew::abs},
    {"Neg", Ew::neg},
    {"Sqrt", Ew::sqrt},
    {"Reciprocal", Ew::reciprocal},
    {"Exp", Ew::exp},
    {"Log", Ew::log},
    {"Erf", Ew::erf, 9},
    {"Tanh", Ew::tanh},
    {"Sigmoid", Ew::sigmoid},
    {"Relu", Ew::relu},
    {"LeakyRelu", Ew::leaky_relu, 1, {"alpha", f(0.01f)}},
    {"Elu", Ew::elu, 1, {"alpha", 1}},
    {"Selu", Ew::selu, 1, {"alpha", f(1.67326319217681884765625f)}, {"gamma", f(1.05070102214813232421875f)}},
    {"Celu", Ew::celu, 12, {"alpha", 1}},
    {"ThresholdedRelu", Ew::thresholded_relu, 10, {"alpha", 1}},
    {"Softplus", Ew::softplus},
    {"Softsign", Ew::softsign},
    {"HardSigmoid", Ew::hard_sigmoid, 1, {"alpha", f(0.2f)}, {"beta", 0.5}},
    {"HardSwish", Ew::hard_swish, 14},
    {"Mish", Ew::mish, 18},
    {"Gelu", Ew::gelu, 20},
    {"Swish", Ew::swish, 24, {"alpha", 1}},
    {"Floor", Ew::floor},
    {"Ceil", Ew::ceil},
    {"Round", Ew::round, 11},
    {"Sign", Ew::sign, 9},
    {"Sin", Ew::sin, 7},
    {"Cos", Ew::cos, 7},
    {"Tan", Ew::tan, 7},
    {"Asin", Ew::asin, 7},
    {"Acos", Ew::acos, 7},
    {"Atan", Ew::atan, 7},
    {"Sinh", Ew::sinh, 9},
    {"Cosh", Ew::cosh, 9},
    {"Asinh", Ew::asinh, 9},
    {"Acosh", Ew::acosh, 9},
    {"Atanh", Ew::atanh, 9},
    {"Not", Ew::logical_not},
    {"IsNaN", Ew::is_nan, 9},
    {"IsInf", Ew::is_inf, 10, {"detect_negative", 1}, {"detect_positive", 1}},
    {"BitwiseNot", Ew::bitwise_not, 18},
    {"Shrink", Ew::shrink, 9, {"bias", 0}, {"lambd", 0.5}},
    {"Add", Ew::add, 7},
    {"Sub", Ew::sub, 7},
    {"Mul", Ew::mul, 7},
    {"Div", Ew::div, 7},
    {"Pow", Ew::pow, 7},
    {"Mod", Ew::mod, 10},
    {"PRelu", Ew::prelu, 7},
    {"BitShift", Ew::bit_shift_right, 11},
    {"BitwiseAnd", Ew::bitwise_and, 18},
    {"BitwiseOr", Ew::bitwise_or, 18},
    {"BitwiseXor", Ew::bitwise_xor, 18},
    {"And", Ew::logical_and, 7},
    {"Or", Ew::logical_or, 7},
    {"Xor", Ew::logical_xor, 7},
    {"Equal", Ew::equal, 7},
    {"Less", Ew::less, 7},
    {"LessOrEqual", Ew::less_or_equal, 12},
    {"Greater", Ew::greater, 7},
    {"GreaterOrEqual", Ew::greater_or_equal, 12},
    {"Max", Ew::max, 6},
    {"Min", Ew::min, 6},
    {"Sum", Ew::sum, 6},
    {"Mean", Ew::mean, 6},
    {"Clip", Ew::clip, 6},
};

}  // namespace

const EwEntry& elementwise_entry(std::string_view op) {
  for (auto& e : kTable)
    if (op == e.name) return e;
  GE_CHECK(false, "not an elementwise operator: " + std::string(op));
  return kTable[0];
}

Ew elementwise_code(const Node& n) {
  Ew code = elementwise_entry(n.op).code;
  if (code == Ew::gelu && attr_string(n, "approximate", "none") == "tanh") return Ew::gelu_tanh;
  if (code == Ew::mod && attr_int(n, "fmod", 0) == 1) return Ew::fmod;
  if (code == Ew::bit_shift_right && attr_string(n, "direction", "RIGHT") == "LEFT") return Ew::bit_shift_left;
  return code;
}

double elementwise_param(const Node& n, const EwParam& p) {
  if (!p.attr) return p.otherwise;
  bool flag = std::string_view(p.attr).starts_with("detect_");   // of IsInf
  return flag ? static_cast<double>(attr_int(n, p.attr, static_cast<int64_t>(p.otherwise))) : attr_float(n, p.attr, p.otherwise);
}

Status infer_broadcast(InferContext& c, DType out) {
  std::vector<Dim> dims;
  bool ranked = true;
  for (int i = 0; i < c.inputs(); ++i) {
    if (!c.has(i)) continue;
    if (!c.ranked(i)) {
      ranked = false;
      continue;
    }
    GE_TRY(dims, broadcast_dims(c, dims, c.dims(i)));
  }
  if (ranked) c.set(0, out, std::move(dims));
  else c.set_unranked(0, out);
  return ok();
}

std::vector<int> inherit_layout(const Graph& g, const Node& n) {
  auto& out = g.value(n.outputs[0]).type;
  if (!out.ranked) return {};
  const ir::Value* best = nullptr;
  auto full = [&](const ir::Value& v) { return v.type.dims == out.dims; };
  for (ValueId id : n.inputs) {
    if (!id) continue;
    auto& v = g.value(id);
    if (!v.type.ranked || v.type.rank() != out.rank() || v.constant) continue;
    bool better = !best || (full(v) && !full(*best)) || (full(v) == full(*best) && best->layout.empty());
    if (better) best = &v;
  }
  return best ? best->layout : std::vector<int>{};
}

namespace {

Status check_attributes(InferContext& c, Ew code) {
  auto one_of = [&](const char* attr, const char* otherwise, const char* a, const char* b) -> Status {
    std::string v = attr_string(c.node, attr, otherwise);
    if (v == a || v == b) return ok();
    return c.fail(format("attribute {} is '{}', not '{}' or '{}'", attr, v, a, b));
  };
  if (code == Ew::gelu || code == Ew::gelu_tanh) return one_of("approximate", "none", "none", "tanh");
  if (code == Ew::bit_shift_left || code == Ew::bit_shift_right) return one_of("direction", "", "LEFT", "RIGHT");
  return ok();
}

// What the kernel takes; texts are compared as the numbers that stand for them, floats of 8 bits tested as f32.
Types taken(Ew code) {
  Types out{};
  for (int i = 1; i < kDTypeCount; ++i)
    if (auto t = static_cast<DType>(i); kernels::reference::takes(code, t)) out = out | Types{t};
  if (code == Ew::equal) return out | types::text;
  return code == Ew::is_nan || code == Ew::is_inf ? out | types::float8 : out;
}

Status infer(InferContext& c) {
  Ew code = elementwise_code(c.node);
  const Types types = find(c.node.op)->types;
  GE_RETURN_IF_ERROR(check_attributes(c, code));
  DType t = c.dtype(0);
  for (int i = 0; i < c.inputs(); ++i) {
    if (!c.has(i)) {
      if (code == Ew::clip && i) continue;
      return c.fail(format("input {} is missing", i));
    }
    if (!types.has(c.dtype(i))) return c.fail(format("{} is not a type of input {}", name(c.dtype(i)), i), format("It takes {}: convert the input with a Cast.", text(types)));
    // A bound that was an attribute once is f32 whatever x is.
    if (code != Ew::pow && code != Ew::clip && c.dtype(i) != t)
      return c.fail(format("input {} is {}, input 0 is {}", i, name(c.dtype(i)), name(t)), "All its inputs need one type: convert one of them with a Cast.");
  }
  DType out = kernels::reference::gives_bool(code) ? DType::boolean : t;
  GE_RETURN_IF_ERROR(infer_broadcast(c, out));
  if (code == Ew::prelu && c.ranked(0) && c.out[0].rank() != c.rank(0))
    return c.fail(format("the slope {} does not broadcast to {}", text(c.dims(1)), text(c.dims(0))));
  infer_elementwise_elements(c, code);
  return ok();
}

// min and max were attributes.
Status upgrade(UpgradeContext& c) {
  if (c.node().op == "Clip" && c.version < 11) {
    c.attr_to_input("min", 1);
    c.attr_to_input("max", 2);
  }
  c.node().attrs.erase("consumed_inputs");
  return ok();
}

void emit(LowerContext& c, const char* kernel) {
  auto& e = elementwise_entry(c.node.op);
  std::vector<Arg> in;
  for (int i = 0; i < c.inputs(); ++i) {
    in.push_back(c.in(i));
    if (!c.has(i)) continue;
    if (c.type(i).dtype == DType::string) in.back().as = DType::u32;
    if (!types::float8.has(c.type(i).dtype)) continue;
    Arg wide = c.temp(DType::f32, c.type(i).dims);
    c.call("move.cast", {in.back()}, {wide}, {1, 0});
    in.back() = wide;
  }
  while (!in.empty() && in.back().kind == Arg::Kind::none) in.pop_back();
  c.call(kernel, std::move(in), {c.out()}, {static_cast<int64_t>(elementwise_code(c.node))},
         {elementwise_param(c.node, e.p0), elementwise_param(c.node, e.p1)});
}

Status reference(LowerContext& c) {
  emit(c, "ref.elementwise");
  return ok();
}

Status lower(LowerContext& c) {
  if (has_vector_form(c.graph, c.node)) return ok();
  Ew code = elementwise_code(c.node);
  for (int i = 0; i < c.inputs(); ++i) {
    if (!c.has(i)) continue;
    if (c.type(i).dtype != c.type(0).dtype) return ok();
    if (code == Ew::clip && i && !(product(c.type(i).dims) == Dim(1))) return ok();
  }
  emit(c, "elementwise.typed");
  return ok();
}

OpDef define(const EwEntry& e) {
  OpDef d;
  d.name = e.name;
  d.since = e.since;
  bool many = kernels::reference::is_variadic(e.code);
  d.min_inputs = kernels::reference::is_binary(e.code) ? 2 : 1;
  d.max_inputs = e.code == Ew::clip ? 3 : many ? -1 : d.min_inputs;
  for (auto& p : {e.p0, e.p1})
    if (p.attr) d.attrs.push_back({p.attr, format("a number, {} if absent", p.otherwise)});
  if (e.code == Ew::gelu) d.attrs.push_back({"approximate", "none or tanh"});
  if (e.code == Ew::mod) d.attrs.push_back({"fmod", "1: the remainder has the sign of the dividend"});
  if (e.code == Ew::bit_shift_right) d.attrs.push_back({"direction", "LEFT or RIGHT"});
  d.types = taken(e.code);
  d.doc = many ? "Elementwise over any number of inputs, with broadcasting" : "Elementwise, with broadcasting";
  d.infer = infer;
  d.upgrade = upgrade;
  d.reference = reference;
  d.lower = lower;
  d.vector_kind = VectorKind::elementwise;
  d.vector = elementwise_vector;
  d.layout = inherit_layout;
  return d;
}

[[maybe_unused]] const bool registered = [] {
  for (auto& e : kTable) Register r(define(e));
  return true;
}();

}  // namespace
}  // namespace ge::ops
