#include "driver/fusion_switch.h"

#include <ini.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

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

// Every fusion; the simplifying passes stay.
void switch_all(Options& o, bool on) {
  for (auto& r : fusion_names()) {
    if (on) o.disabled.erase(r);
    else o.disabled.insert(r);
  }
}

Result<bool> on_or_off(const std::string& text) {
  if (text == "on" || text == "1" || text == "true") return true;
  if (text == "off" || text == "0" || text == "false") return false;
  return malformed(format("'{}' is neither on nor off", text));
}

Result<double> real(const std::string& text, const std::string& key) {
  double v;
  auto [end, e] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (e != std::errc() || end != text.data() + text.size()) return malformed(format("{} = {} is no number", key, text));
  return v;
}

struct Ini {
  Options* o;
  Status status;
};

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
    o.head_num.clear();
    for (auto& part : split(value, ',')) {
      GE_TRY(double n, real(std::string(trim(part)), key));
      o.head_num.push_back(static_cast<int64_t>(n));
    }
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

int ini_handler(void* user, const char* section, const char* name, const char* value) {
  auto& ini = *static_cast<Ini*>(user);
  if (ini.status.ok()) ini.status = ini_entry(*ini.o, section, name, value);
  return ini.status.ok();
}

Status read_ini(Options& o, const std::string& text) {
  Ini ini{&o, {}};
  int line = ini_parse_string(text.c_str(), ini_handler, &ini);
  if (!ini.status.ok()) return std::move(ini.status);
  return line ? Status(malformed(format("line {} cannot be read", line))) : Status();
}

Status read_json(Options& o, const std::string& text) {
  auto j = nlohmann::json::parse(text, nullptr, false);
  if (j.is_discarded() || !j.is_object() || !j.contains("Switch") || !j["Switch"].is_object()) return malformed("it is no JSON with a \"Switch\"");
  for (auto& [kind, group] : j["Switch"].items()) {
    if ((kind != "GraphFusion" && kind != "UBFusion") || !group.is_object()) return malformed(format("\"{}\" is neither GraphFusion nor UBFusion", kind));
    // ALL first: what is named beats it.
    if (group.contains("ALL")) {
      GE_TRY(bool on, on_or_off(group["ALL"].is_string() ? group["ALL"].get<std::string>() : ""));
      switch_all(o, on);
    }
  }
  for (auto& [kind, group] : j["Switch"].items())
    for (auto& [name, state] : group.items()) {
      if (name == "ALL") continue;
      GE_TRY(bool on, on_or_off(state.is_string() ? state.get<std::string>() : ""));
      GE_RETURN_IF_ERROR(switch_rules(o, name, on));
    }
  return ok();
}

Status read_lines(Options& o, const std::vector<std::string>& lines) {
  for (int pass = 0; pass < 2; ++pass)
    for (auto& raw : lines) {
      std::string line(trim(raw.substr(0, raw.find('#'))));
      if (line.empty()) continue;
      size_t colon = line.rfind(':');
      if (colon == std::string::npos) return malformed(format("'{}' is no NAME:on or NAME:off", line));
      std::string name(trim(line.substr(0, colon)));
      GE_TRY(bool on, on_or_off(std::string(trim(line.substr(colon + 1)))));
      if ((name == "ALL") != (pass == 0)) continue;
      if (name == "ALL") switch_all(o, on);
      else GE_RETURN_IF_ERROR(switch_rules(o, name, on));
    }
  return ok();
}

}  // namespace

Result<std::vector<std::string>> rules_of(const std::string& name) {
  auto it = aliases().find(name);
  if (it != aliases().end()) return it->second;
  auto known = rule_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return std::vector<std::string>{name};
  for (auto& [alias, rules] : aliases()) known.push_back(alias);
  std::string near = nearest(name, known);
  return error(code::kInvalidValue, format("There is no fusion rule '{}'.", name), "", near.empty() ? "see ge rules" : format("did you mean '{}'?", near));
}

Status read_fusion_switch(Options& o, const std::string& text) {
  std::string_view start = trim(text);
  if (start.empty()) return ok();
  if (start[0] == '{') return read_json(o, text);
  for (auto& line : split(text, '\n'))
    if (trim(line).starts_with("[")) return read_ini(o, text);
  return read_lines(o, split(text, '\n'));
}

Status read_optimization_switch(Options& o, const std::string& text) { return read_lines(o, split(text, ';')); }

Status read_graph_options(Options& o, const std::string& text) {
  auto bad = [](std::string why) {
    return error(code::kInvalidValue, format("Value for parameter --graph_options is invalid. Reason: {}.", why), "", "write ge graph_options { key: value }");
  };
  std::string plain;
  for (auto& line : split(text, '\n')) {
    // A '#' in quotes is text.
    bool quoted = false;
    for (char c : line) {
      if (c == '"') quoted = !quoted;
      if (c == '#' && !quoted) break;
      plain += c;
    }
    plain += '\n';
  }
  size_t open = plain.find('{'), close = plain.rfind('}');
  if (plain.find("graph_options") == std::string::npos || open == std::string::npos || close == std::string::npos || close < open) return bad("the block is not whole");
  for (auto& raw : split(plain.substr(open + 1, close - open - 1), '\n')) {
    std::string line(trim(raw));
    if (line.empty()) continue;
    size_t colon = line.find(':');
    if (colon == std::string::npos) return bad(format("'{}' is no key: value", line));
    std::string key(trim(line.substr(0, colon))), value(trim(line.substr(colon + 1)));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    if (key == "mem_workspace_size") {
      // KiB here, bytes in Python and on the command line.
      int64_t kib = 0;
      auto [end, e] = std::from_chars(value.data(), value.data() + value.size(), kib);
      if (e != std::errc() || end != value.data() + value.size() || kib < 0 || kib > INT64_MAX / 1024) return bad(format("mem_workspace_size: {} is no number of KiB", value));
      value = format("{}", kib * 1024);
    }
    GE_RETURN_IF_ERROR(set_option(o, key, value));
  }
  return ok();
}

}  // namespace ge
