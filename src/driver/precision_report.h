// What ran in which precision, and what bf16 gives or would give: as notes in the file and as text.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "driver/options.h"
#include "passes/trace.h"

namespace ge {

// moved: how far bf16 outputs are from f32's, where it was measured.
nlohmann::ordered_json precision_report(const passes::Trace& t, const PrecisionOptions& o, std::optional<double> moved);
// Of the notes of a file; "" where they say nothing.
std::string precision_text(const nlohmann::ordered_json& notes);

}  // namespace ge
