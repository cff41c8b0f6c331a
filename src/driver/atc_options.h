// What atc answers to each option of ATC, in one table: those that the compiler takes, those that are
// atc's own, those that mean nothing on a CPU, and those that would be wrong to ignore.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ge {

enum class AtcKind { own, compiler, nothing, refused };

struct AtcOption {
  std::string_view name;
  AtcKind kind;
  std::string_view answer;    // what it does, or why it does nothing
  std::string_view fix = "";  // of one that is refused
};

const std::vector<AtcOption>& atc_options();
const AtcOption* find_atc_option(std::string_view name);
// Of an option that is refused.
Error refusal(const AtcOption& option);

}  // namespace ge
