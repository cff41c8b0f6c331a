#include "lower/expressions.h"

namespace ge::lower {

using om::ExprOp;

int ExpressionList::add(ExprOp op, int64_t imm, int a, int b, int c) {
  auto [it, fresh] = nodes_.emplace(std::tuple(static_cast<int>(op), imm, a, b, c), static_cast<int>(p_.exprs.size()));
  if (fresh) p_.exprs.push_back(om::Expr(imm, a, b, c, op));
  return it->second;
}

int ExpressionList::symbol(std::string_view name) {
  auto it = symbols_.find(name);
  if (it != symbols_.end()) return it->second;
  int index = static_cast<int>(p_.symbols.size());
  symbols_.emplace(std::string(name), index);
  auto s = std::make_unique<om::SymbolT>();
  s->name = std::string(name);
  p_.symbols.push_back(std::move(s));
  return index;
}

int ExpressionList::atom(const Dim::Atom& a) {
  if (!a.symbol.empty()) return add(ExprOp::symbol, symbol(a.symbol));
  int x[3] = {0, 0, 0};
  for (size_t i = 0; i < a.args.size(); ++i) x[i] = add(a.args[i]);
  switch (a.call) {
    case DimCall::floordiv: return add(ExprOp::floordiv, 0, x[0], x[1]);
    case DimCall::mod: return add(ExprOp::mod, 0, x[0], x[1]);
    case DimCall::max: return add(ExprOp::max, 0, x[0], x[1]);
    case DimCall::min: return add(ExprOp::min, 0, x[0], x[1]);
    case DimCall::broadcast: return add(ExprOp::broadcast, 0, x[0], x[1]);
    case DimCall::less: return add(ExprOp::less, 0, x[0], x[1]);
    case DimCall::equal: return add(ExprOp::equal, 0, x[0], x[1]);
    case DimCall::select: return add(ExprOp::select, 0, x[0], x[1], x[2]);
    case DimCall::scaled: return add(ExprOp::scaled, 0, x[0], x[1]);
    case DimCall::overflow: break;
  }
  // An overflow is spelt as a division by zero: evaluating it is an error.
  int zero = add(ExprOp::constant, 0);
  return add(ExprOp::floordiv, 0, zero, zero);
}

int ExpressionList::add(const Dim& d) {
  if (d.known()) return add(ExprOp::constant, d.value());
  std::string key = d.text();
  auto it = dims_.find(key);
  if (it != dims_.end()) return it->second;
  int sum = -1;
  for (auto& t : d.terms()) {
    int p = t.coefficient == 1 && !t.atoms.empty() ? -1 : add(ExprOp::constant, t.coefficient);
    for (auto& a : t.atoms) {
      int x = atom(*a);
      p = p < 0 ? x : add(ExprOp::mul, 0, p, x);
    }
    sum = sum < 0 ? p : add(ExprOp::add, 0, sum, p);
  }
  dims_.emplace(std::move(key), sum);
  return sum;
}

}  // namespace ge::lower
