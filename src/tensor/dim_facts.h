// Equalities of sizes that operators ask for: what a Concat joins agrees along the other axes, however the model writes
// it. They hold in every run, as a binding checks them; so sizes are rewritten with them, and those that
// are equal by them get one normal form. Holds expressions only: who asks, and when, is inference's affair.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tensor/dim.h"

namespace ge {

class DimFacts {
 public:
  // What was asked for, written as known at that time: each follows from the inputs' sizes and those before it.
  struct Demand {
    Dim a, b;
    std::string who;   // the node that asks, and what for
  };

  // Asks for a = b. False: it holds already, was asked for before, or is one too many.
  bool add(const Dim& a, const Dim& b, const std::string& who);
  // d with all facts applied; sizes that they make equal get the same form where an equality can be written as a rule:
  // a call that stands alone in it is replaced by the rest ("floordiv(h - 1, 8)" by "2*floordiv(h - 1, 16) + 1"), and
  // a symbol that is a multiple of a quotient of itself ("h" and "4*floordiv(h, 4)") is known to divide.
  Dim normal(const Dim& d) const;
  const std::vector<Demand>& demands() const { return demands_; }

 private:
  // symbol = times * call + rest, of which only the call holds the symbol.
  struct Multiple {
    int64_t times;
    Dim call, rest;
    std::string key;   // of the call
  };
  Dim replaced(const Dim& d, bool multiples) const;
  Dim contracted(const Dim& d) const;
  bool is_base(const std::string& key) const;
  void learn(const Dim& a, const Dim& b, int depth);
  bool learn_call(const Dim& difference, int depth);
  bool learn_multiple(const Dim& difference);
  void settle(int depth);

  std::vector<Demand> demands_;
  std::map<std::string, std::pair<Dim, Dim>> calls_;          // text of a call -> the call, what it is
  std::map<std::string, Multiple, std::less<>> multiples_;    // of a symbol
};

}  // namespace ge
