#include "driver/options.h"

#include <algorithm>
#include <charconv>

#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "driver/atc_options.h"
#include "driver/compile.h"
#include "driver/fusion_switch.h"
#include "driver/graph_options.h"
#include "driver/precision_options.h"
#include "lower/lanes.h"

namespace ge {
namespace {

Error invalid(const std::string& name, const std::string& value, std::string reason, std::string fix = "") {
  return error(code::kInvalidValue, format("Value {} for parameter {} is invalid. Reason: {}.", value, name, reason), "", std::move(fix));
}

Status set_bool(bool& to, const std::string& name, const std::string& value, bool inverted = false) {
  bool on = value == "1" || value == "true" || value == "on";
  if (!on && value != "0" && value != "false" && value != "off") return invalid(name, value, "it must be 0 or 1");
  to = on != inverted;
  return ok();
}

template <class T>
Status set_number(T& to, const std::string& name, const std::string& value, int64_t low, int64_t high) {
  int64_t v = 0;
  auto [end, e] = std::from_chars(value.data(), value.data() + value.size(), v);
  if (e != std::errc() || end != value.data() + value.size() || v < low || v > high)
    return invalid(name, value, format("it must be a number from {} to {}", low, high));
  to = static_cast<T>(v);
  return ok();
}

Status set_file(Options& o, const std::string& name, const std::string& path, Status (*read)(Options&, const std::string&)) {
  GE_TRY(auto file, MappedFile::open(path));
  std::string text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  return read(o, text).context(format("--{} {}", name, path));
}

Status set_choice(std::string& to, const std::string& name, const std::string& value, const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
    const std::string near = nearest(value, choices);
    return invalid(name, value, "it must be one of " + join(choices, ", "), near.empty() ? "" : "did you mean " + near + "?");
  }
  to = value;
  return ok();
}

std::vector<std::string> list_of(const std::string& value, char separator) {
  std::vector<std::string> out;
  for (auto& part : split(value, separator))
    if (!trim(part).empty()) out.emplace_back(trim(part));
  return out;
}

Status set_raw(Options& o, const std::string& name, const std::string& value);

Status set_disabled(Options& o, const std::string& name, const std::string& value) {
  for (auto& part : split(value, ',')) {
    std::string rule(trim(part));
    if (rule.empty()) continue;
    if (rule == "all") {
      o.fusion = false;
      continue;
    }
    auto rules = rules_of(rule);
    if (!rules.ok()) {
      std::string near = nearest(rule, switch_names());
      return invalid(name, rule, "there is no such fusion rule", near.empty() ? "`ge rules` lists all names" : "did you mean " + near + "? `ge rules` lists all names");
    }
    o.disabled.insert(rules->begin(), rules->end());
  }
  return ok();
}

struct Entry {
  const char* name;
  Status (*set)(Options&, const std::string& name, const std::string& value);
};

const Entry kOptions[] = {
    {"input_shape", [](Options& o, const std::string&, const std::string& v) -> Status {
       GE_TRY(o.input_shape, parse_input_shape(v));
       return ok();
     }},
    {"feed", [](Options& o, const std::string&, const std::string& v) -> Status {
       o.feed = list_of(v, ';');
       return ok();
     }},
    {"state", [](Options& o, const std::string&, const std::string& v) -> Status { o.state = v == "off" || v == "0" ? "" : v; return ok(); }},
    {"state_dtype", [](Options& o, const std::string& n, const std::string& v) { return set_choice(o.state_dtype, n, v, {"f32", "f16", "bf16", "int8"}); }},
    {"input_shape_range", [](Options& o, const std::string&, const std::string& v) -> Status {
       // The older spelling: the sizes stand in brackets.
       std::string plain;
       std::copy_if(v.begin(), v.end(), std::back_inserter(plain), [](char c) { return c != '[' && c != ']'; });
       GE_TRY(o.input_shape, parse_input_shape(plain));
       return ok();
     }},
    {"dynamic_batch_size", [](Options& o, const std::string&, const std::string& v) -> Status { o.dynamic_batch_size = v; return ok(); }},
    {"dynamic_image_size", [](Options& o, const std::string&, const std::string& v) -> Status { o.dynamic_image_size = v; return ok(); }},
    {"dynamic_dims", [](Options& o, const std::string&, const std::string& v) -> Status { o.dynamic_dims = v; return ok(); }},
    {"input_hint_shape", [](Options& o, const std::string&, const std::string& v) -> Status { o.input_hint_shape = v; return ok(); }},
    {"disable_reuse_memory", [](Options& o, const std::string& n, const std::string& v) { return set_bool(o.reuse_memory, n, v, true); }},
    {"enable_mem_reuse", [](Options& o, const std::string& n, const std::string& v) { return set_bool(o.reuse_memory, n, v); }},
    {"disable_fusion", set_disabled},
    {"mem_allocator_strategy", [](Options& o, const std::string& n, const std::string& v) { return set_number(o.allocator_strategy, n, v, 0, 2); }},
    {"mem_workspace_size", [](Options& o, const std::string& n, const std::string& v) { return set_number(o.workspace_limit, n, v, 0, INT64_MAX); }},
    {"memory_optimization_policy", [](Options& o, const std::string& n, const std::string& v) { return set_choice(o.memory_policy, n, v, {"MemoryPriority", "BalanceMode", "Speed"}); }},
    {"enable_single_stream", [](Options& o, const std::string& n, const std::string& v) { return set_bool(o.single_stream, n, v); }},
    {"multi_stream_parallel_mode", [](Options& o, const std::string&, const std::string& v) -> Status {
       GE_TRY(auto checked, lower::parse_lanes(v));
       (void)checked;
       o.multi_stream = v;
       return ok();
     }},
    {"graph_name", [](Options& o, const std::string&, const std::string& v) -> Status {
       o.name = v;
       return ok();
     }},
    {"fusion_switch_file", [](Options& o, const std::string& n, const std::string& v) { return set_file(o, n, v, read_fusion_switch); }},
    {"graph_options", [](Options& o, const std::string& n, const std::string& v) { return set_file(o, n, v, read_graph_options); }},
    {"optimization_switch", [](Options& o, const std::string&, const std::string& v) { return read_optimization_switch(o, v); }},
    {"enable_op_scope_list", [](Options& o, const std::string&, const std::string& v) -> Status {
       for (auto& op : list_of(v, ',')) o.scope.insert(op);
       return ok();
     }},
    {"verify", [](Options& o, const std::string& n, const std::string& v) { return set_bool(o.verify, n, v); }},
    {"out_nodes", [](Options& o, const std::string&, const std::string& v) -> Status {
       o.out_nodes = list_of(v, ';');
       return ok();
     }},
    {"output_type", [](Options& o, const std::string&, const std::string& v) -> Status {
       o.output_type = list_of(v, ';');
       return ok();
     }},
    {"input_format", [](Options& o, const std::string& n, const std::string& v) { return set_choice(o.input_format, n, v, {"NCHW", "NHWC", "NCDHW", "ND"}); }},
    {"topo_sorting_mode", [](Options& o, const std::string& n, const std::string& v) { return set_number(o.topo_sorting_mode, n, v, 0, 3); }},
    {"oo_level", [](Options& o, const std::string& n, const std::string& v) -> Status {
       std::string level;
       GE_RETURN_IF_ERROR(set_choice(level, n, v, {"O1", "O3"}));
       if (level == "O1") o.fusion = false;
       return ok();
     }},
    {"oo_constant_folding", [](Options& o, const std::string& n, const std::string& v) -> Status {
       bool on = true;
       GE_RETURN_IF_ERROR(set_bool(on, n, v));
       if (!on) o.disabled.insert({"fold", "fold_fused"});
       return ok();
     }},
    {"oo_dead_code_elimination", [](Options& o, const std::string& n, const std::string& v) -> Status {
       bool on = true;
       GE_RETURN_IF_ERROR(set_bool(on, n, v));
       if (!on) o.disabled.insert({"dce", "dce_last"});
       return ok();
     }},
    {"op_backend", [](Options& o, const std::string&, const std::string& v) -> Status {
       o.op_backend = v;
       return ok();
     }},
    {"external_weight", [](Options& o, const std::string& n, const std::string& v) { return set_number(o.external_weight, n, v, 0, 2); }},
    {"export_compile_stat", [](Options& o, const std::string& n, const std::string& v) { return set_number(o.export_compile_stat, n, v, 0, 2); }},
    {"split", [](Options& o, const std::string&, const std::string& v) -> Status {
       GE_TRY(o.split, parse_split(v));
       return ok();
     }},
    {"debug_dir", [](Options& o, const std::string&, const std::string& v) -> Status {
       o.debug_dir = v;
       return ok();
     }},
    {"deterministic", [](Options&, const std::string& n, const std::string& v) {
       bool on = true;  // results are the same bits in any case
       return set_bool(on, n, v);
     }},
    {"deterministic_level", [](Options&, const std::string& n, const std::string& v) {
       int level = 0;
       return set_number(level, n, v, 0, 3);
     }},
    {"op_compiler_cache_mode", [](Options& o, const std::string& n, const std::string& v) { return set_choice(o.cache_mode, n, v, {"enable", "force", "disable"}); }},
    {"op_compiler_cache_dir", [](Options& o, const std::string&, const std::string& v) -> Status {
       o.cache_dir = v;
       return ok();
     }},
    {"precision_mode", [](Options& o, const std::string& n, const std::string& v) { return set_precision_mode(o, n, v, false); }},
    {"precision_mode_v2", [](Options& o, const std::string& n, const std::string& v) { return set_precision_mode(o, n, v, true); }},
    {"op_precision_mode", [](Options& o, const std::string& n, const std::string& v) { return set_file(o, n, v, read_op_precision); }},
    {"modify_mixlist", [](Options& o, const std::string& n, const std::string& v) { return set_file(o, n, v, read_mixlist); }},
    {"keep_dtype", [](Options& o, const std::string& n, const std::string& v) { return set_file(o, n, v, read_keep_dtype); }},
    {"input_fp16_nodes", [](Options& o, const std::string&, const std::string& v) -> Status {
       o.precision.fp16_inputs = list_of(v, ';');
       return ok();
     }},
    {"precision_check", [](Options& o, const std::string& n, const std::string& v) { return set_bool(o.precision.check, n, v); }},
    {"raw_ge_options", set_raw},
    {"reference", [](Options& o, const std::string& n, const std::string& v) { return set_bool(o.reference, n, v); }},
    {"verify_ir", [](Options& o, const std::string& n, const std::string& v) { return set_bool(o.verify_ir, n, v); }},
};

// Keys of real GE, and the option of ours that each is.
const std::map<std::string, std::string>& raw_names() {
  static const std::map<std::string, std::string> names = {
      {"ge.exec.precision_mode", "precision_mode"}, {"ge.exec.precision_mode_v2", "precision_mode_v2"},
      {"ge.exec.op_precision_mode", "op_precision_mode"}, {"ge.exec.modify_mixlist", "modify_mixlist"},
      {"ge.exec.disableReuseMemory", "disable_reuse_memory"}, {"ge.fusionSwitchFile", "fusion_switch_file"},
      {"ge.optimizationSwitch", "optimization_switch"}, {"ge.oo.level", "oo_level"}, {"ge.oo.constantFolding", "oo_constant_folding"},
      {"ge.oo.deadCodeElimination", "oo_dead_code_elimination"}, {"ge.topoSortingMode", "topo_sorting_mode"},
      {"ge.exportCompileStat", "export_compile_stat"}, {"ge.inputShape", "input_shape"}, {"ge.deterministic", "deterministic"},
      {"ge.debugDir", "debug_dir"}, {"ge.externalWeight", "external_weight"}, {"ge.op_compiler_cache_mode", "op_compiler_cache_mode"}, {"ge.op_compiler_cache_dir", "op_compiler_cache_dir"}};
  return names;
}

// {"compile options": {"global": {}, "session": {}, "graph": {}}}, as text or in a file; graph beats
// session beats global.
Status set_raw(Options& o, const std::string& name, const std::string& value) {
  std::string text = value;
  if (!trim(value).starts_with("{")) {
    GE_TRY(auto file, MappedFile::open(value));
    text.assign(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  }
  auto j = nlohmann::json::parse(text, nullptr, false);
  if (j.is_discarded() || !j.is_object() || !j.contains("compile options") || !j["compile options"].is_object())
    return invalid(name, "(JSON)", "it is no JSON with \"compile options\"", "write {\"compile options\":{\"global\":{\"ge.oo.level\":\"O1\"}}}");
  for (const char* level : {"global", "session", "graph"}) {
    auto& group = j["compile options"];
    if (!group.contains(level)) continue;
    if (!group[level].is_object()) return invalid(name, level, "it must be an object");
    for (auto& [key, v] : group[level].items()) {
      auto it = raw_names().find(key);
      if (it == raw_names().end()) {
        std::vector<std::string> known;
        for (auto& [k, ours] : raw_names()) known.push_back(k);
        std::string near = nearest(key, known);
        return invalid(name, key, "this key is not known", near.empty() ? "" : "did you mean " + near + "?");
      }
      GE_RETURN_IF_ERROR(set_option(o, it->second, v.is_string() ? v.get<std::string>() : v.dump()));
    }
  }
  return ok();
}

}  // namespace

std::vector<std::string> option_names() {
  std::vector<std::string> out;
  for (auto& e : kOptions) out.emplace_back(e.name);
  return out;
}

std::string option_help(const std::string& name) {
  // Those that the command atc does not take.
  static const std::map<std::string, std::string> kOwn = {
      {"feed", "\"a;b\": inputs with a default in the model that are fed all the same"},
      {"reference", "1: every operator as it is, by its reference kernel (slow)"},
      {"verify_ir", "1: check the graph after every pass"}};
  if (auto it = kOwn.find(name); it != kOwn.end()) return it->second;
  auto* option = find_atc_option(name);
  return option ? std::string(option->answer) : "";
}

Status set_option(Options& o, const std::string& name, const std::string& value) {
  for (auto& e : kOptions)
    if (name == e.name) return e.set(o, name, value);
  // ATC's other options: what atc says to them.
  if (auto* option = find_atc_option(name)) {
    if (option->kind == AtcKind::refused) return refusal(*option);
    if (option->kind == AtcKind::own) return error(code::kInvalidValue, format("Option {} belongs to the atc command.", name), "", "leave it out");
    log(LogLevel::warning, format("{}: {}", name, option->answer));
    return ok();
  }
  std::string near = nearest(name, option_names());
  return error(code::kInvalidValue, format("There is no option {}.", name), "the options are " + join(option_names(), ", "),
               near.empty() ? "" : "did you mean " + near + "?");
}

std::string without_folder(const std::string& name, const std::string& value) {
  static const std::set<std::string> kPaths = {"model", "output", "om", "json", "check_report", "fusion_switch_file", "graph_options", "op_precision_mode",
                                               "modify_mixlist", "keep_dtype", "debug_dir", "op_compiler_cache_dir", "raw_ge_options"};
  if (!kPaths.count(name) || trim(value).starts_with("{")) return value;
  size_t end = value.find_last_not_of('/');
  if (end == std::string::npos) return "";
  size_t slash = value.rfind('/', end);
  return value.substr(slash == std::string::npos ? 0 : slash + 1, end - (slash == std::string::npos ? 0 : slash + 1) + 1);
}

}  // namespace ge
