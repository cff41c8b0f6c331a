#include "driver/precision_options.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/text.h"

namespace ge {
namespace {

Error invalid(const std::string& name, const std::string& value, std::string reason, std::string fix = "") {
  return error(code::kInvalidValue, format("Value {} for parameter {} is invalid. Reason: {}.", value, name, reason), "", std::move(fix));
}

enum class Meaning { f32, bf16, f16, none };

struct Mode {
  const char* name;
  Meaning meaning;
};

constexpr Mode kModes[] = {{"force_fp32", Meaning::f32}, {"must_keep_origin_dtype", Meaning::f32},
                           {"allow_fp32_to_bf16", Meaning::bf16}, {"allow_mix_precision_bf16", Meaning::bf16},
                           {"force_fp16", Meaning::f16}, {"allow_fp32_to_fp16", Meaning::f16}, {"allow_mix_precision", Meaning::f16},
                           {"allow_mix_precision_fp16", Meaning::f16}, {"cube_fp16in_fp32out", Meaning::f16}};
constexpr Mode kModesV2[] = {{"origin", Meaning::f32}, {"mixed_bfloat16", Meaning::bf16}, {"fp16", Meaning::f16},
                             {"mixed_float16", Meaning::f16}, {"cube_fp16in_fp32out", Meaning::f16},
                             {"mixed_hif8", Meaning::none}, {"cube_hif8", Meaning::none}};

void note(Options& o, std::string text) {
  if (std::find(o.precision.notes.begin(), o.precision.notes.end(), text) == o.precision.notes.end()) o.precision.notes.push_back(std::move(text));
}

// Types as ATC's lists name them, in the model's terms.
std::vector<std::string> onnx_types(const std::string& type) {
  static const std::map<std::string, std::vector<std::string>> kNames = {
      {"Conv2D", {"Conv"}}, {"Conv3D", {"Conv"}}, {"MatMulV2", {"MatMul", "Gemm"}}, {"BatchMatMul", {"MatMul"}}, {"BatchMatMulV2", {"MatMul"}}, {"GEMM", {"Gemm"}}};
  auto it = kNames.find(type);
  return it == kNames.end() ? std::vector<std::string>{type} : it->second;
}

bool is_product(const std::string& type) {
  static const std::set<std::string> kTypes = {"MatMul", "Gemm", "Conv", "Einsum", "Attention", "MultiHeadAttention"};
  return kTypes.count(type) > 0;
}

template <class F>
Status each_line(const std::string& text, F f) {
  int64_t number = 0;
  for (auto& raw : split(text, '\n')) {
    ++number;
    std::string line(trim(std::string_view(raw).substr(0, std::string_view(raw).find_first_of("#"))));
    if (!line.empty()) GE_RETURN_IF_ERROR(f(line, number));
  }
  return ok();
}

// One type or node of op_precision_mode.
Status set_one(Options& o, const std::string& name, const std::string& value, bool by_type) {
  auto& p = o.precision;
  const bool keeps = value == "high_precision" || value == "enable_float_32_execution";
  const bool lowers = value == "high_performance";
  if (!keeps && !lowers && value != "keep_fp16" && value != "enable_hi_float_32_execution" && value != "support_out_of_bound_index")
    return invalid("op_precision_mode", name + "=" + value, "it must be high_precision, enable_float_32_execution, high_performance, keep_fp16, enable_hi_float_32_execution or support_out_of_bound_index");
  if (!keeps && !lowers) {
    note(o, format("op_precision_mode {}={} means nothing on a CPU", name, value));
    return ok();
  }
  for (auto& type : by_type ? onnx_types(name) : std::vector<std::string>{name}) {
    auto& to = by_type ? (keeps ? p.f32_types : p.bf16_types) : (keeps ? p.f32_nodes : p.bf16_nodes);
    to.insert(type);
    if (lowers && by_type && !is_product(type)) note(o, format("{} has no bf16 kernel and keeps its type", name));
  }
  return ok();
}

}  // namespace

Status set_precision_mode(Options& o, const std::string& name, const std::string& value, bool v2) {
  auto& p = o.precision;
  if (!p.option.empty() && p.option != name) return invalid(name, value, format("{} is given as well; they exclude one another", p.option));
  auto* first = v2 ? std::begin(kModesV2) : std::begin(kModes);
  auto* last = v2 ? std::end(kModesV2) : std::end(kModes);
  std::vector<std::string> names;
  for (auto* m = first; m != last; ++m) names.emplace_back(m->name);
  auto* mode = std::find_if(first, last, [&](auto& m) { return value == m.name; });
  if (mode == last) {
    auto* others = v2 ? kModes : kModesV2;
    size_t count = v2 ? std::size(kModes) : std::size(kModesV2);
    bool other = std::any_of(others, others + count, [&](auto& m) { return value == m.name; });
    std::string near = nearest(value, names);
    return invalid(name, value, "it must be one of " + join(names, ", "),
                   other ? format("{} is a value of {}", value, v2 ? "precision_mode" : "precision_mode_v2") : near.empty() ? "" : "did you mean " + near + "?");
  }
  if (mode->meaning == Meaning::none) return invalid(name, value, "no CPU computes in hif8", "use mixed_bfloat16, or origin for f32");
  p.option = name, p.mode = value;
  p.bf16 = mode->meaning == Meaning::bf16;
  if (mode->meaning == Meaning::f16)
    note(o, format("{}={}: products of f16 are not faster than those of f32 on a CPU, f32 is kept; {} gives bf16", name, value,
                   v2 ? "mixed_bfloat16" : "allow_mix_precision_bf16"));
  return ok();
}

Status read_op_precision(Options& o, const std::string& text) {
  std::string section;
  return each_line(text, [&](const std::string& line, int64_t number) -> Status {
    if (line.front() == '[' && line.back() == ']') {
      section = line.substr(1, line.size() - 2);
      if (section != "ByOpType" && section != "ByNodeName") return invalid("op_precision_mode", line, "the sections are [ByOpType] and [ByNodeName]");
      return ok();
    }
    size_t equals = line.rfind('=');
    if (equals == std::string::npos || section.empty()) return invalid("op_precision_mode", line, format("line {} is not NAME=VALUE in a section", number));
    return set_one(o, std::string(trim(line.substr(0, equals))), std::string(trim(line.substr(equals + 1))), section == "ByOpType");
  });
}

Status read_mixlist(Options& o, const std::string& text) {
  auto j = nlohmann::json::parse(text, nullptr, false);
  if (j.is_discarded() || !j.is_object()) return invalid("modify_mixlist", "(JSON)", "it is no JSON object");
  auto& p = o.precision;
  std::map<std::string, std::string> added;
  for (auto& [list, changes] : j.items()) {
    if (list != "black-list" && list != "white-list" && list != "gray-list")
      return invalid("modify_mixlist", list, "the lists are black-list, white-list and gray-list");
    if (!changes.is_object()) return invalid("modify_mixlist", list, "it must be an object with to-add and to-remove");
    for (auto& [change, types] : changes.items()) {
      if (change != "to-add" && change != "to-remove") return invalid("modify_mixlist", change, "a list has to-add and to-remove");
      if (!types.is_array()) return invalid("modify_mixlist", change, "it must be an array of operator types");
      for (auto& t : types) {
        if (!t.is_string()) return invalid("modify_mixlist", change, "it must be an array of operator types");
        const std::string type = t.get<std::string>();
        const bool add = change == "to-add";
        if (add && !added.emplace(type, list).second) return invalid("modify_mixlist", type, format("it is added to {} and to {}", added[type], list));
        for (auto& name : onnx_types(type)) {
          // Gray follows its neighbours, which are f32 everywhere.
          if ((add && list != "white-list") || (!add && list == "white-list")) p.f32_types.insert(name);
          else if (add && !is_product(name)) note(o, format("{} has no bf16 kernel and keeps its type", type));
        }
      }
    }
  }
  p.mixlist = true;
  return ok();
}

Status read_keep_dtype(Options& o, const std::string& text) {
  return each_line(text, [&](const std::string& line, int64_t) -> Status {
    constexpr std::string_view kType = "OpType::";
    if (!line.starts_with(kType)) o.precision.f32_nodes.insert(line);
    else
      for (auto& type : onnx_types(line.substr(kType.size()))) o.precision.f32_types.insert(type);
    return ok();
  });
}

Status set_fp16_inputs(ir::Graph& g, const std::vector<std::string>& names) {
  for (auto& name : names) {
    std::vector<std::string> known;
    for (auto v : g.inputs) known.push_back(g.value(v).name);
    auto at = std::find(known.begin(), known.end(), name);
    if (at == known.end()) {
      std::string near = nearest(name, known);
      return error(code::kUnknownName, format("--input_fp16_nodes names '{}', which the model does not have.", name), "its inputs are " + join(known, ", "),
                   near.empty() ? "" : format("did you mean '{}'?", near));
    }
    ir::ValueId v = g.inputs[static_cast<size_t>(at - known.begin())];
    ir::Type type = g.value(v).type;
    if (type.dtype == DType::f16) continue;
    if (type.dtype != DType::f32) return invalid("input_fp16_nodes", name, format("it is {}, not f32", ge::name(type.dtype)));
    ir::ValueId inner = g.add_value(g.value(v).name + ".f32", type);
    g.replace_uses(v, inner);
    g.value(v).type.dtype = DType::f16;
    ir::NodeId cast = g.add_node("Cast", {v}, {inner}, {{"to", static_cast<int64_t>(DType::f32)}}, "input_fp16");
    g.node(cast).rank = -1;
  }
  return ok();
}

passes::Precision precision_of(const ir::Graph& g, const Options& o) {
  auto& p = o.precision;
  passes::Precision out{p.bf16, p.bf16_types, p.bf16_nodes, p.f32_types, p.f32_nodes, {}};
  std::vector<std::string> names;
  std::set<std::string> types;
  for (auto id : g.order()) {
    auto& n = g.node(id);
    out.types[n.name] = n.op;
    for (auto& origin : n.origin) out.types[origin] = n.op;
    names.push_back(n.origin.empty() ? n.name : n.origin[0]);
    types.insert(n.op);
  }
  for (auto* list : {&p.f32_nodes, &p.bf16_nodes})
    for (auto& name : *list) {
      if (out.types.count(name)) continue;
      std::string near = nearest(name, names);
      log(LogLevel::warning, format("The precision of node '{}' is given, which the model does not have{}", name, near.empty() ? "" : format("; did you mean '{}'?", near)));
    }
  if (p.mixlist && !p.bf16) log(LogLevel::warning, "modify_mixlist changes nothing without a precision_mode that mixes precisions (mixed_bfloat16)");
  for (auto& text : p.notes) log(LogLevel::warning, text);
  return out;
}

}  // namespace ge
