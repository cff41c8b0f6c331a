// Dim: a size that is a number or an integer expression over named symbols ("batch", "2*s + 1").
//
// Expressions are kept in a normal form (sums of products of atoms; an atom is a symbol or a call such
// as floordiv), so that equal sizes written differently usually compare equal. A symbol stands for a
// size of an input, or for a value that a host task yields, and is at least 0. Immutable, cheap to copy.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ge {

// The calls an atom can be. less/equal give 0 or 1. broadcast(a, b) is numpy's rule for one axis.
// scaled(a, b) is floor(a * s) as f32 computes it, b being the bits of the f32 s, not below 0.
// overflow stands for an expression whose constants left the 64-bit range: evaluating it is an error.
enum class DimCall : uint8_t { floordiv, mod, max, min, broadcast, less, equal, select, overflow, scaled };
std::string_view name(DimCall c);

class Dim {
 public:
  Dim(int64_t value = 0) : value_(value) {}
  static Dim symbol(std::string_view name);
  static Dim call(DimCall c, std::vector<Dim> args);  // simplified where possible

  bool known() const { return !expr_; }
  int64_t value() const { return value_; }  // only when known
  bool is(int64_t v) const { return known() && value_ == v; }
  // The symbol's name when the expression is just a symbol, else "".
  std::string_view symbol_name() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b);

  // A number that the expression never falls below, given symbols >= 0; INT64_MIN if not known.
  int64_t lower_bound() const;
  std::string text() const;
  static Result<Dim> parse(std::string_view text);
  // Value given the symbols' values; errors on overflow, division by zero, a missing symbol or
  // sizes that do not broadcast.
  using Lookup = std::function<std::optional<int64_t>(std::string_view)>;
  Result<int64_t> eval(const Lookup& symbols) const;
  void symbols(std::vector<std::string>& out) const;  // appended, with repetitions
  bool overflows() const;  // whatever the symbols are: a part of it is DimCall::overflow
  Dim substitute(const std::function<std::optional<Dim>(std::string_view)>& f) const;

  // The normal form, for those that translate it: sum of coefficient * product of atoms.
  struct Atom {
    std::string symbol;  // empty for a call
    DimCall call = DimCall::overflow;
    std::vector<Dim> args;
    std::string key;     // its text
  };
  struct Term {
    int64_t coefficient;
    std::vector<std::shared_ptr<const Atom>> atoms;  // sorted by key; empty for the constant
  };
  std::vector<Term> terms() const;
  // The call when the expression is just one, else null; it lives as long as this.
  const Atom* as_call() const;

 private:
  const Atom* as_atom() const;
  struct Expr;
  static Dim from_terms(std::vector<Term> terms);
  int64_t value_ = 0;
  std::shared_ptr<const Expr> expr_;
};

// What DimCall::scaled gives; none where the bits are no such number or the size leaves 64 bits.
std::optional<int64_t> scaled_size(int64_t size, int64_t scale_bits);

Dim floordiv(const Dim& a, const Dim& b);
Dim ceildiv(const Dim& a, const Dim& b);
Dim mod(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
Dim broadcast(const Dim& a, const Dim& b);
Dim product(const std::vector<Dim>& dims, size_t from = 0, size_t to = SIZE_MAX);
std::string text(const std::vector<Dim>& dims);  // "[2,s,3]"

}  // namespace ge
