// Dims -> the expression list of a Program; equal expressions share a node.
#pragma once

#include <map>
#include <string>

#include "om/program.h"
#include "tensor/dim.h"

namespace ge::lower {

class ExpressionList {
 public:
  explicit ExpressionList(om::ProgramT& p) : p_(p) {}
  // Index of a symbol in the Program; added when new.
  int symbol(std::string_view name);
  int add(const Dim& d);

 private:
  int add(om::ExprOp op, int64_t imm, int a = 0, int b = 0, int c = 0);
  int atom(const Dim::Atom& a);
  om::ProgramT& p_;
  std::map<std::string, int, std::less<>> symbols_;
  std::map<std::string, int> dims_;
  std::map<std::tuple<int, int64_t, int, int, int>, int> nodes_;
};

}  // namespace ge::lower
