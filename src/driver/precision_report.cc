#include "driver/precision_report.h"

#include <cmath>

#include "base/text.h"

namespace ge {

nlohmann::ordered_json precision_report(const passes::Trace& t, const PrecisionOptions& o, std::optional<double> moved) {
  nlohmann::ordered_json r;
  r["mode"] = o.mode.empty() ? "origin" : o.mode;
  if (!o.notes.empty()) r["notes"] = o.notes;
  r["bf16"] = nlohmann::json::array();
  r["f32"] = nlohmann::json::array();
  double f32 = 0, now = 0, best = 0;
  int64_t could = 0;
  for (auto& n : t.precision) {
    if (n.bf16) r["bf16"].push_back(n.node);
    else r["f32"].push_back({{"node", n.node}, {"why", n.why}});
    f32 += n.f32, now += n.bf16 ? n.best : n.f32, best += n.best;
    could += !n.bf16 && n.best < n.f32;
  }
  // Two digits: it is an estimate, and files must not depend on a last bit.
  auto gain = [&](double other, double of) { return of > 0 ? std::round(100 * (f32 + other) / (of + other)) / 100 : 1; };
  if (!r["bf16"].empty()) r["gain"] = {{"products", gain(0, now)}, {"model", gain(t.other_cycles, now)}};
  if (could) r["bf16_would"] = {{"nodes", could}, {"products", gain(0, best)}, {"model", gain(t.other_cycles, best)}};
  if (moved) r["difference"] = *moved;
  return r;
}

std::string precision_text(const nlohmann::ordered_json& notes) {
  if (!notes.contains("precision")) return "";
  auto& p = notes["precision"];
  const size_t bf16 = p["bf16"].size(), all = bf16 + p["f32"].size();
  std::string out = format("precision {}: {} of {} products in bf16", p["mode"].get<std::string>(), bf16, all);
  if (p.contains("gain")) out += format(", the model about {:.2f} times as fast as in f32 (estimate)", p["gain"]["model"].get<double>());
  if (bf16 && p.contains("difference")) out += format(", outputs moved by {:.2g} of the largest value", p["difference"].get<double>());
  out += "\n";
  if (p.contains("notes"))
    for (auto& n : p["notes"]) out += format("  {}\n", n.get<std::string>());
  if (p.contains("bf16_would")) {
    auto& w = p["bf16_would"];
    out += format("  bf16 for {} of them would make the model about {:.2f} times as fast (estimate; --precision_mode_v2=mixed_bfloat16)", w["nodes"].get<int64_t>(), w["model"].get<double>());
    if (!bf16 && p.contains("difference")) out += format(", outputs would move by {:.2g} of the largest value", p["difference"].get<double>());
    out += "\n";
  }
  if (bf16)
    for (auto& n : p["f32"]) out += format("  f32: {}: {}\n", n["node"].get<std::string>(), n["why"].get<std::string>());
  return out;
}

}  // namespace ge
