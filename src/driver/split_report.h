// The report of a model that was compiled in parts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driver/cut.h"
#include "om/program.h"

namespace ge {

// The parts' reports as one; what concerns memory is left to whoever plans it.
nlohmann::ordered_json joined_notes(const std::vector<nlohmann::ordered_json>& parts);
// What stands in it under "split": the parts, and what crosses between them.
nlohmann::ordered_json split_notes(const CutModel& cut, const std::vector<nlohmann::ordered_json>& parts, int64_t shared_weights);
// As `ge explain` prints it; "" for a model that was compiled whole.
std::string split_text(const nlohmann::ordered_json& notes);

}  // namespace ge
