// The table of vector program operators: name, result lane and operand lanes. One row an operator.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/vector/program.h"

namespace ge::kernels::vector {

// sig is "result operands" in letters: f, i (also for bools), x (f or i, the same everywhere), - (none).
struct OpInfo {
  Op op;
  std::string_view name, sig;
  float cycles;  // for 16 lanes, a rough static cost
};

inline constexpr OpInfo kOps[] = {
    {Op::load, "load", "f", 1}, {Op::load_i32, "load_i32", "i", 1}, {Op::store, "store", "-x", 1},
    {Op::constant, "const", "f", 0}, {Op::constant_i32, "const_i32", "i", 0},
    {Op::neg, "neg", "ff", 1}, {Op::abs, "abs", "ff", 1}, {Op::sqrt, "sqrt", "ff", 18},
    {Op::rsqrt, "rsqrt", "ff", 32}, {Op::reciprocal, "reciprocal", "ff", 14}, {Op::exp, "exp", "ff", 9},
    {Op::log, "log", "ff", 14}, {Op::erf, "erf", "ff", 16}, {Op::tanh, "tanh", "ff", 20},
    {Op::sigmoid, "sigmoid", "ff", 20}, {Op::sin, "sin", "ff", 18}, {Op::cos, "cos", "ff", 18},
    {Op::floor, "floor", "ff", 1}, {Op::ceil, "ceil", "ff", 1}, {Op::round, "round", "ff", 1},
    {Op::trunc, "trunc", "ff", 1}, {Op::sign, "sign", "ff", 2}, {Op::relu, "relu", "ff", 1},
    {Op::softplus, "softplus", "ff", 28}, {Op::silu, "silu", "ff", 21}, {Op::gelu, "gelu", "ff", 19},
    {Op::gelu_tanh, "gelu_tanh", "ff", 24}, {Op::mish, "mish", "ff", 24}, {Op::expm1, "expm1", "ff", 11},
    {Op::square, "square", "ff", 1},
    {Op::add, "add", "fff", 1}, {Op::sub, "sub", "fff", 1}, {Op::mul, "mul", "fff", 1},
    {Op::div, "div", "fff", 14}, {Op::min, "min", "fff", 2}, {Op::max, "max", "fff", 2},
    {Op::pow, "pow", "fff", 80}, {Op::fmod, "fmod", "fff", 200}, {Op::leaky, "leaky", "fff", 2},
    {Op::elu, "elu", "fff", 14},
    {Op::fma, "fma", "ffff", 1}, {Op::clip, "clip", "ffff", 3},
    {Op::lt, "lt", "iff", 2}, {Op::le, "le", "iff", 2}, {Op::eq, "eq", "iff", 2}, {Op::ne, "ne", "iff", 2},
    {Op::gt, "gt", "iff", 2}, {Op::ge, "ge", "iff", 2},
    {Op::is_nan, "is_nan", "if", 2}, {Op::is_inf, "is_inf", "if", 2}, {Op::is_pos_inf, "is_pos_inf", "if", 2},
    {Op::is_neg_inf, "is_neg_inf", "if", 2},
    {Op::to_i32, "to_i32", "if", 1}, {Op::to_f32, "to_f32", "fi", 1},
    {Op::ineg, "ineg", "ii", 1}, {Op::iabs, "iabs", "ii", 1}, {Op::isign, "isign", "ii", 2},
    {Op::inot, "inot", "ii", 1}, {Op::lnot, "lnot", "ii", 2}, {Op::to_bool, "to_bool", "ii", 2},
    {Op::iadd, "iadd", "iii", 1}, {Op::isub, "isub", "iii", 1}, {Op::imul, "imul", "iii", 2},
    {Op::idiv, "idiv", "iii", 40}, {Op::imod, "imod", "iii", 44}, {Op::irem, "irem", "iii", 44},
    {Op::imin, "imin", "iii", 1}, {Op::imax, "imax", "iii", 1}, {Op::iand, "iand", "iii", 1},
    {Op::ior, "ior", "iii", 1}, {Op::ixor, "ixor", "iii", 1}, {Op::ishl, "ishl", "iii", 1},
    {Op::ishr, "ishr", "iii", 1},
    {Op::ilt, "ilt", "iii", 2}, {Op::ile, "ile", "iii", 2}, {Op::ieq, "ieq", "iii", 2},
    {Op::ine, "ine", "iii", 2}, {Op::igt, "igt", "iii", 2}, {Op::ige, "ige", "iii", 2},
    {Op::select, "select", "xixx", 2},
    {Op::row_sum, "row_sum", "ff", 2}, {Op::row_mean, "row_mean", "ff", 2}, {Op::row_max, "row_max", "ff", 2},
    {Op::row_min, "row_min", "ff", 2}, {Op::row_prod, "row_prod", "ff", 2},
    {Op::row_isum, "row_isum", "ii", 2}, {Op::row_imax, "row_imax", "ii", 2}, {Op::row_imin, "row_imin", "ii", 2},
};

namespace detail {
inline constexpr std::array<int16_t, 256> kOpIndex = [] {
  std::array<int16_t, 256> t{};
  for (auto& e : t) e = -1;
  int16_t i = 0;
  for (const OpInfo& o : kOps) t[static_cast<uint8_t>(o.op)] = i++;
  return t;
}();
}  // namespace detail

// Null for a value that is no operator.
constexpr const OpInfo* op_info(Op op) {
  int16_t i = detail::kOpIndex[static_cast<uint8_t>(op)];
  return i < 0 ? nullptr : &kOps[i];
}

}  // namespace ge::kernels::vector
