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
#include "tensor/dtype.h"

namespace ge {
namespace {

using Json = nlohmann::ordered_json;

std::string expression(const om::ProgramT& p, int32_t index, int depth = 0) {
  if (index < 0 || static_cast<size_t>(index) >= p.exprs.size() || depth > 20) return "?";
  const om::Expr& e = p.exprs[static_cast<size_t>(index)];
  auto sub = [&](int32_t i) { return expression(p, i, depth + 1); };
  switch (e.op()) {
    case om::ExprOp::constant: return format("{}", e.imm());
    case om::ExprOp::symbol: return p.symbols[static_cast<size_t>(e.imm())]->name;
    case om::ExprOp::add: return format("{} + {}", sub(e.a()), sub(e.b()));
    case om::ExprOp::mul: return format("{}*{}", sub(e.a()), sub(e.b()));
    default: {
      std::string s = format("{}({}, {}", om::EnumNameExprOp(e.op()), sub(e.a()), sub(e.b()));
      return e.op() == om::ExprOp::select ? s + ", " + sub(e.c()) + ")" : s + ")";
    }
  }
}

// "a, b, c and 5 more".
std::string some(const Json& names, size_t most) {
  std::vector<std::string> shown;
  for (auto& n : names)
    if (shown.size() < most) shown.push_back(n.get<std::string>());
  std::string s = join(shown, ", ");
  return names.size() > most ? s + format(" and {} more", names.size() - most) : s;
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
  for (int32_t e : port.dims) out.push_back(expression(p, e));
  return out;
}

std::string port_text(const om::ProgramT& p, const om::PortT& port) {
  return format("{} {}[{}]", port.name, name(static_cast<DType>(port.dtype)), join(port_dims(p, port), ","));
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
    out += format("  {} -> {}: {}{}\n", f["rule"].get<std::string>(), f["node"].get<std::string>(), some(f["origins"], 8), in);
  }
  out += nested_text(r);
  out += format("near misses: {}\n", r["near_misses"].size());
  for (auto& m : r["near_misses"]) {
    out += format("  {} at {} ({} of {} nodes): {}", m["rule"].get<std::string>(), m["anchor"].get<std::string>(), m["matched"].get<int>(), m["of"].get<int>(), m["why"].get<std::string>());
    if (!m["blocker"].get<std::string>().empty()) out += format(" [blocked by {}]", m["blocker"].get<std::string>());
    if (!m["help"].get<std::string>().empty()) out += format("; {}", m["help"].get<std::string>());
    out += "\n";
  }
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
  std::string out;
  if (!r.contains("near_misses")) return out;
  for (auto& m : r["near_misses"]) {
    auto text = [&](const char* key) { return m[key].get<std::string>(); };
    auto title = kTitles.find(text("rule"));
    if (title == kTitles.end()) continue;
    out += format("[GE] WARN: Fusion pattern {} not matched\n[GE] WARN:   rule {} at node {}: {}", title->second, text("rule"), text("anchor"), text("why"));
    if (!text("blocker").empty()) out += format(" (in the way: {})", text("blocker"));
    if (!text("help").empty()) out += format("; {}", text("help"));
    out += "\n";
  }
  return out;
}

// " in m_weight_combined", " in 12 files, weight/weight_0a1b... and more"; "" for weights in the .om file.
std::string weight_place(const om::ModelT& model) {
  auto& files = model.weight_files;
  if (files.empty()) return "";
  return files.size() == 1 ? " in " + files[0]->name : format(" in {} files: {} ...", files.size(), files[0]->name);
}

// One line for each task of a program.
std::string tasks_text(const om::ModelT& model, const om::ProgramT& p) {
  std::string out;
  static constexpr const char* kUnits[] = {"cube", "vector", "host"};
  for (size_t i = 0; i < p.tasks.size(); ++i) {
    auto& t = *p.tasks[i];
    auto& call = *t.alternatives[0];
    auto views = [&](auto& list) {
      std::vector<std::string> parts;
      for (auto& v : list) {
        if (v->buffer < 0) {
          parts.push_back("-");
          continue;
        }
        std::vector<std::string> dims;
        for (int32_t e : v->dims) dims.push_back(expression(p, e));
        auto& b = *p.buffers[static_cast<size_t>(v->buffer)];
        parts.push_back(format("{}{} {}[{}]", om::EnumNameBufferKind(b.kind)[0], v->buffer, name(static_cast<DType>(v->dtype)), join(dims, ",")));
      }
      return join(parts, ", ");
    };
    out += format("{:4} lane {} {:6} {:<18} {} ({}) -> {}\n", i, t.lane, kUnits[std::min<int>(t.unit, 2)], model.kernels[static_cast<size_t>(call.kernel)], t.name, views(call.ins), views(call.outs));
  }
  return out;
}

std::string inspect_text(const om::Package& package, bool tasks) {
  auto& model = package.model;
  auto& p = *model.programs[static_cast<size_t>(model.entries[0]->program)];
  std::string out = format("model: {}\nproducer: {}\n", model.name, model.producer);
  if (!model.command.empty()) out += format("command: {}\n", model.command);
  if (!model.source_hash.empty()) out += format("source hash: {}\n", model.source_hash);
  for (auto& port : p.inputs) out += format("input: {}\n", port_text(p, *port));
  for (auto& port : p.outputs) out += format("output: {}\n", port_text(p, *port));
  out += format("tasks: {}\nweights: {}{}\n", p.tasks.size(), bytes_text(static_cast<double>(om::weight_bytes(package))), weight_place(model));
  Json r = notes_of(package);
  if (r.contains("memory") && r["memory"].contains("arena"))
    out += format("arena: {} for {} thread, lower bound {}{}\n", bytes_text(r["memory"]["arena"].get<double>()), r["memory"]["threads"].get<int>(),
                  bytes_text(r["memory"]["lower_bound"].get<double>()), r["memory"]["proved"].get<bool>() ? " (proved: no smaller one exists)" : "");
  for (auto& s : p.states) {
    auto& t = *model.states[static_cast<size_t>(s->state)];
    std::vector<std::string> dims;
    for (size_t k = 0; k < t.dims.size(); ++k) dims.push_back(static_cast<int>(k) == t.axis ? format("up to {}", t.dims[k]) : t.dims[k] < 0 ? "?" : format("{}", t.dims[k]));
    out += format("state: {} {}[{}]\n", t.name, name(static_cast<DType>(t.dtype)), join(dims, ","));
  }
  for (const char* kind : {"state", "pool"}) {
    bool said = r.contains("memory") && r["memory"].contains(kind) && r["memory"][kind].is_number();
    out += format("{}: {}\n", kind, bytes_text(said ? r["memory"][kind].get<double>() : 0.0));
  }
  std::map<int, int> lanes;
  for (auto& t : p.tasks) ++lanes[t->lane];
  for (auto& [lane, count] : lanes) out += format("lane {}: {} tasks\n", lane, count);
  if (!tasks) return out;
  out += tasks_text(model, p);
  for (size_t k = 0; k < model.programs.size(); ++k)
    if (model.programs[k].get() != &p) out += format("nested graph {}\n", k) + tasks_text(model, *model.programs[k]);
  return out;
}

}  // namespace ge
