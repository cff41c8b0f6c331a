// What the report says of control flow: which branch runs for which sizes, and what became of nested graphs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lower/lower.h"
#include "passes/trace.h"
#include "runtime/binding.h"

namespace ge {

nlohmann::ordered_json branches_report(const passes::Trace& trace);
// Plans the memory of nested graphs whose sizes are known, into the file; what was planned.
Result<nlohmann::ordered_json> plan_bodies(om::Package& package, const lower::LowerReport& lowered, const passes::Trace& trace,
                                           const runtime::BindOptions& bind);
// As `ge explain` prints them.
std::string nested_text(const nlohmann::ordered_json& report);

}  // namespace ge
