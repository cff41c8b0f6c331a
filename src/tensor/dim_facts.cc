#include "tensor/dim_facts.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace ge {
namespace {

constexpr int kMaxDepth = 8;             // rules that follow from rules
// Real models have a dozen. Beyond, sizes stay as they are, which is right all the same, and compiling stays linear.
constexpr size_t kMostDemands = 128, kMostRules = 64;

using Atom = Dim::Atom;

Dim dim_of(const Atom& a) { return a.symbol.empty() ? Dim::call(a.call, a.args) : Dim::symbol(a.symbol); }

Dim dim_of(const Dim::Term& t) {
  Dim d(t.coefficient);
  for (auto& a : t.atoms) d = d * dim_of(*a);
  return d;
}

// Does the symbol or call stand in d, at any depth?
bool holds(const Dim& d, const std::string& key) {
  for (auto& t : d.terms())
    for (auto& a : t.atoms) {
      if (a->key == key) return true;
      for (auto& arg : a->args)
        if (holds(arg, key)) return true;
    }
  return false;
}

// Divided by what all coefficients have in common.
Dim primitive(const Dim& d) {
  int64_t common = 0;
  for (auto& t : d.terms()) {
    if (t.coefficient == INT64_MIN) return d;
    common = std::gcd(common, t.coefficient);
  }
  if (common <= 1) return d;
  Dim out;
  for (auto t : d.terms()) {
    t.coefficient /= common;
    out = out + dim_of(t);
  }
  return out;
}

}  // namespace

bool DimFacts::is_base(const std::string& key) const {
  return std::any_of(multiples_.begin(), multiples_.end(), [&](auto& m) { return m.second.key == key; });
}

// Calls by what they are, symbols that are multiples written out.
Dim DimFacts::replaced(const Dim& d, bool multiples) const {
  if (d.known()) return d;
  Dim sum;
  for (auto& t : d.terms()) {
    Dim p(t.coefficient);
    for (auto& a : t.atoms) {
      if (!a->symbol.empty()) {
        auto it = multiples_.find(a->symbol);
        p = p * (multiples && it != multiples_.end() ? Dim(it->second.times) * it->second.call + it->second.rest : dim_of(*a));
      } else if (auto it = calls_.find(a->key); it != calls_.end()) {
        p = p * it->second.second;
      } else if (is_base(a->key)) {
        p = p * dim_of(*a);
      } else {
        std::vector<Dim> args;
        for (auto& x : a->args) args.push_back(replaced(x, multiples));
        Dim made = Dim::call(a->call, std::move(args));
        // What it became may be a call that is known.
        p = p * (made.text() == a->key || made.known() ? made : replaced(made, false));
      }
    }
    sum = sum + p;
  }
  return sum;
}

// Multiples of the calls that stand for symbols become the symbols again.
Dim DimFacts::contracted(const Dim& d) const {
  if (d.known()) return d;
  Dim sum;
  for (auto& t : d.terms()) {
    int64_t coefficient = t.coefficient;
    Dim p(1);
    for (auto& a : t.atoms) {
      auto it = std::find_if(multiples_.begin(), multiples_.end(), [&](auto& m) { return m.second.key == a->key; });
      if (it != multiples_.end()) {
        bool whole = coefficient % it->second.times == 0;
        if (whole) coefficient /= it->second.times;
        p = p * (whole ? Dim::symbol(it->first) - it->second.rest : dim_of(*a));
      } else if (a->symbol.empty()) {
        std::vector<Dim> args;
        for (auto& x : a->args) args.push_back(contracted(x));
        p = p * Dim::call(a->call, std::move(args));
      } else {
        p = p * dim_of(*a);
      }
    }
    sum = sum + Dim(coefficient) * p;
  }
  return sum;
}

Dim DimFacts::normal(const Dim& d) const {
  if (d.known() || (calls_.empty() && multiples_.empty())) return d;
  if (multiples_.empty()) return replaced(d, false);
  return contracted(replaced(d, true));
}

