#include "driver/fusion_switch.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/ini.h"
#include "base/text.h"
#include "driver/compile.h"

namespace ge {
namespace {

using Names = std::map<std::string, std::vector<std::string>>;

// The article's sections and the passes of real GE that do what a rule of ours does.
const Names& aliases() {
  static const Names names = {
      {"matmul_add_fusion", {"matmul_bias", "matmul_residual"}},
      {"conv_bn_relu_fusion", {"conv_bn", "conv_bias", "conv_scale", "conv_activation", "conv_residual"}},
      {"flash_attention_fusion", {"attention"}},
      {"MatMulBiasAddFusionPass", {"matmul_bias"}},
      {"ConvBatchnormFusionPass", {"conv_bn"}},
      {"BatchNormBnInferFusionPass", {"conv_bn"}},
      {"AABiasaddConvFusion", {"conv_bias"}},
      {"FlashAttentionFusionPass", {"attention"}},
      {"LayerNormFusionPass", {"layer_norm"}},
      {"LayerNormV4FusionPass", {"layer_norm"}},
      {"GeluFusionPass", {"gelu"}},
      {"AddRmsNormFusionGraphPass", {"rms_norm"}},
      {"InplaceAddRmsNormFusionPass", {"rms_norm"}},
      {"BatchMatMulFusionPass", {"matmul_siblings"}},
      {"ATbeMatMulElemwiseFusionPass", {"cube_epilogue", "matmul_activation"}},
      {"TbeBatchmatmulElementWiseFusionPass", {"cube_epilogue", "matmul_activation"}},
      {"MatmulGeneralizedUbFusion", {"cube_epilogue"}},
      {"TbeEltwiseFusionPass", {"vector_region"}},
      {"TbeReduceElemwiseFusionPass", {"vector_region"}},
      {"TbeMultiOutputFusionPass", {"vector_region"}},
      {"AutomaticUbFusion", {"vector_region"}},
      {"SoftmaxFusionPass", {"vector_region"}},
      {"PermuteFusionPass", {"normal_form"}},
      {"FlattenV2Pass", {"normal_form"}},
      {"CastRemoveFusionPass", {"normal_form"}},
      {"CommonSubexpressionEliminationPass", {"cse"}},
      {"ConstantFoldingPass", {"fold"}},
      {"ConstToAttrPass", {}}, {"EinsumPass", {}}, {"PackFusionPass", {}}, {"UnpackFusionPass", {}}, {"PoolingFusionPass", {}},
      {"MatMul2MatMulV2FusionPass", {}}, {"TransdataCastFusionPass", {}}, {"ZConcatDFusionPass", {}}, {"ConvConcatFusionPass", {}},
      {"SplitConvConcatFusionPass", {}}, {"FusionVirtualOpSetSwitch", {}}, {"TbePool2dQuantFusionPass", {}},
  };
  return names;
}

Error malformed(std::string why) {
  return error(code::kInvalidValue, format("Value for parameter --fusion_switch_file is invalid. Reason: {}.", why), "",
               "write [rule] sections with enable = 0 or 1, JSON {\"Switch\":{\"GraphFusion\":{\"NAME\":\"off\"}}}, or lines NAME:off");
}

Status switch_rules(Options& o, const std::string& name, bool on) {
  GE_TRY(auto rules, rules_of(name));
  for (auto& r : rules) {
    if (on) o.disabled.erase(r);
    else o.disabled.insert(r);
  }
  return ok();
}

// Every fusion that `which` names; the simplifying passes stay.
template <class F>
void switch_all(Options& o, bool on, F which) {
  for (auto& r : fusion_names()) {
    if (!which(r)) continue;
    if (on) o.disabled.erase(r);
    else o.disabled.insert(r);
  }
}

Result<bool> on_or_off(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  if (text == "on" || text == "1" || text == "true") return true;
  if (text == "off" || text == "0" || text == "false") return false;
  return malformed(format("'{}' is neither on nor off", text));
}

Result<double> real(const std::string& text, const std::string& key) {
  double v;
  auto [end, e] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (e != std::errc() || end != text.data() + text.size() || !std::isfinite(v)) return malformed(format("{} = {} is no number", key, text));
  return v;
}

Result<std::vector<int64_t>> head_numbers(const std::string& text) {
  std::vector<int64_t> out;
  for (auto& part : split(text, ',')) {
    std::string_view word = trim(part);
    int64_t n = 0;
    auto [end, e] = std::from_chars(word.data(), word.data() + word.size(), n);
    if (e != std::errc() || end != word.data() + word.size() || n < 1) return malformed(format("head_num = {} is no list of numbers of heads", text));
    out.push_back(n);
  }
  return out;
}

Status ini_entry(Options& o, const std::string& section, const std::string& key, const std::string& value) {
  GE_TRY(auto rules, rules_of(section));
  if (key == "enable") {
    GE_TRY(bool on, on_or_off(value));
    return switch_rules(o, section, on);
  }
  if (key == "eps") {
    GE_TRY(double eps, real(value, key));
    if (eps < 0) return malformed("eps is negative");
    for (auto& r : rules) o.eps[r] = eps;
    return ok();
  }
  bool attention = std::find(rules.begin(), rules.end(), "attention") != rules.end();
  if (attention && key == "head_num") {
    GE_TRY(o.head_num, head_numbers(value));
    return ok();
  }
  if (attention && key == "scale") {
    GE_TRY(double s, real(value, key));
    o.attention_scale = s;
    return ok();
  }
  std::vector<std::string> known = {"enable", "eps"};
  if (attention) known.insert(known.end(), {"head_num", "scale"});
  std::string near = nearest(key, known);
  return malformed(format("[{}] has no key '{}'{}", section, key, near.empty() ? "" : ", did you mean '" + near + "'?"));
}

Status read_ini(Options& o, const std::string& text) {
  for (auto& line : ini_lines(text)) {
    if (!line.good) return malformed(format("line {}, '{}', is neither a [section] nor key = value", line.number, line.key));
    if (line.section.empty()) return malformed(format("line {}, '{}', stands before the first [section]", line.number, line.key));
    if (line.key.empty()) {
      GE_TRY(auto rules, rules_of(line.section));
      continue;
    }
    GE_RETURN_IF_ERROR(ini_entry(o, line.section, line.key, line.value));
  }
  return ok();
}

Result<bool> json_state(const std::string& name, const nlohmann::json& state) {
  if (state.is_string()) return on_or_off(state.get<std::string>());
  return malformed(format("\"{}\" is {}, neither \"on\" nor \"off\"", name, state.dump()));
}

Status read_json(Options& o, const std::string& text) {
  auto j = nlohmann::json::parse(text, nullptr, false);
  if (j.is_discarded() || !j.is_object() || !j.contains("Switch") || !j["Switch"].is_object()) return malformed("it is no JSON with a \"Switch\"");
  for (auto& [kind, group] : j["Switch"].items()) {
    if (kind != "GraphFusion" && kind != "UBFusion") return malformed(format("\"{}\" is neither GraphFusion nor UBFusion", kind));
    if (!group.is_object()) return malformed(format("\"{}\" holds no {{\"NAME\":\"off\"}}", kind));
    // ALL first: what is named beats it.
    if (!group.contains("ALL")) continue;
    GE_TRY(bool on, json_state("ALL", group["ALL"]));
    switch_all(o, on, [&](const std::string& rule) { return is_ub_fusion(rule) == (kind == "UBFusion"); });
  }
  for (auto& [kind, group] : j["Switch"].items())
    for (auto& [name, state] : group.items()) {
      if (name == "ALL") continue;
      GE_TRY(bool on, json_state(name, state));
      GE_RETURN_IF_ERROR(switch_rules(o, name, on));
    }
  return ok();
}

// `bad` makes the error for a line that is none.
template <class F>
Status read_lines(Options& o, const std::vector<std::string>& lines, F bad) {
  for (int pass = 0; pass < 2; ++pass)
    for (auto& raw : lines) {
      std::string line(without_comment(raw));
      if (line.empty()) continue;
      size_t colon = line.rfind(':');
      if (colon == std::string::npos) return bad(line);
      std::string name(trim(line.substr(0, colon)));
      auto on = on_or_off(std::string(trim(line.substr(colon + 1))));
      if (!on.ok()) return bad(line);
      if ((name == "ALL") != (pass == 0)) continue;
      if (name == "ALL") switch_all(o, *on, [](auto&) { return true; });
      else GE_RETURN_IF_ERROR(switch_rules(o, name, *on));
    }
  return ok();
}

}  // namespace

Result<std::vector<std::string>> rules_of(const std::string& name) {
  auto it = aliases().find(name);
  if (it != aliases().end()) return it->second;
  auto known = rule_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return std::vector<std::string>{name};
  std::string near = nearest(name, switch_names());
  return error(code::kInvalidValue, format("There is no fusion rule '{}'.", name), "", near.empty() ? "see ge rules" : format("did you mean '{}'?", near));
}

std::vector<std::string> switch_names() {
  auto out = rule_names();
  for (auto& [alias, rules] : aliases()) out.push_back(alias);
  out.emplace_back("all");
  return out;
}

std::string aliases_text() {
  std::string out;
  for (auto& [alias, rules] : aliases()) out += format("  {:<36} {}\n", alias, rules.empty() ? "nothing here: GE needs no such rule" : join(rules, ", "));
  return out;
}

bool is_ub_fusion(const std::string& rule) { return rule == "vector_region" || rule == "cube_epilogue"; }

Status read_fusion_switch(Options& o, const std::string& file) {
  std::string text(trim(without_mark(file)));
  if (text.starts_with("{")) return read_json(o, text);
  auto lines = split(text, '\n');
  // The first line that says something tells the two other forms apart.
  for (auto& line : lines)
    if (auto first = without_comment(line); !first.empty()) {
      if (first[0] == '[') return read_ini(o, text);
      break;
    }
  return read_lines(o, lines, [](const std::string& line) { return malformed(format("'{}' is no NAME:on or NAME:off", line)); });
}

Status read_optimization_switch(Options& o, const std::string& text) {
  return read_lines(o, split(text, ';'), [](const std::string& part) {
    return error(code::kInvalidValue, format("Value for parameter --optimization_switch is invalid. Reason: '{}' is no NAME:on or NAME:off.", part), "",
                 "write \"PassA:on;PassB:off\"");
  });
}

}  // namespace ge
