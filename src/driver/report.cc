#include "driver/report.h"

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "driver/nested_report.h"
#include "driver/notes.h"
#include "driver/precision_report.h"
#include "driver/split_report.h"
#include "om/expressions.h"
#include "tensor/dtype.h"

namespace ge {
namespace {

using Json = nlohmann::ordered_json;

// "a, b, c and 5 more".
std::string some(const Json& names, size_t most) {
  std::vector<std::string> shown;
  for (auto& n : names)
    if (shown.size() < most) shown.push_back(n.get<std::string>());
  std::string s = join(shown, ", ");
  return names.size() > most ? s + format(" and {} more", names.size() - most) : s;
}

// Rules that the same thing keeps from the same place share a line.
std::string misses_text(const Json& misses) {
  std::map<std::string, std::vector<std::string>> rules;
  std::vector<std::string> order;
  for (auto& m : misses) {
    auto text = [&](const char* key) { return m[key].get<std::string>(); };
    std::string rest = format(" at {}: {}", text("anchor"), text("why"));
    if (!text("blocker").empty() && text("blocker") != text("anchor")) rest += format(" (in the way: {})", text("blocker"));
    if (!text("help").empty()) rest += format("; what helps: {}", text("help"));
    auto& those = rules[rest];
    if (those.empty()) order.push_back(rest);
    those.push_back(text("rule"));
  }
  std::string out = format("near misses: {}\n", order.size());
  for (auto& rest : order) out += format("  {}{}\n", join(rules[rest], ", "), rest);
  return out;
}

// An operator can stand in several groups: a later rule takes up the group of an earlier one.
int64_t count_origins(const Json& fused) {
  std::set<std::string> names;
  for (auto& f : fused)
    for (auto& n : f["origins"]) names.insert(n.get<std::string>());
  return static_cast<int64_t>(names.size());
}

}  // namespace

std::vector<std::string> port_dims(const om::ProgramT& p, const om::PortT& port) {
  std::vector<std::string> out;
  for (int32_t e : port.dims) out.push_back(om::text(p, e));
  return out;
}

std::string port_text(const om::ProgramT& p, const om::PortT& port) {
  return format("{} {}{}", port.name, name(static_cast<DType>(port.dtype)), om::text(p, port));
}

std::string explain_text(const om::Package& package) {
  Json r = notes_of(package);
  if (!r.contains("fused")) return "no report\n";
  std::string out;
  std::map<std::string, int> count;
  for (auto& f : r["fused"]) ++count[f["rule"].get<std::string>()];
  out += format("fused groups: {} ({} operators)\n", r["fused"].size(), count_origins(r["fused"]));
  for (auto& [rule, n] : count) out += format("  {:<20} {}\n", rule, n);
  for (auto& f : r["fused"]) {
    std::string in = f.contains("graph") ? format(" (in {})", f["graph"].get<std::string>()) : "";
    std::string how = f.contains("how") ? f["how"].get<std::string>() + ": " : "";
    out += format("  {} -> {}: {}{}{}\n", f["rule"].get<std::string>(), f["node"].get<std::string>(), how, some(f["origins"], 8), in);
  }
  out += nested_text(r);
  out += misses_text(r["near_misses"]);
  if (r.contains("closed") && !r["closed"].empty()) {
    out += format("regions no rule may enter: {}\n", r["closed"].size());
    for (auto& c : r["closed"]) {
      out += format("  {}: {}", some(c["nodes"], 8), c["why"].get<std::string>());
      if (!c["help"].get<std::string>().empty()) out += format("; {}", c["help"].get<std::string>());
      out += "\n";
    }
  }
  if (r.contains("states") && !r["states"].empty()) {
    out += format("states: {} ({} a token)\n", r["states"].size(), bytes_text(r["memory"].value("state_bytes_per_token", 0.0)));
    for (auto& s : r["states"]) {
      out += format("  {}: {} ({} -> {})", s["name"].get<std::string>(), s["update"].get<std::string>(), s["input"].get<std::string>().empty() ? "-" : s["input"].get<std::string>(),
                    s["output"].get<std::string>().empty() ? "-" : s["output"].get<std::string>());
      if (!s["why"].get<std::string>().empty()) out += ": " + s["why"].get<std::string>();
      if (!s["converted"].get<std::string>().empty()) out += format("; {} converts all of it at every run", s["converted"].get<std::string>());
      if (std::string unfit = s.value("unfit", ""); !unfit.empty()) out += format("; stored as it is: {}", unfit);
      out += "\n";
    }
  }
  out += split_text(r);
  out += precision_text(r);
  if (!r["switched_off"].empty()) out += format("switched off: {}\n", some(r["switched_off"], 100));
  if (!r["reference_ops"].empty()) out += format("on reference kernels: {}\n", some(r["reference_ops"], 100));
  return out;
}

int64_t fused_operators(const om::Package& package) {
  Json r = notes_of(package);
  if (!r.contains("fused")) return 0;
  return count_origins(r["fused"]);
}

std::string fusion_warnings(const om::Package& package) {
  static const std::map<std::string, std::string> kTitles = {
      {"matmul_bias", "MatMul+Add"}, {"matmul_residual", "MatMul+Add"}, {"matmul_activation", "MatMul+Activation"}, {"matmul_scale", "MatMul+Mul"},
      {"conv_bn", "Conv+BN"}, {"conv_bias", "Conv+Add"}, {"conv_scale", "Conv+Mul"}, {"conv_activation", "Conv+Activation"}, {"conv_residual", "Conv+Add"},
      {"conv_pad", "Pad+Conv"}, {"attention", "MatMul+Softmax+MatMul"}, {"layer_norm", "LayerNorm"}, {"gelu", "Gelu"}, {"rms_norm", "RMSNorm"}};
  Json r = notes_of(package);
  if (!r.contains("near_misses")) return "";
  std::map<std::string, std::vector<const Json*>> kinds;
  std::vector<std::string> order;
  for (auto& m : r["near_misses"]) {
    auto title = kTitles.find(m["rule"].get<std::string>());
    if (title == kTitles.end()) continue;
    auto& kind = kinds[title->second];
    if (kind.empty()) order.push_back(title->second);
    kind.push_back(&m);
  }
  std::string out;
  for (auto& title : order) {
    auto& kind = kinds[title];
    auto text = [&](const char* key) { return (*kind[0])[key].get<std::string>(); };
    out += format("[GE] WARN: Fusion pattern {} not matched{}\n", title, kind.size() > 1 ? format(" ({} times; `ge explain` lists all, this is the first)", kind.size()) : "");
    out += format("[GE] WARN:   rule {} at node {}: {}", text("rule"), text("anchor"), text("why"));
    if (!text("blocker").empty()) out += format(" (in the way: {})", text("blocker"));
    if (!text("help").empty()) out += format("; {}", text("help"));
    out += "\n";
  }
  return out;
}

}  // namespace ge