bool DimFacts::add(const Dim& a, const Dim& b, const std::string& who) {
  if (demands_.size() >= kMostDemands) return false;
  Dim x = normal(a), y = normal(b);
  if (x == y) return false;
  for (auto& d : demands_) {
    Dim c = normal(d.a), e = normal(d.b);
    if ((c == x && e == y) || (c == y && e == x)) return false;
  }
  learn(x, y, 0);
  demands_.push_back({std::move(x), std::move(y), who});
  return true;
}

void DimFacts::learn(const Dim& a, const Dim& b, int depth) {
  Dim difference = primitive(replaced(a, true) - replaced(b, true));
  if (difference.known() || depth > kMaxDepth || calls_.size() + multiples_.size() >= kMostRules) return;
  if (!learn_call(difference, depth)) learn_multiple(difference);
}

// A call that the difference holds once, with 1 or -1 before it: of several, that with the longest text, and what
// broadcasting gave before others.
bool DimFacts::learn_call(const Dim& difference, int depth) {
  const Atom* best = nullptr;
  Dim what;
  auto rank = [](const Atom& a) { return std::tuple(a.call == DimCall::broadcast, a.key.size(), a.key); };
  for (auto& t : difference.terms()) {
    if (std::abs(t.coefficient) != 1 || t.atoms.size() != 1 || !t.atoms[0]->symbol.empty()) continue;
    auto& atom = *t.atoms[0];
    Dim rest = difference - dim_of(t);
    if (holds(rest, atom.key) || (best && rank(atom) < rank(*best))) continue;
    best = &atom;
    what = t.coefficient == 1 ? Dim(-1) * rest : rest;
  }
  if (!best) return false;
  // Copied: the terms it lies in are gone after this.
  std::string key = best->key;
  calls_.emplace(key, std::pair(dim_of(*best), what));
  settle(depth);
  return true;
}

// symbol = times * call + rest.
bool DimFacts::learn_multiple(const Dim& difference) {
  for (auto& t : difference.terms()) {
    if (std::abs(t.coefficient) != 1 || t.atoms.size() != 1 || t.atoms[0]->symbol.empty() || multiples_.count(t.atoms[0]->symbol)) continue;
    const std::string symbol = t.atoms[0]->symbol;
    Dim is = (difference - dim_of(t)) * Dim(-t.coefficient), rest;
    Multiple m{0, {}, {}, {}};
    bool one = true;
    for (auto& part : is.terms()) {
      Dim term = dim_of(part);
      if (!holds(term, symbol)) {
        rest = rest + term;
        continue;
      }
      one = one && m.times == 0 && part.coefficient > 1 && part.atoms.size() == 1 && part.atoms[0]->symbol.empty();
      m.times = part.coefficient;
      m.key = part.atoms[0]->key;
      m.call = dim_of(*part.atoms[0]);
    }
    if (!one || m.times == 0 || is_base(m.key)) continue;
    m.rest = rest;
    multiples_.emplace(symbol, std::move(m));
    return true;
  }
  return false;
}

// Each rule by the others: what they say of a call is said in the newest terms, and a call whose own sizes a rule
// rewrites is known under both texts.
void DimFacts::settle(int depth) {
  for (auto& [symbol, m] : multiples_) {
    auto it = calls_.find(m.key);
    if (it == calls_.end()) continue;
    // The call of another quotient: a multiple of it, if it is one.
    auto terms = it->second.second.terms();
    if (terms.size() != 1 || terms[0].atoms.size() != 1 || terms[0].coefficient < 1) continue;
    m.times *= terms[0].coefficient;
    m.key = terms[0].atoms[0]->key;
    m.call = dim_of(*terms[0].atoms[0]);
  }
  std::vector<std::pair<Dim, Dim>> again;
  for (auto& [key, rule] : calls_) {
    rule.second = replaced(rule.second, true);
    auto atom = rule.first.terms()[0].atoms[0];
    std::vector<Dim> args;
    for (auto& x : atom->args) args.push_back(replaced(x, true));
    Dim other = Dim::call(atom->call, std::move(args));
    if (other.text() != key && !(normal(other) == normal(rule.second))) again.emplace_back(std::move(other), rule.second);
  }
  for (auto& [a, b] : again) learn(a, b, depth + 1);
}

}  // namespace ge
