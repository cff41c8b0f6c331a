// Cast, CastLike.
#include "base/text.h"
#include "kernels/vector/program.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

bool plain_number(DType t) { return is_integer(t) || is_float(t) || t == DType::boolean; }

// What text can be written for.
bool wide_number(DType t) { return plain_number(t) && bits(t) >= 8 && (is_integer(t) || t == DType::boolean || bits(t) >= 16); }

DType target(const Graph& g, const Node& n) {
  if (n.op == "CastLike") return g.value(n.inputs[1]).type.dtype;
  int64_t to = attr_int(n, "to", 0);
  return to > 0 && to < kDTypeCount ? static_cast<DType>(to) : DType::none;
}

// The value after the cast, when the cast keeps it or it is known what becomes of it.
std::optional<Dim> cast_element(const Dim& e, DType to) {
  if (to == DType::i64) return e;
  if (to == DType::boolean) return Dim(1) - equal(e, Dim(0));
  if (!is_integer(to)) return std::nullopt;
  if (!e.known()) return bits(to) >= 32 ? std::optional(e) : std::nullopt;
  int b = bits(to);
  if (b == 64) return e.value() >= 0 ? std::optional(e) : std::nullopt;
  int64_t low = is_signed(to) ? -(int64_t{1} << (b - 1)) : 0, high = low + ((int64_t{1} << b) - 1);
  return e.value() >= low && e.value() <= high ? std::optional(e) : std::nullopt;
}

Result<int64_t> round_mode(const InferContext& c) {
  std::string r = attr_string(c.node, "round_mode", "up");
  if (r == "up") return 0;
  if (r == "down") return 1;
  if (r == "nearest") return 2;
  return c.fail(format("round_mode is '{}', not 'up', 'down' or 'nearest'", r));
}

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, c.node.op == "Cast" ? 1 : 2));
  DType to = target(c.graph, c.node), from = c.dtype(0);
  if (to == DType::none) return c.fail(format("attribute to = {} is no type", attr_int(c.node, "to", 0)));
  bool text = (to == DType::string || from == DType::string) && (to == from || wide_number(to == DType::string ? from : to));
  if (to != from && !text && (!plain_number(to) || !plain_number(from)))
    return c.fail(format("{} cannot be converted to {}", name(from), name(to)));
  GE_TRY(int64_t round, round_mode(c));
  (void)round;
  c.out[0] = c.type(0);
  c.out[0].dtype = to;
  if (auto e = c.elements(0)) {
    std::vector<Dim> out;
    for (auto& x : *e) {
      auto y = cast_element(x, to);
      if (!y) return ok();
      out.push_back(*y);
    }
    c.set_elements(0, std::move(out));
  }
  return ok();
}

Status emit(LowerContext& c, const char* kernel) {
  std::string r = attr_string(c.node, "round_mode", "up");
  c.call(kernel, {c.in(0)}, {c.out()}, {attr_int(c.node, "saturate", 1), r == "down" ? 1 : r == "nearest" ? 2 : 0});
  return ok();
}
// An executor task makes it, which writes dense memory; the output may lie inside another one.
Status emit_text(LowerContext& c) {
  Arg made = c.temp(c.out_type().dtype, c.out_type().dims);
  c.call("text.cast", {c.in(0)}, {made});
  c.call("move.copy", {made}, {c.out()});
  return ok();
}
Status lower(LowerContext& c) {
  bool text = (c.type(0).dtype == DType::string) != (c.out_type().dtype == DType::string);
  return text ? emit_text(c) : emit(c, "move.cast");
}
Status reference(LowerContext& c) {
  bool strings = c.type(0).dtype == DType::string || c.out_type().dtype == DType::string;
  return strings ? lower(c) : emit(c, "ref.Cast");
}

std::optional<Strided> view(const Graph& g, const Node& n, int, const Strided& in) {
  if (g.value(n.inputs[0]).type.dtype != target(g, n)) return std::nullopt;
  return in;
}

// Inside a fused region. Lanes hold 32 bits: floats as f32, integers up to 32 bits and bool as i32.
bool vector(VectorContext& c) {
  using kernels::vector::Op;
  DType from = c.graph.value(c.node.inputs[0]).type.dtype, to = target(c.graph, c.node);
  auto float_lane = [](DType t) { return t == DType::f32 || t == DType::f16 || t == DType::bf16; };
  auto int_lane = [](DType t) { return t == DType::i32 || t == DType::boolean; };
  auto narrow = [](DType t) { return t == DType::u8 || t == DType::i8 || t == DType::u16 || t == DType::i16; };
  uint16_t r = c.in[0];
  if (float_lane(from) && to == DType::f32) c.out[0] = r;
  else if (float_lane(from) && to == DType::i32) c.out[0] = c.builder.op(Op::to_i32, r);
  else if (float_lane(from) && to == DType::boolean) c.out[0] = c.builder.op(Op::ne, r, 0.0f);
  else if ((int_lane(from) || narrow(from)) && to == DType::f32) c.out[0] = c.builder.op(Op::to_f32, r);
  else if (narrow(from) && to == DType::i32) c.out[0] = r;
  else if (from == DType::boolean && to == DType::i32) c.out[0] = c.builder.op(Op::to_bool, r);
  else if (from == DType::i32 && to == DType::boolean) c.out[0] = c.builder.op(Op::to_bool, r);
  else return false;
  return true;
}

OpDef def(const char* op, int inputs, int since) {
  OpDef d;
  d.name = op;
  d.min_inputs = d.max_inputs = inputs;
  d.since = since;
  d.types = types::all - types::complex;
  d.attrs = {{"saturate", "float8 targets: out of range becomes the largest value (1) or infinity/NaN (0)."},
             {"round_mode", "f8e8m0 targets: up, down or nearest."}};
  if (inputs == 1) d.attrs.push_back({"to", "The type, as in TensorProto."});
  d.doc = "Converts elements. A float out of an integer's range, or NaN, becomes the smallest i32 or i64, of "
          "which narrower types take the low bits.";
  d.infer = infer;
  d.reference = reference;
  d.lower = lower;
  d.vector_kind = VectorKind::elementwise;
  d.vector = vector;
  d.view = view;
  d.layout = layout_of_input;
  return d;
}

const Register cast(def("Cast", 1, 1));
const Register cast_like(def("CastLike", 2, 15));

}  // namespace
}  // namespace ge::ops
