// Texts: the strings of one run. A tensor of strings holds their numbers, so that it can be moved, stored and compared
// like any other; equal strings have equal numbers. Number 0 is "", then come those that the model holds, then
// what the run adds. For one thread: operators on text are executor tasks.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "om/program.h"
#include "runtime/value.h"

namespace ge::runtime {

// The numbers of a model's own strings, shared by its runs.
using TextNumbers = std::unordered_map<std::string_view, uint32_t>;
TextNumbers numbers_of(const std::vector<std::string>& texts);

class Texts {
 public:
  Texts(const std::vector<std::string>& model, const TextNumbers& numbers) : model_(model), numbers_(numbers) {}
  uint32_t number(std::string_view text);
  // An error for a number that is none: files and memory are not trusted.
  Result<std::string_view> text(uint32_t number) const;
  // A tensor of strings and back.
  Result<Value> tensor(std::span<const int64_t> dims, std::span<const std::string_view> strings);
  Result<std::vector<std::string_view>> strings(const Value& v) const;

 private:
  const std::vector<std::string>& model_;
  const TextNumbers& numbers_;
  std::deque<std::string> own_;
  TextNumbers own_numbers_;
};

}  // namespace ge::runtime
