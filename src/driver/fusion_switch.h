// What switches fusions: the article's INI sections, real GE's JSON and its line form, and the names that
// rules go by in each.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "driver/options.h"

namespace ge {

// Rules behind a name: one of ours, an INI section of the article ("matmul_add_fusion"), or a pass of real
// GE ("MatMulBiasAddFusionPass"). Known names that stand for nothing here give an empty list. An unknown
// name is an error with the nearest known one.
Result<std::vector<std::string>> rules_of(const std::string& name);

// Every name that switches rules: rules, passes, the names above and "all".
std::vector<std::string> switch_names();
// The other names of rules as lines, each with the rules behind it.
std::string aliases_text();

// The text of a fusion_switch_file in any of its three forms.
Status read_fusion_switch(Options& o, const std::string& text);
// "PassA:on;PassB:off": overrides the file.
Status read_optimization_switch(Options& o, const std::string& text);
// Fusions that real GE calls UB fusions: they follow the graph fusions and join what those left.
bool is_ub_fusion(const std::string& rule);

}  // namespace ge
