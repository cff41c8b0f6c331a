// Elementwise operators in vector programs. Registers of f32, f16 and bf16 values are f32 lanes; those of
// i32, bool and the 8- and 16-bit integers are i32 lanes. Narrow results that may leave their type are
// wrapped, so that a fused chain gives what separate operators would.
#include <cmath>

#include "kernels/vector/program.h"
#include "ops/elementwise.h"

namespace ge::ops {

using kernels::vector::kNoReg;
using kernels::vector::ProgramBuilder;
using kernels::vector::Reg;
using V = kernels::vector::Op;

namespace {

bool float_lane(DType t) { return t == DType::f32 || t == DType::f16 || t == DType::bf16; }
bool int_lane(DType t) {
  return t == DType::i32 || t == DType::boolean || t == DType::i8 || t == DType::u8 || t == DType::i16 ||
         t == DType::u16;
}

// Operators whose f32 accuracy needs more than a few polynomial instructions.
bool float_form(Ew op) {
  switch (op) {
    case Ew::tan: case Ew::asin: case Ew::acos: case Ew::atan: case Ew::sinh: case Ew::cosh: case Ew::asinh:
    case Ew::acosh: case Ew::atanh: return false;
    default: return true;
  }
}

bool int_form(Ew op, DType t) {
  switch (op) {
    case Ew::pow: case Ew::shrink: return false;
    case Ew::bit_shift_right: return !is_signed(t);  // the lanes shift logically
    default: return true;
  }
}

struct Build {
  VectorContext& c;
  ProgramBuilder& b;
  DType t;
  double p0, p1;

  Reg k(double v) { return b.constant(static_cast<float>(v)); }
  Reg i(int32_t v) { return b.constant_i32(v); }

  // Back into the range of a narrow type.
  Reg wrap(Reg x) {
    switch (t) {
      case DType::u8: return b.op(V::iand, x, i(0xff));
      case DType::u16: return b.op(V::iand, x, i(0xffff));
      case DType::i8: return b.op(V::isub, b.op(V::ixor, b.op(V::iand, x, i(0xff)), i(0x80)), i(0x80));
      case DType::i16: return b.op(V::isub, b.op(V::ixor, b.op(V::iand, x, i(0xffff)), i(0x8000)), i(0x8000));
      default: return x;
    }
  }

  Reg unary_float(Ew op, Reg x) {
    switch (op) {
      case Ew::abs: return b.op(V::abs, x);
      case Ew::neg: return b.op(V::neg, x);
      case Ew::sqrt: return b.op(V::sqrt, x);
      case Ew::reciprocal: return b.op(V::reciprocal, x);
      case Ew::exp: return b.op(V::exp, x);
      case Ew::log: return b.op(V::log, x);
      case Ew::erf: return b.op(V::erf, x);
      case Ew::tanh: return b.op(V::tanh, x);
      case Ew::sigmoid: return b.op(V::sigmoid, x);
      case Ew::relu: return b.op(V::relu, x);
      case Ew::leaky_relu: return b.op(V::leaky, x, k(p0));
      case Ew::elu: return b.op(V::elu, x, k(p0));
      case Ew::selu: return b.op(V::mul, b.op(V::elu, x, k(p0)), k(p1));
      case Ew::celu:
        return b.op(V::select, b.op(V::gt, x, k(0)), x,
                    b.op(V::mul, b.op(V::expm1, b.op(V::div, x, k(p0))), k(p0)));
      case Ew::thresholded_relu: return b.op(V::select, b.op(V::gt, x, k(p0)), x, k(0));
      case Ew::softplus: return b.op(V::softplus, x);
      case Ew::softsign: return b.op(V::div, x, b.op(V::add, b.op(V::abs, x), k(1)));
      case Ew::hard_sigmoid: return b.hard_sigmoid(x, static_cast<float>(p0), static_cast<float>(p1));
      case Ew::hard_swish: return b.op(V::mul, x, b.hard_sigmoid(x, 1.0f / 6, 0.5f));
      case Ew::mish: return b.op(V::mish, x);
      case Ew::gelu: return b.op(V::gelu, x);
      case Ew::gelu_tanh: return b.op(V::gelu_tanh, x);
      case Ew::swish:
        if (p0 == 1) return b.op(V::silu, x);
        return b.op(V::mul, x, b.op(V::sigmoid, b.op(V::mul, x, k(p0))));
      case Ew::floor: return b.op(V::floor, x);
      case Ew::ceil: return b.op(V::ceil, x);
      case Ew::round: return b.op(V::round, x);
      case Ew::sign: return b.op(V::sign, x);
      case Ew::sin: return b.op(V::sin, x);
      case Ew::cos: return b.op(V::cos, x);
      case Ew::is_nan: return b.op(V::is_nan, x);
      case Ew::is_inf:
        if (p0 != 0 && p1 != 0) return b.op(V::is_inf, x);
        if (p0 == 0 && p1 == 0) return i(0);
        return b.op(p0 != 0 ? V::is_neg_inf : V::is_pos_inf, x);
      case Ew::shrink:
        return b.op(V::select, b.op(V::lt, x, k(-p1)), b.op(V::add, x, k(p0)),
                    b.op(V::select, b.op(V::gt, x, k(p1)), b.op(V::sub, x, k(p0)), k(0)));
      case Ew::square: return b.op(V::square, x);
      default: return kNoReg;
    }
  }

  Reg unary_int(Ew op, Reg x) {
    switch (op) {
      case Ew::abs: return wrap(b.op(V::iabs, x));
      case Ew::neg: return wrap(b.op(V::ineg, x));
      case Ew::relu: return b.op(V::imax, x, i(0));
      case Ew::sign: return b.op(V::isign, x);
      case Ew::logical_not: return b.op(V::lnot, x);
      case Ew::bitwise_not: return wrap(b.op(V::inot, x));
      case Ew::square: return wrap(b.op(V::imul, x, x));
      default: return kNoReg;
    }
  }

