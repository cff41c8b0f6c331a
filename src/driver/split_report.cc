#include "driver/split_report.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace ge {
namespace {

using Json = nlohmann::ordered_json;

void append(Json& to, const Json& from, const char* key) {
  if (!to.contains(key)) to[key] = Json::array();
  if (from.contains(key))
    for (auto& x : from[key]) to[key].push_back(x);
}

// Without repetitions, sorted.
void unite(Json& to, const std::vector<Json>& parts, const char* key) {
  std::set<std::string> all;
  for (auto& p : parts)
    if (p.contains(key))
      for (auto& x : p[key]) all.insert(x.get<std::string>());
  to[key] = all;
}

void add_up(Json& to, const Json& from, const char* key) { to[key] = to.value(key, int64_t{0}) + from.value(key, int64_t{0}); }

// Estimates of a whole model do not follow from those of its parts.
Json joined_precision(const std::vector<Json>& parts) {
  Json r;
  std::set<std::string> notes;
  for (auto& p : parts) {
    if (!p.contains("precision")) continue;
    auto& from = p["precision"];
    r["mode"] = from["mode"];
    if (from.contains("notes"))
      for (auto& n : from["notes"]) notes.insert(n.get<std::string>());
    append(r, from, "bf16");
    append(r, from, "f32");
    if (from.contains("difference")) r["difference"] = std::max(r.value("difference", 0.0), from["difference"].get<double>());
  }
  if (!notes.empty()) r["notes"] = notes;
  return r;
}

}  // namespace

Json joined_notes(const std::vector<Json>& parts) {
  Json r;
  for (const char* key : {"fused", "near_misses"}) {
    r[key] = Json::array();
    for (auto& p : parts) append(r, p, key);
  }
  for (const char* key : {"switched_off", "reference_ops"}) unite(r, parts, key);
  r["aliases"] = Json::object();
  for (auto& p : parts) {
    for (const char* key : {"nodes", "tasks"}) add_up(r, p, key);
    if (p.contains("aliases"))
      for (auto& [key, count] : p["aliases"].items()) add_up(r["aliases"], p["aliases"], key.c_str());
    for (const char* key : {"closed", "branches", "bodies"}) append(r, p, key);
    if (p.contains("verified")) append(r, p, "verified");
    if (p.contains("op_backend")) r["op_backend"] = p["op_backend"];
  }
  r["precision"] = joined_precision(parts);
  return r;
}

Json split_notes(const CutModel& cut, const std::vector<Json>& parts, int64_t shared_weights) {
  Json r;
  for (size_t i = 0; i < cut.parts.size(); ++i)
    r["parts"].push_back({{"name", cut.parts[i].name}, {"nodes", parts[i].value("nodes", int64_t{0})}, {"tasks", parts[i].value("tasks", int64_t{0})},
                          {"weights", parts[i].contains("memory") ? parts[i]["memory"].value("weights", int64_t{0}) : 0}});
  r["cuts"] = Json::array();
  for (auto& v : cut.values) {
    Json one = {{"value", v.name}, {"type", v.type}, {"from", v.from}, {"to", v.to}};
    if (v.bytes >= 0) one["bytes"] = v.bytes;
    if (!v.maker.empty()) one["apart"] = {v.maker, v.reader};
    r["cuts"].push_back(std::move(one));
  }
  r["shared_weights"] = shared_weights;
  return r;
}

std::string split_text(const Json& notes) {
  if (!notes.contains("split")) return "";
  auto& split = notes["split"];
  auto text = [](const Json& j) { return j.get<std::string>(); };
  std::string out = format("parts: {}, compiled apart\n", split["parts"].size());
  for (auto& p : split["parts"])
    out += format("  {}: {} nodes, {} tasks, {} of weights\n", text(p["name"]), p["nodes"].get<int64_t>(), p["tasks"].get<int64_t>(), bytes_text(p["weights"].get<double>()));
  out += format("values that cross: {}\n", split["cuts"].size());
  for (auto& c : split["cuts"]) {
    std::vector<std::string> to;
    for (auto& t : c["to"]) to.push_back(text(t));
    out += format("  {} {}: {} -> {}", text(c["value"]), text(c["type"]), text(c["from"]), join(to, ", "));
    if (c.contains("apart") && c["apart"].size() == 2) out += format("; {} and {} cannot be fused over the cut", text(c["apart"][0]), text(c["apart"][1]));
    out += "\n";
  }
  if (int64_t shared = split["shared_weights"].get<int64_t>()) out += format("weights of several parts, stored once: {}\n", bytes_text(static_cast<double>(shared)));
  return out;
}

}  // namespace ge
