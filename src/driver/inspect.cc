// `ge inspect`: what an .om file holds.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "driver/notes.h"
#include "driver/report.h"
#include "om/expressions.h"
#include "tensor/dim.h"
#include "tensor/dtype.h"

namespace ge {
namespace {

using Json = nlohmann::ordered_json;

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
        for (int32_t e : v->dims) dims.push_back(om::text(p, e));
        auto& b = *p.buffers[static_cast<size_t>(v->buffer)];
        parts.push_back(format("{}{} {}[{}]", om::EnumNameBufferKind(b.kind)[0], v->buffer, name(static_cast<DType>(v->dtype)), join(dims, ",")));
      }
      return join(parts, ", ");
    };
    out += format("{:4} lane {} {:6} {:<18} {} ({}) -> {}\n", i, t.lane, kUnits[std::min<int>(t.unit, 2)], model.kernels[static_cast<size_t>(call.kernel)], t.name, views(call.ins), views(call.outs) + (call.condition < 0 ? "" : format(" where {}", om::text(p, call.condition))));
  }
  return out;
}

// "batch: 1 to 8 (axis 0 of x)", or what decides the size.
std::string symbol_line(const om::ModelT& model, const om::ProgramT& p, const om::SymbolT& s) {
  int64_t sign = 1;
  std::string out = om::symbol_text(s, sign) + ": ";
  if (s.state >= 0) return out + format("what state {} holds", model.states[static_cast<size_t>(p.states[static_cast<size_t>(s.state)]->state)]->name);
  if (s.input < 0) return out + (s.task >= 0 && static_cast<size_t>(s.task) < p.tasks.size() ? format("decided by {} while running", p.tasks[static_cast<size_t>(s.task)]->name) : "decided while running");
  out += s.max == INT64_MAX ? format("{} and more", s.min) : s.min == s.max ? format("{}", s.min) : format("{} to {}", s.min, s.max);
  return static_cast<size_t>(s.input) < p.inputs.size() ? out + format(" (axis {} of {})", s.axis, p.inputs[static_cast<size_t>(s.input)]->name) : out;
}

// The sizes that users give, with their ranges, and the gears.
std::string sizes_text(const om::ModelT& model, const om::ProgramT& p) {
  std::string out;
  std::set<std::string> said;
  for (auto& s : p.symbols)
    if (std::string line = symbol_line(model, p, *s); said.insert(line).second) out += "size: " + line + "\n";
  const size_t each = p.gear_symbols.size();
  if (each == 0) return out;
  std::vector<std::string> names, gears;
  for (int32_t s : p.gear_symbols) names.push_back(p.symbols[static_cast<size_t>(s)]->name);
  for (size_t at = 0; at + each <= p.gears.size(); at += each) {
    std::vector<std::string> one;
    for (size_t i = 0; i < each; ++i) one.push_back(format("{}", p.gears[at + i]));
    gears.push_back(join(one, ","));
  }
  return out + format("gears ({}), no other sizes: {}\n", join(names, ","), join(gears, "; "));
}

// The program's expressions as sizes in normal form; none where one is too long to be read.
std::optional<std::vector<Dim>> readable_sizes(const om::ProgramT& p) {
  constexpr size_t kMostTerms = 16;
  std::vector<Dim> out;
  for (auto& e : p.exprs) {
    auto at = [&](int32_t i) { return i >= 0 && static_cast<size_t>(i) < out.size() ? out[static_cast<size_t>(i)] : Dim(); };
    auto call = [&](DimCall c) { return c == DimCall::select ? Dim::call(c, {at(e.a()), at(e.b()), at(e.c())}) : Dim::call(c, {at(e.a()), at(e.b())}); };
    switch (e.op()) {
      case om::ExprOp::constant: out.push_back(e.imm()); break;
      case om::ExprOp::symbol: out.push_back(Dim::symbol(p.symbols[static_cast<size_t>(e.imm())]->name)); break;
      case om::ExprOp::add: out.push_back(at(e.a()) + at(e.b())); break;
      case om::ExprOp::mul: out.push_back(at(e.a()) * at(e.b())); break;
      case om::ExprOp::floordiv: out.push_back(call(DimCall::floordiv)); break;
      case om::ExprOp::mod: out.push_back(call(DimCall::mod)); break;
      case om::ExprOp::max: out.push_back(call(DimCall::max)); break;
      case om::ExprOp::min: out.push_back(call(DimCall::min)); break;
      case om::ExprOp::broadcast: out.push_back(call(DimCall::broadcast)); break;
      case om::ExprOp::less: out.push_back(call(DimCall::less)); break;
      case om::ExprOp::equal: out.push_back(call(DimCall::equal)); break;
      case om::ExprOp::scaled: out.push_back(call(DimCall::scaled)); break;
      default: out.push_back(call(DimCall::select));
    }
    if (out.back().terms().size() > kMostTerms) return std::nullopt;
  }
  return out;
}

