#include "om/expressions.h"

#include <algorithm>

#include "base/text.h"

namespace ge::om {
namespace {

int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

// Null on success, else why the operation has no value.
const char* apply(ExprOp op, int64_t a, int64_t b, int64_t c, int64_t& v) {
  switch (op) {
    case ExprOp::add: return __builtin_add_overflow(a, b, &v) ? "a sum overflows" : nullptr;
    case ExprOp::mul: return __builtin_mul_overflow(a, b, &v) ? "a product overflows" : nullptr;
    case ExprOp::floordiv:
      if (b == 0 || (b == -1 && a == INT64_MIN)) return "a division by zero";
      v = floor_div(a, b);
      return nullptr;
    case ExprOp::mod: {
      if (b <= 0) return "a remainder of a number that is not positive";
      v = a % b;
      if (v < 0) v += b;
      return nullptr;
    }
    case ExprOp::max: v = std::max(a, b); return nullptr;
    case ExprOp::min: v = std::min(a, b); return nullptr;
    case ExprOp::broadcast:
      if (a != b && a != 1 && b != 1) return "sizes that do not broadcast";
      v = a == 1 ? b : a;
      return nullptr;
    case ExprOp::less: v = a < b; return nullptr;
    case ExprOp::equal: v = a == b; return nullptr;
    case ExprOp::select: v = a ? b : c; return nullptr;
    default: return "an unknown operation";
  }
}

int operands(ExprOp op) {
  return op == ExprOp::constant || op == ExprOp::symbol ? 0 : op == ExprOp::select ? 3 : 2;
}

}  // namespace

Status evaluate(const ProgramT& p, std::span<const int64_t> symbols, std::vector<int64_t>& values) {
  values.resize(p.exprs.size());
  for (size_t i = 0; i < p.exprs.size(); ++i) {
    const Expr& e = p.exprs[i];
    int index[3] = {e.a(), e.b(), e.c()};
    int64_t x[3] = {0, 0, 0};
    bool unknown = false;
    for (int k = 0; k < operands(e.op()); ++k) {
      if (index[k] < 0 || static_cast<size_t>(index[k]) >= i)
        return error(code::kParse, format("Size expression {} reads a later one.", i), "the file is damaged");
      x[k] = values[static_cast<size_t>(index[k])];
      unknown |= x[k] == kUnknown;
    }
    if (e.op() == ExprOp::constant) {
      values[i] = e.imm();
    } else if (e.op() == ExprOp::symbol) {
      if (e.imm() < 0 || static_cast<size_t>(e.imm()) >= symbols.size())
        return error(code::kParse, format("Size expression {} names no symbol.", i), "the file is damaged");
      values[i] = symbols[static_cast<size_t>(e.imm())];
    } else if (unknown) {
      values[i] = kUnknown;
    } else if (const char* why = apply(e.op(), x[0], x[1], x[2], values[i])) {
      std::vector<std::string> sizes;
      for (size_t k = 0; k < symbols.size() && k < p.symbols.size(); ++k)
        if (symbols[k] != kUnknown) sizes.push_back(format("{}={}", p.symbols[k]->name, symbols[k]));
      return error(code::kInputMismatch, format("These input sizes do not fit the model: {} ({}).", why, join(sizes, ", ")),
                   "sizes of the inputs contradict each other", "check the inputs' shapes against the model's");
    }
  }
  return ok();
}

}  // namespace ge::om
