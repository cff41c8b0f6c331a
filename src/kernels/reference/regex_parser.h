// The notation of a regular expression as a tree; regex.cc makes steps of it.
#pragma once

#include <memory>

#include "kernels/reference/regex.h"

namespace ge::kernels::reference {

struct RegexNode {
  enum class Kind : uint8_t { set, assert_, sequence, choice, repeat };
  Kind kind = Kind::sequence;
  Regex::Set set;
  Regex::Assert what = Regex::Assert::text_begin;
  int least = 0, most = -1;                             // of a repeat; -1: any number
  std::vector<std::unique_ptr<RegexNode>> parts;
};

Result<std::unique_ptr<RegexNode>> parse_regex(std::string_view pattern);

}  // namespace ge::kernels::reference