// What the tensors take that are alive at the peak, as an expression over the sizes: the part of the arena that does not depend
// on threads. "" where data decide sizes or nobody could read it.
std::string peak_text(const om::ProgramT& p) {
  constexpr int64_t kUsual = 64;   // where the peak is looked for
  constexpr size_t kLongest = 160;
  std::vector<int64_t> symbols, values;
  for (auto& s : p.symbols) {
    if (s->input < 0) return "";
    symbols.push_back(std::clamp(kUsual, s->min, s->max));
  }
  // What has no part in some runs: no one expression is the peak of all.
  for (auto& t : p.tasks)
    if (t->alternatives[0]->condition >= 0) return "";
  auto dims = readable_sizes(p);
  if (!dims || !om::evaluate(p, symbols, values).ok()) return "";
  auto alive = [&](const om::BufferT& b, int32_t t) { return b.kind == om::BufferKind::arena && b.bytes >= 0 && (!p.reuse || (b.first <= t && t <= b.last)); };
  int32_t peak = 0;
  int64_t most = -1;
  for (int32_t t = 0; t < static_cast<int32_t>(p.tasks.size()); ++t) {
    int64_t sum = 0;
    for (auto& b : p.buffers)
      if (alive(*b, t) && __builtin_add_overflow(sum, values[static_cast<size_t>(b->bytes)], &sum)) return "";
    if (sum > most) most = sum, peak = t;
  }
  Dim sum;
  for (auto& b : p.buffers)
    if (alive(*b, peak)) sum = sum + (*dims)[static_cast<size_t>(b->bytes)];
  const std::string text = sum.text();
  return most <= 0 || text.size() > kLongest ? "" : format("; tensors take {} bytes at the peak ({})", text, p.tasks[static_cast<size_t>(peak)]->name);
}

std::string arena_line(const Json& arena, const std::string& sizes, int threads) {
  return format("arena{}: {} for {} thread{}, lower bound {}{}\n", sizes.empty() ? "" : " for " + sizes, bytes_text(arena["arena"].get<double>()), threads, threads == 1 ? "" : "s",
                bytes_text(arena["lower_bound"].get<double>()), arena["proved"].get<bool>() ? " (proved: no smaller one exists)" : "");
}

// Of a model of fixed sizes, of each set of sizes that was planned while compiling, and how it follows from all others.
std::string arena_text(const om::ProgramT& p, const Json& r) {
  if (!r.contains("memory")) return "";
  auto& memory = r["memory"];
  if (p.symbols.empty()) return memory.contains("arena") ? arena_line(memory, "", memory["threads"].get<int>()) : "";
  std::string out;
  for (auto& plan : memory.value("planned", Json::array())) {
    std::vector<std::string> sizes;
    for (auto& [name, n] : plan["sizes"].items()) sizes.push_back(format("{}={}", name, n.dump()));
    out += arena_line(plan, join(sizes, " "), 1);
  }
  if (!p.gears.empty() && !out.empty()) return out;
  std::vector<std::string> sizes;
  for (auto& s : p.symbols)
    if (s->input >= 0) sizes.push_back(format("--size {}={}", s->name, std::clamp<int64_t>(4, s->min, s->max)));
  if (!sizes.empty()) return out + format("arena{}: by the sizes ({} gives it){}\n", out.empty() ? "" : " for others", join(sizes, " "), peak_text(p));
  return out + "arena: by sizes that are decided while running\n";
}

}  // namespace

std::string inspect_text(const om::Package& package, bool tasks) {
  auto& model = package.model;
  auto& p = *model.programs[static_cast<size_t>(model.entries[0]->program)];
  std::string out = format("model: {}\nproducer: {}\n", model.name, model.producer);
  if (!model.command.empty()) out += format("command: {}\n", model.command);
  if (!model.source_hash.empty()) out += format("source hash: {}\n", model.source_hash);
  for (auto& port : p.inputs) out += format("input: {}\n", port_text(p, *port));
  for (auto& port : p.outputs) out += format("output: {}\n", port_text(p, *port));
  out += sizes_text(model, p);
  out += format("tasks: {}\nweights: {}{}\n", p.tasks.size(), bytes_text(static_cast<double>(om::weight_bytes(package))), weight_place(model));
  Json r = notes_of(package);
  out += arena_text(p, r);
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
