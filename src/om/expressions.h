// Evaluation of a Program's size expressions: total, every overflow or division by zero is an error.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "om/program.h"

namespace ge::om {

// values[i] becomes the value of expression i. symbols[k]: value of symbol k; a symbol that is not
// known yet is INT64_MIN, and expressions that need it stay INT64_MIN too (segments bind them later).
Status evaluate(const ProgramT& p, std::span<const int64_t> symbols, std::vector<int64_t>& values);

// Expression i as text, "2*n + 1"; what is too deep or damaged is "?".
std::string text(const ProgramT& p, int32_t i);
// Of a port's sizes: "[n,3,2*h]".
std::string text(const ProgramT& p, const PortT& port);
// The name that users know a symbol by, of whose value it is `sign` times: "k[0]" of what a node reads while running.
std::string symbol_text(const SymbolT& s, int64_t& sign);
// "TopK" of a task that stands for one operator, else the task's own name.
const std::string& op_of(const TaskT& task);
// The first task that needs symbol k, directly or through expressions; null for none.
const TaskT* user_of_symbol(const ProgramT& p, size_t k);

inline constexpr int64_t kUnknown = INT64_MIN;

}  // namespace ge::om
