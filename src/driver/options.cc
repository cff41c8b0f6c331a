#include "driver/options.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "driver/compile.h"

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

Status set_disabled(Options& o, const std::string& name, const std::string& value) {
  auto known = rule_names();
  for (auto& part : split(value, ',')) {
    std::string rule(trim(part));
    if (rule.empty()) continue;
    if (rule == "all") {
      o.fusion = false;
      continue;
    }
    if (std::find(known.begin(), known.end(), rule) == known.end()) {
      std::string near = nearest(rule, known);
      return invalid(name, rule, "there is no such fusion rule; there are all, " + join(known, ", "), near.empty() ? "" : "did you mean " + near + "?");
    }
    o.disabled.insert(rule);
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
    {"disable_reuse_memory", [](Options& o, const std::string& n, const std::string& v) { return set_bool(o.reuse_memory, n, v, true); }},
    {"enable_mem_reuse", [](Options& o, const std::string& n, const std::string& v) { return set_bool(o.reuse_memory, n, v); }},
    {"disable_fusion", set_disabled},
    {"mem_allocator_strategy", [](Options& o, const std::string& n, const std::string& v) { return set_number(o.allocator_strategy, n, v, 0, 2); }},
    {"mem_workspace_size", [](Options& o, const std::string& n, const std::string& v) { return set_number(o.workspace_limit, n, v, 0, INT64_MAX); }},
    {"graph_name", [](Options& o, const std::string&, const std::string& v) -> Status {
       o.name = v;
       return ok();
     }},
    {"reference", [](Options& o, const std::string& n, const std::string& v) { return set_bool(o.reference, n, v); }},
    {"verify_ir", [](Options& o, const std::string& n, const std::string& v) { return set_bool(o.verify_ir, n, v); }},
};

}  // namespace

std::vector<std::string> option_names() {
  std::vector<std::string> out;
  for (auto& e : kOptions) out.emplace_back(e.name);
  return out;
}

Status set_option(Options& o, const std::string& name, const std::string& value) {
  for (auto& e : kOptions)
    if (name == e.name) return e.set(o, name, value);
  std::string near = nearest(name, option_names());
  return error(code::kInvalidValue, format("There is no option {}.", name), "the options are " + join(option_names(), ", "),
               near.empty() ? "" : "did you mean " + near + "?");
}

}  // namespace ge
