#include "tensor/dim.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/text.h"

namespace ge {

struct Dim::Expr {
  std::vector<Term> terms;
  std::string key;
};

namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();

using AtomPtr = std::shared_ptr<const Dim::Atom>;

AtomPtr make_atom(DimCall c, std::vector<Dim> args) {
  auto a = std::make_shared<Dim::Atom>();
  a->call = c;
  std::vector<std::string> parts;
  for (auto& d : args) parts.push_back(d.text());
  a->key = format("{}({})", name(c), join(parts, ", "));
  a->args = std::move(args);
  return a;
}

bool less_atoms(const std::vector<AtomPtr>& a, const std::vector<AtomPtr>& b) {
  if (a.size() != b.size()) return a.size() > b.size();
  for (size_t i = 0; i < a.size(); ++i)
    if (int c = a[i]->key.compare(b[i]->key)) return c < 0;
  return false;
}

bool same_atoms(const std::vector<AtomPtr>& a, const std::vector<AtomPtr>& b) {
  return !less_atoms(a, b) && !less_atoms(b, a);
}

std::string term_text(const Dim::Term& t) {
  std::string s;
  if (t.atoms.empty()) return format("{}", t.coefficient);
  if (t.coefficient == -1) s = "-";
  else if (t.coefficient != 1) s = format("{}*", t.coefficient);
  for (size_t i = 0; i < t.atoms.size(); ++i) s += (i ? "*" : "") + t.atoms[i]->key;
  return s;
}

std::string terms_text(const std::vector<Dim::Term>& terms) {
  std::string s;
  for (auto& t : terms) {
    std::string one = term_text(t);
    if (s.empty()) s = one;
    else if (one[0] == '-') s += " - " + one.substr(1);
    else s += " + " + one;
  }
  return s.empty() ? "0" : s;
}

int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

// term / divisor when the division leaves no rest, symbol by symbol.
std::optional<Dim::Term> divide(const Dim::Term& t, const Dim::Term& divisor) {
  if (divisor.coefficient == 0 || t.coefficient % divisor.coefficient != 0) return std::nullopt;
  Dim::Term out{t.coefficient / divisor.coefficient, {}};
  size_t j = 0;
  for (auto& a : t.atoms) {
    if (j < divisor.atoms.size() && divisor.atoms[j]->key == a->key) ++j;
    else out.atoms.push_back(a);
  }
  if (j != divisor.atoms.size()) return std::nullopt;
  return out;
}

}  // namespace

std::optional<int64_t> scaled_size(int64_t size, int64_t scale_bits) {
  if (scale_bits < 0 || scale_bits > INT32_MAX) return std::nullopt;
  const float v = std::floor(static_cast<float>(size) * std::bit_cast<float>(static_cast<int32_t>(scale_bits)));
  if (!(std::abs(v) < 0x1p62f)) return std::nullopt;
  return static_cast<int64_t>(v);
}

std::string_view name(DimCall c) {
  static constexpr std::string_view kNames[] = {"floordiv", "mod",   "max",    "min",     "broadcast",
                                                "less",     "equal", "select", "overflow", "scaled"};
  return kNames[static_cast<size_t>(c)];
}

Dim Dim::from_terms(std::vector<Term> terms) {
  std::sort(terms.begin(), terms.end(), [](auto& a, auto& b) { return less_atoms(a.atoms, b.atoms); });
  std::vector<Term> out;
  for (auto& t : terms) {
    if (!out.empty() && same_atoms(out.back().atoms, t.atoms)) {
      if (__builtin_add_overflow(out.back().coefficient, t.coefficient, &out.back().coefficient))
        return call(DimCall::overflow, {});
    } else {
      out.push_back(std::move(t));
    }
  }
  std::erase_if(out, [](auto& t) { return t.coefficient == 0; });
  if (out.empty()) return Dim(0);
  if (out.size() == 1 && out[0].atoms.empty()) return Dim(out[0].coefficient);
  Dim d;
  auto e = std::make_shared<Expr>();
  e->key = terms_text(out);
  e->terms = std::move(out);
  d.expr_ = std::move(e);
  return d;
}

std::vector<Dim::Term> Dim::terms() const {
  if (expr_) return expr_->terms;
  if (value_ == 0) return {};
  return {{value_, {}}};
}

Dim Dim::symbol(std::string_view name) {
  auto a = std::make_shared<Atom>();
  a->symbol = std::string(name);
  a->key = a->symbol;
  return from_terms({{1, {a}}});
}

