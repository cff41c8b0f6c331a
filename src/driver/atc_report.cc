#include "driver/atc_report.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "driver/fusion_switch.h"
#include "driver/notes.h"
#include "driver/report.h"
#include "import/onnx.h"
#include "om/writer.h"
#include "passes/pass.h"

namespace ge {
namespace {
using Json = nlohmann::ordered_json;
}

Result<bool> write_check_report(const std::string& model, const std::string& path) {
  auto checked = check_onnx_file(model);
  if (!checked.ok()) return std::move(checked).context(model).take_error();
  auto nodes = *std::move(checked);
  int failed = 0;
  Json ops = Json::array();
  for (auto& n : nodes) {
    Json op = {{"name", n.name}, {"type", n.type}, {"result", n.why.empty() ? "success" : "failed"}};
    if (!n.why.empty()) {
      ++failed;
      op["cause"] = Json::array({{{"code", code::kUnsupportedOp}, {"message", n.why}}});
    }
    ops.push_back(std::move(op));
  }
  Json r = {{"result", failed ? "failed" : "success"}, {"total", nodes.size()}, {"pass", nodes.size() - static_cast<size_t>(failed)}, {"fail", failed}, {"op", std::move(ops)}};
  GE_RETURN_IF_ERROR(write_file(path, r.dump(2) + "\n"));
  return failed == 0;
}

Status write_compile_stat(const om::Package& p, const std::string& path) {
  Json notes = notes_of(p);
  std::map<std::string, int> times, tried;
  if (notes.contains("fused")) {
    for (auto& f : notes["fused"]) ++times[f["rule"].get<std::string>()];
    for (auto& m : notes["near_misses"]) ++tried[m["rule"].get<std::string>()];
  }
  Json graph = Json::object(), ub = Json::object();
  for (auto& [rule, n] : times)
    (is_ub_fusion(rule) ? ub : graph)[rule] = {{"effect_times", format("{}", n)}, {"match_times", format("{}", n + tried[rule])}};
  Json r;
  r["session_and_graph_id_0_0"] = {{"graph_fusion", graph}, {"ub_fusion", ub}};
  return write_file(path, r.dump(2) + "\n");
}

Result<std::string> onnx_json(const std::string& path, bool shapes) {
  GE_TRY(auto g, import_onnx_file(path));
  if (shapes) GE_RETURN_IF_ERROR(passes::infer(g));
  Json r = {{"version", "GE " GE_VERSION}, {"name", g.name}};
  auto values = [&](const std::vector<ir::ValueId>& list) {
    Json out = Json::array();
    for (auto v : list) {
      if (!v) {
        out.push_back(nullptr);
        continue;
      }
      Json one = {{"name", g.value(v).name}};
      if (shapes || g.is_input(v)) one["type"] = ir::text(g.value(v).type);
      out.push_back(std::move(one));
    }
    return out;
  };
  r["input"] = values(g.inputs);
  r["output"] = values(g.outputs);
  r["op"] = Json::array();
  for (auto id : g.order()) {
    auto& n = g.node(id);
    r["op"].push_back({{"name", n.name}, {"type", n.op}, {"input", values(n.inputs)}, {"output", values(n.outputs)}});
  }
  return r.dump(2) + "\n";
}

std::string om_json(const om::Package& p) {
  auto& program = *p.model.programs[static_cast<size_t>(p.model.entries[0]->program)];
  Json r = {{"atc_version", p.model.producer}, {"atc_cmdline", p.model.command}, {"name", p.model.name}, {"source_hash", p.model.source_hash}, {"weight_size", om::weight_bytes(p)}};
  for (auto* ports : {&program.inputs, &program.outputs}) {
    Json list = Json::array();
    for (auto& port : *ports) list.push_back({{"name", port->name}, {"type", std::string(name(static_cast<DType>(port->dtype)))}, {"shape", port_dims(program, *port)}});
    r[ports == &program.inputs ? "input" : "output"] = std::move(list);
  }
  static constexpr const char* kUnits[] = {"cube", "vector", "host"};
  Json tasks = Json::array();
  for (auto& t : program.tasks) {
    Json one = {{"name", t->name}, {"op", t->op}, {"unit", kUnits[std::min<int>(t->unit, 2)]}, {"origin", t->origins}};
    for (auto& a : t->alternatives) one["kernel"].push_back(p.model.kernels[static_cast<size_t>(a->kernel)]);
    tasks.push_back(std::move(one));
  }
  r["task"] = std::move(tasks);
  Json notes = notes_of(p);
  if (!notes.empty()) r["report"] = std::move(notes);
  return r.dump(2) + "\n";
}

std::string display_model_info(const om::Package& p, int64_t file_bytes) {
  auto& program = *p.model.programs[static_cast<size_t>(p.model.entries[0]->program)];
  Json notes = notes_of(p);
  int64_t arena = notes.contains("memory") && notes["memory"].contains("arena") ? notes["memory"]["arena"].get<int64_t>() : 0;
  int64_t weights = om::weight_bytes(p), inside = p.external_weight == om::ExternalWeight::none ? weights : 0;
  std::set<int> lanes;
  for (auto& t : program.tasks) lanes.insert(t->lane);
  std::string soc = "cpu";
  for (auto& word : split(p.model.command, ' '))
    if (word.starts_with("--soc_version=")) soc = word.substr(14);
  return format("============ Display Model Info start ============\n"
                "Original Atc command line: {}\n"
                "system info: atc_version[{}], soc_version[{}], framework_type[5].\n"
                "resource info: memory_size[{} B], weight_size[{} B], stream_num[{}], event_num[0].\n"
                "om info: modeldef_size[{} B], weight_data_size[{} B], tbe_kernels_size[0 B], cust_aicpu_kernel_store_size[0 B], task_info_size[{} tasks], so_store_size[0 B].\n"
                "============ Display Model Info end   ============\n",
                p.model.command, p.model.producer, soc, arena, weights, lanes.size(), file_bytes - inside, inside, program.tasks.size());
}

}  // namespace ge