  Reg float_pow(Reg x) {
    const Tensor* e = c.graph.value(c.node.inputs[1]).constant.get();
    if (e && e->count() == 1) return b.pow_constant(x, static_cast<float>(e->at(0)));
    bool integer = int_lane(c.graph.value(c.node.inputs[1]).type.dtype);
    return b.op(V::pow, x, integer ? b.op(V::to_f32, c.in[1]) : c.in[1]);
  }

  Reg binary_float(Ew op, Reg x, Reg y) {
    switch (op) {
      case Ew::add: case Ew::sum: case Ew::mean: return b.op(V::add, x, y);
      case Ew::sub: return b.op(V::sub, x, y);
      case Ew::mul: return b.op(V::mul, x, y);
      case Ew::div: return b.op(V::div, x, y);
      case Ew::pow: return float_pow(x);
      case Ew::fmod: return b.op(V::fmod, x, y);
      case Ew::mod: {
        Reg r = b.op(V::fmod, x, y);
        Reg other = b.op(V::lt, b.op(V::mul, b.op(V::sign, r), b.op(V::sign, y)), k(0));
        return b.op(V::select, other, b.op(V::add, r, y), r);
      }
      case Ew::prelu: return b.op(V::leaky, x, y);
      case Ew::equal: return b.op(V::eq, x, y);
      case Ew::less: return b.op(V::lt, x, y);
      case Ew::less_or_equal: return b.op(V::le, x, y);
      case Ew::greater: return b.op(V::gt, x, y);
      case Ew::greater_or_equal: return b.op(V::ge, x, y);
      case Ew::max: return b.op(V::max, x, y);
      case Ew::min: return b.op(V::min, x, y);
      default: return kNoReg;
    }
  }

  Reg binary_int(Ew op, Reg x, Reg y) {
    switch (op) {
      case Ew::add: return wrap(b.op(V::iadd, x, y));
      case Ew::sub: return wrap(b.op(V::isub, x, y));
      case Ew::mul: return wrap(b.op(V::imul, x, y));
      case Ew::div: return wrap(b.op(V::idiv, x, y));
      case Ew::mod: return b.op(V::imod, x, y);
      case Ew::fmod: return b.op(V::irem, x, y);
      case Ew::prelu: return wrap(b.op(V::select, b.op(V::ilt, x, i(0)), b.op(V::imul, x, y), x));
      case Ew::bit_shift_left: return wrap(b.op(V::ishl, x, y));
      case Ew::bit_shift_right: return b.op(V::ishr, x, y);
      case Ew::bitwise_and: case Ew::logical_and: return b.op(V::iand, x, y);
      case Ew::bitwise_or: case Ew::logical_or: return b.op(V::ior, x, y);
      case Ew::bitwise_xor: case Ew::logical_xor: return b.op(V::ixor, x, y);
      case Ew::equal: return b.op(V::ieq, x, y);
      case Ew::less: return b.op(V::ilt, x, y);
      case Ew::less_or_equal: return b.op(V::ile, x, y);
      case Ew::greater: return b.op(V::igt, x, y);
      case Ew::greater_or_equal: return b.op(V::ige, x, y);
      case Ew::max: return b.op(V::imax, x, y);
      case Ew::min: return b.op(V::imin, x, y);
      default: return kNoReg;
    }
  }

  Reg clip(Reg x) {
    bool floats = float_lane(t);
    if (c.in.size() > 1 && c.in[1] != kNoReg) x = b.op(floats ? V::max : V::imax, x, c.in[1]);
    if (c.in.size() > 2 && c.in[2] != kNoReg) x = b.op(floats ? V::min : V::imin, x, c.in[2]);
    return x;
  }
};

}  // namespace

bool has_vector_form(const Graph& g, const Node& n) {
  Ew op = elementwise_code(n);
  auto dtype = [&](size_t i) { return g.value(n.inputs[i]).type.dtype; };
  DType t = dtype(0);
  if (!float_lane(t) && !int_lane(t)) return false;
  if (float_lane(t) ? !float_form(op) : !int_form(op, t)) return false;
  for (size_t i = 1; i < n.inputs.size(); ++i) {
    if (!n.inputs[i]) continue;
    bool exponent = op == Ew::pow && (int_lane(dtype(i)) || float_lane(dtype(i)));
    if (!exponent && float_lane(dtype(i)) != float_lane(t)) return false;
    if (!float_lane(dtype(i)) && !int_lane(dtype(i))) return false;
  }
  return true;
}

bool elementwise_vector(VectorContext& c) {
  if (!has_vector_form(c.graph, c.node)) return false;
  auto& e = elementwise_entry(c.node.op);
  Ew op = elementwise_code(c.node);
  Build build{c, c.builder, c.graph.value(c.node.inputs[0]).type.dtype, elementwise_param(c.node, e.p0),
              elementwise_param(c.node, e.p1)};
  bool floats = float_lane(build.t);
  Reg x = c.in[0];
  if (op == Ew::clip) {
    x = build.clip(x);
  } else if (kernels::reference::is_unary(op)) {
    x = floats ? build.unary_float(op, x) : build.unary_int(op, x);
  } else {
    for (size_t k = 1; k < c.in.size(); ++k)
      x = floats ? build.binary_float(op, x, c.in[k]) : build.binary_int(op, x, c.in[k]);
    if (op == Ew::mean) x = c.builder.op(V::div, x, static_cast<float>(c.in.size()));
  }
  if (x == kNoReg) return false;
  c.out.assign(1, x);
  return true;
}

}  // namespace ge::ops