const Dim::Atom* Dim::as_atom() const {
  if (!expr_ || expr_->terms.size() != 1) return nullptr;
  auto& t = expr_->terms[0];
  return t.coefficient == 1 && t.atoms.size() == 1 ? t.atoms[0].get() : nullptr;
}

const Dim::Atom* Dim::as_call() const {
  auto* atom = as_atom();
  return atom && atom->symbol.empty() ? atom : nullptr;
}

std::string_view Dim::symbol_name() const {
  auto* atom = as_atom();
  return atom ? std::string_view(atom->symbol) : std::string_view();
}

Dim operator+(const Dim& a, const Dim& b) {
  int64_t v;
  if (a.known() && b.known()) {
    if (__builtin_add_overflow(a.value_, b.value_, &v)) return Dim::call(DimCall::overflow, {});
    return Dim(v);
  }
  auto terms = a.terms();
  for (auto& t : b.terms()) terms.push_back(t);
  return Dim::from_terms(std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

Dim operator*(const Dim& a, const Dim& b) {
  int64_t v;
  if (a.known() && b.known()) {
    if (__builtin_mul_overflow(a.value_, b.value_, &v)) return Dim::call(DimCall::overflow, {});
    return Dim(v);
  }
  std::vector<Dim::Term> out;
  for (auto& x : a.terms()) {
    for (auto& y : b.terms()) {
      Dim::Term t;
      if (__builtin_mul_overflow(x.coefficient, y.coefficient, &t.coefficient))
        return Dim::call(DimCall::overflow, {});
      t.atoms = x.atoms;
      t.atoms.insert(t.atoms.end(), y.atoms.begin(), y.atoms.end());
      std::sort(t.atoms.begin(), t.atoms.end(), [](auto& p, auto& q) { return p->key < q->key; });
      out.push_back(std::move(t));
    }
  }
  return Dim::from_terms(std::move(out));
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.known() || b.known()) return a.known() && b.known() && a.value_ == b.value_;
  return a.expr_ == b.expr_ || a.expr_->key == b.expr_->key;
}

int64_t Dim::lower_bound() const {
  if (known()) return value_;
  int64_t sum = 0;
  for (auto& t : expr_->terms) {
    int64_t low = 1;
    for (auto& a : t.atoms) {
      int64_t one = 0;
      auto arg = [&](size_t i) { return a->args[i].lower_bound(); };
      if (a->symbol.empty()) switch (a->call) {
          case DimCall::floordiv:
            if (a->args[1].known() && arg(1) > 0) one = arg(0) == kLowest ? kLowest : floor_div(arg(0), arg(1));
            else one = arg(0) >= 0 && arg(1) > 0 ? 0 : kLowest;
            break;
          case DimCall::mod: one = arg(1) > 0 ? 0 : kLowest; break;
          case DimCall::max: one = std::max(arg(0), arg(1)); break;
          case DimCall::min: one = std::min(arg(0), arg(1)); break;
          case DimCall::broadcast: one = 0; break;
          case DimCall::less: case DimCall::equal: one = 0; break;
          case DimCall::select: one = std::min(arg(1), arg(2)); break;
          case DimCall::scaled: one = scaled_size(arg(0), arg(1)).value_or(kLowest); break;
          case DimCall::overflow: one = kLowest; break;
        }
      // Of a product with a factor that may be negative nothing is known.
      if (one == kLowest || (one < 0 && t.atoms.size() > 1)) return kLowest;
      low = std::min<int64_t>(low * std::min<int64_t>(one, 1 << 20), 1 << 20);
    }
    if (t.atoms.empty()) low = 1;
    if (t.coefficient < 0 && !t.atoms.empty()) return kLowest;
    if (__builtin_mul_overflow(low, t.coefficient, &low) || __builtin_add_overflow(sum, low, &sum)) return kLowest;
  }
  return sum;
}

namespace {

// floor((floor(x / m) + r) / n) = floor((x + m*r) / (m*n)), for numbers m and n above 0.
std::optional<Dim> flattened(const Dim& a, const Dim& n) {
  constexpr int64_t kMost = int64_t(1) << 31;   // of a divisor
  if (!n.known() || n.value() <= 0 || n.value() >= kMost) return std::nullopt;
  for (auto& t : a.terms()) {
    if (t.coefficient != 1 || t.atoms.size() != 1 || !t.atoms[0]->symbol.empty() || t.atoms[0]->call != DimCall::floordiv) continue;
    auto& inner = *t.atoms[0];
    const Dim& m = inner.args[1];
    if (!m.known() || m.value() <= 0 || m.value() >= kMost) continue;
    return floordiv(inner.args[0] + m * (a - Dim::call(DimCall::floordiv, inner.args)), m * n);
  }
  return std::nullopt;
}

// floor((g*x + c) / (g*n)) = floor((x + floor(c / g)) / n), for numbers n and g above 0 and any number c.
std::optional<Dim> reduced(const Dim& a, const Dim& n) {
  if (a.known() || !n.known() || n.value() <= 1) return std::nullopt;
  int64_t common = n.value();
  for (auto& t : a.terms())
    if (!t.atoms.empty()) common = t.coefficient == kLowest ? 1 : std::gcd(common, t.coefficient);
  if (common <= 1 || common == n.value()) return std::nullopt;   // what n divides is taken apart below
  return floordiv(floordiv(a, Dim(common)), Dim(n.value() / common));
}

// Simplifications of calls; nullopt: keep the atom.
std::optional<Dim> simplify(DimCall c, const std::vector<Dim>& x) {
  auto both = [&] { return x[0].known() && x[1].known(); };
  switch (c) {
    case DimCall::floordiv: {
      const Dim &a = x[0], &b = x[1];
      if (both() && b.value() != 0 && !(b.is(-1) && a.is(kLowest))) return Dim(floor_div(a.value(), b.value()));
      if (b.is(1)) return a;
      if (auto flat = flattened(a, b)) return flat;
      if (auto less = reduced(a, b)) return less;
      auto divisor = b.terms();
      if (divisor.size() != 1) return a == b ? std::optional(Dim(1)) : std::nullopt;
      // floor((q*b + r) / b) = q + floor(r / b), for the terms that b divides.
      Dim quotient, rest;
      bool any = false;
      for (auto& t : a.terms()) {
        Dim term(t.coefficient);
        for (auto& atom : t.atoms)
          term = term * (atom->symbol.empty() ? Dim::call(atom->call, atom->args) : Dim::symbol(atom->symbol));
        if (auto q = divide(t, divisor[0])) {
          Dim part(q->coefficient);
          for (auto& atom : q->atoms)
            part = part * (atom->symbol.empty() ? Dim::call(atom->call, atom->args) : Dim::symbol(atom->symbol));
          quotient = quotient + part;
          any = true;
        } else {
          rest = rest + term;
        }
      }
      if (rest.is(0)) return quotient;
      if (!any) return std::nullopt;
      return quotient + floordiv(rest, b);
    }
    case DimCall::mod:
      if (both() && x[1].value() > 0) return Dim(x[0].value() - x[1].value() * floor_div(x[0].value(), x[1].value()));
      if (x[1].is(1) || x[0] == x[1] || x[0].is(0)) return Dim(0);
      return std::nullopt;
    case DimCall::max:
    case DimCall::min: {
      bool is_max = c == DimCall::max;
      if (both()) return Dim(is_max ? std::max(x[0].value(), x[1].value()) : std::min(x[0].value(), x[1].value()));
      if (x[0] == x[1]) return x[0];
      for (int i = 0; i < 2; ++i) {
        // x[i] - x[1-i] never negative: x[i] is the larger.
        if ((x[static_cast<size_t>(i)] - x[static_cast<size_t>(1 - i)]).lower_bound() >= 0)
          return x[static_cast<size_t>(is_max ? i : 1 - i)];
        if (x[static_cast<size_t>(i)].known() && x[static_cast<size_t>(i)].value() == std::numeric_limits<int64_t>::max())
          return x[static_cast<size_t>(is_max ? i : 1 - i)];
      }
      return std::nullopt;
    }
    case DimCall::broadcast:
      if (x[0] == x[1] || x[1].is(1)) return x[0];
      if (x[0].is(1)) return x[1];
      // A number other than 1 wins; a mismatch is found when the sizes are bound.
      if (x[0].known() && !x[1].known()) return x[0];
      if (x[1].known() && !x[0].known()) return x[1];
      // broadcast(a, min(a, c)) is a wherever it is valid, for c >= 2.
      for (int i = 0; i < 2; ++i) {
        if (auto* atom = x[static_cast<size_t>(i)].as_call(); atom && atom->call == DimCall::min) {
          auto& args = atom->args;
          const Dim& other = x[static_cast<size_t>(1 - i)];
          for (size_t k = 0; k < 2; ++k)
            if (args[k] == other && args[1 - k].known() && args[1 - k].value() >= 2) return other;
        }
      }
      return std::nullopt;
    case DimCall::less:
      if (both()) return Dim(x[0].value() < x[1].value());
      if ((x[1] - x[0]).lower_bound() > 0) return Dim(1);
      if ((x[0] - x[1]).lower_bound() >= 0) return Dim(0);
      return std::nullopt;
    case DimCall::equal:
      if (both()) return Dim(x[0].value() == x[1].value());
      if (x[0] == x[1]) return Dim(1);
      if ((x[0] - x[1]).lower_bound() > 0 || (x[1] - x[0]).lower_bound() > 0) return Dim(0);
      return std::nullopt;
    case DimCall::select:
      if (x[0].known()) return x[0].value() ? x[1] : x[2];
      if (x[1] == x[2]) return x[1];
      return std::nullopt;
    case DimCall::scaled: {
      auto v = both() ? scaled_size(x[0].value(), x[1].value()) : std::nullopt;
      return v ? std::optional(Dim(*v)) : std::nullopt;
    }
    case DimCall::overflow: return std::nullopt;
  }
  return std::nullopt;
}

size_t arity(DimCall c) { return c == DimCall::overflow ? 0 : c == DimCall::select ? 3 : 2; }

}  // namespace

Dim Dim::call(DimCall c, std::vector<Dim> args) {
  GE_CHECK(args.size() == arity(c), "arity of a size expression");
  if (auto s = simplify(c, args)) return *s;
  bool symmetric = c == DimCall::max || c == DimCall::min || c == DimCall::broadcast || c == DimCall::equal;
  if (symmetric && args[1].text() < args[0].text()) std::swap(args[0], args[1]);
  Dim d;
  auto e = std::make_shared<Expr>();
  e->terms = {{1, {make_atom(c, std::move(args))}}};
  e->key = terms_text(e->terms);
  d.expr_ = std::move(e);
  return d;
}

Dim floordiv(const Dim& a, const Dim& b) { return Dim::call(DimCall::floordiv, {a, b}); }
Dim ceildiv(const Dim& a, const Dim& b) { return floordiv(a + b - Dim(1), b); }
Dim mod(const Dim& a, const Dim& b) { return Dim::call(DimCall::mod, {a, b}); }
Dim max(const Dim& a, const Dim& b) { return Dim::call(DimCall::max, {a, b}); }
Dim min(const Dim& a, const Dim& b) { return Dim::call(DimCall::min, {a, b}); }
Dim broadcast(const Dim& a, const Dim& b) { return Dim::call(DimCall::broadcast, {a, b}); }

Dim product(const std::vector<Dim>& dims, size_t from, size_t to) {
  Dim p(1);
  for (size_t i = from; i < std::min(to, dims.size()); ++i) {
    if (dims[i].is(0)) return Dim(0);   // whatever the others make
    p = p * dims[i];
  }
  return p;
}

std::string Dim::text() const { return expr_ ? expr_->key : format("{}", value_); }

std::string text(const std::vector<Dim>& dims) {
  std::string s = "[";
  for (size_t i = 0; i < dims.size(); ++i) s += (i ? "," : "") + dims[i].text();
  return s + "]";
}

Result<int64_t> Dim::eval(const Lookup& lookup) const {
  if (known()) return value_;
  int64_t sum = 0;
  auto bad = [&](const char* why) {
    return error(code::kInputShape, format("The size {} cannot be computed: {}.", text(), why));
  };
  for (auto& t : expr_->terms) {
    int64_t p = t.coefficient;
    for (auto& a : t.atoms) {
      int64_t v = 0;
      if (!a->symbol.empty()) {
        auto s = lookup(a->symbol);
        if (!s) return bad(("symbol " + a->symbol + " has no value").c_str());
        v = *s;
      } else {
        int64_t x[3] = {0, 0, 0};
        for (size_t i = 0; i < a->args.size(); ++i) {
          GE_TRY(x[i], a->args[i].eval(lookup));
        }
        switch (a->call) {
          case DimCall::floordiv:
            if (x[1] == 0 || (x[1] == -1 && x[0] == kLowest)) return bad("division by zero");
            v = floor_div(x[0], x[1]);
            break;
          case DimCall::mod:
            if (x[1] <= 0) return bad("division by zero");
            v = x[0] - x[1] * floor_div(x[0], x[1]);
            break;
          case DimCall::max: v = std::max(x[0], x[1]); break;
          case DimCall::min: v = std::min(x[0], x[1]); break;
          case DimCall::broadcast:
            if (x[0] != x[1] && x[0] != 1 && x[1] != 1) return bad("sizes do not broadcast");
            v = x[0] == 1 ? x[1] : x[0];
            break;
          case DimCall::less: v = x[0] < x[1]; break;
          case DimCall::equal: v = x[0] == x[1]; break;
          case DimCall::select: v = x[0] ? x[1] : x[2]; break;
          case DimCall::scaled: {
            auto size = scaled_size(x[0], x[1]);
            if (!size) return bad("it overflows");
            v = *size;
            break;
          }
          case DimCall::overflow: return bad("it overflows");
        }
      }
      if (__builtin_mul_overflow(p, v, &p)) return bad("it overflows");
    }
    if (__builtin_add_overflow(sum, p, &sum)) return bad("it overflows");
  }
  return sum;
}

bool Dim::overflows() const {
  if (!expr_) return false;
  for (auto& t : expr_->terms)
    for (auto& a : t.atoms)
      if (a->symbol.empty() && (a->call == DimCall::overflow || std::any_of(a->args.begin(), a->args.end(), [](auto& x) { return x.overflows(); }))) return true;
  return false;
}

void Dim::symbols(std::vector<std::string>& out) const {
  if (known()) return;
  for (auto& t : expr_->terms)
    for (auto& a : t.atoms) {
      if (!a->symbol.empty()) out.push_back(a->symbol);
      for (auto& d : a->args) d.symbols(out);
    }
}

Dim Dim::substitute(const std::function<std::optional<Dim>(std::string_view)>& f) const {
  if (known()) return *this;
  Dim sum;
  for (auto& t : expr_->terms) {
    Dim p(t.coefficient);
    for (auto& a : t.atoms) {
      if (!a->symbol.empty()) {
        auto r = f(a->symbol);
        p = p * (r ? *r : symbol(a->symbol));
      } else {
        std::vector<Dim> args;
        for (auto& d : a->args) args.push_back(d.substitute(f));
        p = p * call(a->call, std::move(args));
      }
    }
    sum = sum + p;
  }
  return sum;
}

namespace {

// expression := term (('+'|'-') term)*; term := factor ('*' factor)*; factor := number | name | call
struct DimParser {
  std::string_view s;
  size_t i = 0;
  int depth = 0;

  void space() {
    while (i < s.size() && std::isspace(static_cast<unsigned char>(s[i]))) ++i;
  }
  bool eat(char c) {
    space();
    if (i < s.size() && s[i] == c) return ++i, true;
    return false;
  }
  Error bad() { return error(code::kParse, format("'{}' is not a size expression (at character {}).", s, i)); }

  Result<Dim> factor() {
    space();
    if (eat('-')) {
      GE_TRY(Dim d, factor());
      return d * Dim(-1);
    }
    if (i < s.size() && std::isdigit(static_cast<unsigned char>(s[i]))) {
      int64_t v = 0;
      while (i < s.size() && std::isdigit(static_cast<unsigned char>(s[i])))
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, s[i++] - '0', &v)) return bad();
      return Dim(v);
    }
    size_t start = i;
    while (i < s.size() && (std::isalnum(static_cast<unsigned char>(s[i])) || s[i] == '_' || s[i] == '.' || s[i] == '/' || s[i] == ':')) ++i;
    if (start == i) return bad();
    std::string_view word = s.substr(start, i - start);
    if (!eat('(')) return Dim::symbol(word);
    for (int c = 0; c <= static_cast<int>(DimCall::scaled); ++c) {
      if (name(static_cast<DimCall>(c)) != word) continue;
      std::vector<Dim> args;
      for (size_t k = 0; k < arity(static_cast<DimCall>(c)); ++k) {
        if (k && !eat(',')) return bad();
        GE_TRY(Dim d, sum());
        args.push_back(d);
      }
      if (!eat(')')) return bad();
      return Dim::call(static_cast<DimCall>(c), std::move(args));
    }
    return bad();
  }
  Result<Dim> sum() {
    if (++depth > 64) return bad();
    GE_TRY(Dim total, products());
    for (;;) {
      if (eat('+')) {
        GE_TRY(Dim d, products());
        total = total + d;
      } else if (eat('-')) {
        GE_TRY(Dim d, products());
        total = total - d;
      } else {
        --depth;
        return total;
      }
    }
  }
  Result<Dim> products() {
    GE_TRY(Dim p, factor());
    while (eat('*')) {
      GE_TRY(Dim d, factor());
      p = p * d;
    }
    return p;
  }
};

}  // namespace

Result<Dim> Dim::parse(std::string_view s) {
  DimParser p{s};
  GE_TRY(Dim d, p.sum());
  p.space();
  if (p.i != s.size()) return p.bad();
  return d;
}

}  // namespace ge
