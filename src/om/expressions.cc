#include "om/expressions.h"

#include <algorithm>
#include <bit>
#include <map>

#include "base/text.h"
#include "tensor/dim.h"

namespace ge::om {
namespace {

int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

constexpr const char* kDivision = "a division by zero";

// Null on success, else why the operation has no value.
const char* apply(ExprOp op, int64_t a, int64_t b, int64_t c, int64_t& v) {
  switch (op) {
    case ExprOp::add: return __builtin_add_overflow(a, b, &v) ? "a sum overflows" : nullptr;
    case ExprOp::mul: return __builtin_mul_overflow(a, b, &v) ? "a product overflows" : nullptr;
    case ExprOp::floordiv:
      if (b == 0) return kDivision;
      if (b == -1 && a == INT64_MIN) return "a quotient overflows";
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
    case ExprOp::scaled: {
      auto size = scaled_size(a, b);
      v = size.value_or(0);
      return size ? nullptr : "a scaled size overflows";
    }
    default: return "an unknown operation";
  }
}

int operands(ExprOp op) {
  return op == ExprOp::constant || op == ExprOp::symbol ? 0 : op == ExprOp::select ? 3 : 2;
}

// Which expressions stand below expression i, itself among them.
std::vector<bool> below(const ProgramT& p, size_t i) {
  std::vector<bool> in(p.exprs.size());
  in[i] = true;
  for (size_t k = i + 1; k-- > 0;) {
    const Expr& e = p.exprs[k];
    const int32_t operand[3] = {e.a(), e.b(), e.c()};
    for (int j = 0; in[k] && j < operands(e.op()); ++j) in[static_cast<size_t>(operand[j])] = true;
  }
  return in;
}

// The first task that needs expression i; null for none.
const TaskT* user_of(const ProgramT& p, size_t i) {
  std::vector<bool> above(p.exprs.size());
  for (size_t k = i; k < p.exprs.size(); ++k) {
    const Expr& e = p.exprs[k];
    const int32_t operand[3] = {e.a(), e.b(), e.c()};
    above[k] = k == i;
    for (int j = 0; j < operands(e.op()); ++j) above[k] = above[k] || (operand[j] >= 0 && static_cast<size_t>(operand[j]) < k && above[static_cast<size_t>(operand[j])]);
  }
  auto needs = [&](const std::vector<int32_t>& exprs) {
    return std::any_of(exprs.begin(), exprs.end(), [&](int32_t e) { return e >= 0 && static_cast<size_t>(e) < above.size() && above[static_cast<size_t>(e)]; });
  };
  auto view_needs = [&](const std::unique_ptr<ViewT>& v) { return needs(v->dims) || needs(v->strides) || needs({v->offset}); };
  for (auto& task : p.tasks)
    for (auto& call : task->alternatives)
      if (needs(call->ints) || std::any_of(call->ins.begin(), call->ins.end(), view_needs) || std::any_of(call->outs.begin(), call->outs.end(), view_needs))
        return task.get();
  return nullptr;
}

// Sizes and numbers by the names that users know: elements of a tensor that is read are symbols of its reader, the part
// below 0 one of its own.
std::string numbers_text(const ProgramT& p, std::span<const int64_t> symbols, const std::vector<bool>& used) {
  std::map<std::string, int64_t> numbers;
  std::vector<std::string> order;
  for (size_t k = 0; k < symbols.size() && k < p.symbols.size(); ++k) {
    if (symbols[k] == kUnknown || !used[k]) continue;
    int64_t sign = 1;
    const std::string shown = symbol_text(*p.symbols[k], sign);
    if (!numbers.count(shown)) order.push_back(shown);
    if (__builtin_add_overflow(numbers[shown], sign * symbols[k], &numbers[shown])) numbers[shown] = symbols[k];
  }
  std::vector<std::string> parts;
  for (auto& n : order) parts.push_back(format("{}={}", n, numbers[n]));
  return join(parts, ", ");
}

Error failed(const ProgramT& p, size_t i, std::span<const int64_t> symbols, const char* why) {
  std::vector<bool> used(p.symbols.size());
  bool data = false;
  auto in = below(p, i);
  for (size_t k = 0; k <= i; ++k) {
    const Expr& e = p.exprs[k];
    if (!in[k] || e.op() != ExprOp::symbol || e.imm() < 0 || static_cast<size_t>(e.imm()) >= used.size()) continue;
    used[static_cast<size_t>(e.imm())] = true;
    data |= p.symbols[static_cast<size_t>(e.imm())]->task >= 0;
  }
  const std::string numbers = numbers_text(p, symbols, used);
  const TaskT* user = user_of(p, i);
  const std::string at = user ? format("{}: ", op_of(*user)) : "", with = numbers.empty() ? "" : format(" ({})", numbers);
  // What must not be is spelt as a division by zero where a size is computed from data.
  const std::string reason = data && why == kDivision ? "" : format(": {}", why);
  Error e = data ? error(code::kRunFailed, format("{}numbers that it is given while running do not fit the model{}{}.", at, reason, with),
                         "an axis, a size or a position among them is out of range", "check the numbers that the inputs hold")
                 : error(code::kInputMismatch, format("{}these input sizes do not fit the model{}{}.", at, reason, with),
                         "sizes of the inputs contradict each other", "check the inputs' shapes against the model's");
  // A division by zero of numbers alone is how an overflow is spelt.
  if (numbers.empty() && why == kDivision)
    e = error(code::kTooLarge, format("{}what it makes would have more elements than 64 bits count.", at), "", "check the numbers and attributes that its sizes are computed from");
  if (at.empty()) e.message[0] = static_cast<char>(e.message[0] - 'a' + 'A');
  if (user) e.node = user->name;
  return e;
}

}  // namespace

std::string symbol_text(const SymbolT& s, int64_t& sign) {
  sign = 1;
  const size_t at = s.name.rfind(".read.");
  if (at == std::string::npos || s.task < 0 || at + 7 >= s.name.size()) return s.name;
  if (s.name[at + 6] == 'n') sign = -1;
  return format("{}[{}]", s.name.substr(0, at), s.name.substr(at + 7));
}

const std::string& op_of(const TaskT& task) { return task.op.empty() ? task.name : task.op; }

const TaskT* user_of_symbol(const ProgramT& p, size_t k) {
  for (size_t i = 0; i < p.exprs.size(); ++i)
    if (p.exprs[i].op() == ExprOp::symbol && p.exprs[i].imm() == static_cast<int64_t>(k))
      if (auto* task = user_of(p, i)) return task;
  return nullptr;
}

namespace {

std::string text(const ProgramT& p, int32_t i, int depth, bool factor) {
  constexpr int kDeepest = 20;
  if (i < 0 || static_cast<size_t>(i) >= p.exprs.size() || depth > kDeepest) return "?";
  const Expr& e = p.exprs[static_cast<size_t>(i)];
  auto sub = [&](int32_t at, bool inside) { return text(p, at, depth + 1, inside); };
  switch (e.op()) {
    case ExprOp::constant: return format("{}", e.imm());
    case ExprOp::symbol: return e.imm() >= 0 && static_cast<size_t>(e.imm()) < p.symbols.size() ? p.symbols[static_cast<size_t>(e.imm())]->name : "?";
    case ExprOp::add: {
      std::string b = sub(e.b(), false), sum = sub(e.a(), false) + (b.starts_with("-") ? " - " + b.substr(1) : " + " + b);
      return factor ? "(" + sum + ")" : sum;
    }
    case ExprOp::mul: return sub(e.a(), true) + "*" + sub(e.b(), true);
    case ExprOp::scaled: {
      const int32_t b = e.b();
      const int64_t bits = b >= 0 && static_cast<size_t>(b) < p.exprs.size() ? p.exprs[static_cast<size_t>(b)].imm() : 0;
      return format("scaled({}, {:.7g})", sub(e.a(), false), static_cast<double>(std::bit_cast<float>(static_cast<int32_t>(bits))));
    }
    default: {
      std::string s = format("{}({}, {}", EnumNameExprOp(e.op()), sub(e.a(), false), sub(e.b(), false));
      return e.op() == ExprOp::select ? s + ", " + sub(e.c(), false) + ")" : s + ")";
    }
  }
}

}  // namespace

std::string text(const ProgramT& p, int32_t i) { return text(p, i, 0, false); }

std::string text(const ProgramT& p, const PortT& port) {
  std::vector<std::string> dims;
  for (int32_t e : port.dims) dims.push_back(text(p, e));
  return "[" + join(dims, ",") + "]";
}

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
      unknown |= x[k] == kUnknown && p.exprs[static_cast<size_t>(index[k])].op() != ExprOp::constant;
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
      return failed(p, i, symbols, why);
    }
  }
  return ok();
}

}  // namespace ge::om
