#include "driver/nested_report.h"

#include <algorithm>

#include "base/text.h"

namespace ge {

using Json = nlohmann::ordered_json;

Json branches_report(const passes::Trace& trace) {
  Json list = Json::array();
  for (auto& b : trace.branches()) {
    Json one = {{"node", b.node}, {"by", b.by}, {"taken", b.taken}};
    if (b.by == "sizes") one["then"] = b.then_sizes, one["else"] = b.else_sizes;
    if (!b.fails.empty()) one["fails"] = b.fails;
    list.push_back(std::move(one));
  }
  return list;
}

Result<Json> plan_bodies(om::Package& package, const lower::LowerReport& lowered, const passes::Trace& trace,
                         const runtime::BindOptions& bind) {
  Json list = Json::array();
  for (auto& body : lowered.bodies) {
    auto& program = *package.model.programs[static_cast<size_t>(body.program)];
    auto fused = std::count_if(trace.all_fused().begin(), trace.all_fused().end(), [&](auto& f) { return f.graph == body.name; });
    Json one = {{"graph", body.name}, {"tasks", program.tasks.size()}, {"fused", fused}};
    if (program.symbols.empty() && runtime::is_plain(package, program)) {
      GE_TRY(auto b, runtime::Binding::make(package, program, {}, bind));
      program.plans.push_back(b->plan());
      one["arena"] = b->arena, one["lower_bound"] = b->lower_bound, one["proved"] = b->proved;
    }
    list.push_back(std::move(one));
  }
  return list;
}

namespace {

std::string branch_text(const Json& b) {
  auto word = [&](const char* key) { return b.contains(key) ? b[key].get<std::string>() : std::string(); };
  std::string taken = word("taken"), by = word("by");
  if (by == "data") return "data decide";
  if (by == "constant") return format("a constant takes {}", taken);
  if (taken.empty()) return format("{}{} take then_branch, {} take else_branch", word("then").starts_with("gears") ? "" : "sizes ", word("then"), word("else"));
  std::string other = taken == "then_branch" ? word("else") : word("then");
  return format("all sizes take {}{}", taken, other.empty() || other == "none" ? "" : format(" ({} would take the other)", other));
}

}  // namespace

std::string nested_text(const Json& report) {
  std::string out;
  if (report.contains("branches"))
    for (auto& b : report["branches"])
      out += format("If node {}: {}{}\n", b["node"].get<std::string>(), branch_text(b), b.contains("fails") ? format("; cannot run: {}", b["fails"].get<std::string>()) : "");
  if (report.contains("bodies"))
    for (auto& b : report["bodies"]) {
      out += format("nested graph {}: {} tasks, {} fused, ", b["graph"].get<std::string>(), b["tasks"].get<int>(), b["fused"].get<int>());
      if (b.contains("arena")) out += format("arena {}{}\n", bytes_text(b["arena"].get<double>()), b.value("proved", false) ? " (proved)" : "");
      else out += "arena planned for the sizes of each run\n";
    }
  return out;
}

}  // namespace ge
