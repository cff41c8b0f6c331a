#include "driver/compile.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "driver/shapes.h"
#include "import/onnx.h"
#include "lower/lower.h"
#include "passes/fusion.h"
#include "passes/pass.h"
#include "runtime/binding.h"
#include "runtime/model.h"

namespace ge {
namespace {

using Json = nlohmann::ordered_json;

// The compile report that stands in the file: nothing of time or machine in it.
Json report(const ir::Graph& g, const passes::Trace& trace, const lower::LowerReport& lowered) {
  Json r;
  r["fused"] = Json::array();
  for (auto& f : trace.all_fused()) r["fused"].push_back({{"rule", f.rule}, {"node", f.node}, {"origins", f.origins}});
  r["near_misses"] = Json::array();
  for (auto& m : trace.near_misses())
    r["near_misses"].push_back({{"rule", m.rule}, {"anchor", m.anchor}, {"matched", m.matched}, {"of", m.of}, {"blocker", m.blocker}, {"why", m.why}, {"help", m.help}});
  r["switched_off"] = trace.switched_off();
  r["nodes"] = g.node_count();
  r["tasks"] = lowered.tasks;
  r["reference_ops"] = lowered.reference_ops;
  r["aliases"] = {{"views", lowered.aliases.views}, {"parts", lowered.aliases.parts}, {"in_place", lowered.aliases.in_place}, {"outputs", lowered.aliases.outputs}};
  r["memory"]["weights"] = lowered.weights;
  r["memory"]["state"] = 0;
  return r;
}

// With all sizes known the arena is planned now, with the search; the file keeps the offsets.
Status plan_memory(om::Package& package, const Options& o, Json& r) {
  auto& program = *package.model.programs[0];
  if (!program.symbols.empty()) return ok();
  runtime::BindOptions bind;
  bind.threads = 1;
  bind.plan.strategy = static_cast<arena::Strategy>(o.allocator_strategy);
  bind.plan.budget_steps = o.plan_steps;
  GE_TRY(auto b, runtime::Binding::make(package, program, {}, bind));
  program.plans.push_back(b->plan());
  r["memory"]["arena"] = b->arena;
  r["memory"]["lower_bound"] = b->lower_bound;
  r["memory"]["proved"] = b->proved;
  r["memory"]["threads"] = 1;
  if (o.workspace_limit > 0 && b->arena > o.workspace_limit)
    return error(code::kTooLarge, format("The model needs an arena of {}, the limit is {}.", bytes_text(static_cast<double>(b->arena)), bytes_text(static_cast<double>(o.workspace_limit))),
                 "mem_workspace_size is too small for this model", "raise the limit or feed smaller inputs");
  return ok();
}

Result<Compiled> run_passes(ir::Graph graph, const Options& o) {
  Compiled c;
  c.graph = std::move(graph);
  GE_RETURN_IF_ERROR(set_input_shapes(c.graph, o.input_shape));
  passes::PassOptions p;
  p.disabled = o.disabled;
  p.fusion = o.fusion;
  p.verify = o.verify_ir;
  if (!o.fusion) p.disabled.insert("vector_regions");
  if (o.reference) {
    // Inference alone: the graph as the model has it.
    GE_RETURN_IF_ERROR(passes::infer(c.graph));
    return c;
  }
  passes::PassContext context{p, c.trace, {}};
  GE_RETURN_IF_ERROR(passes::run_pipeline(c.graph, context));
  for (auto& t : context.times) log(LogLevel::debug, format("pass {}: {:.2f} ms{}", t.name, t.ms, t.changed ? "" : ", no change"));
  return c;
}

Result<Compiled> finish(Compiled c, const Options& o, std::string source_hash) {
  lower::LowerOptions lo{o.reuse_memory, o.reference};
  lower::LowerReport lowered;
  GE_TRY(c.package, lower::lower(c.graph, lo, lowered));
  auto& model = c.package.model;
  if (!o.name.empty()) model.name = o.name;
  model.producer = "GE " GE_VERSION;
  model.command = o.command;
  model.source_hash = std::move(source_hash);
  Json r = report(c.graph, c.trace, lowered);
  GE_RETURN_IF_ERROR(plan_memory(c.package, o, r));
  c.package.notes = r.dump();
  return c;
}

Result<Compiled> timed(Result<ir::Graph> graph, const Options& o, std::string source_hash, std::chrono::steady_clock::time_point start) {
  if (!graph.ok()) return std::move(graph).take_error();
  GE_TRY(Compiled c, run_passes(*std::move(graph), o));
  GE_TRY(Compiled done, finish(std::move(c), o, std::move(source_hash)));
  done.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return done;
}

}  // namespace

Result<Compiled> compile_file(const std::string& path, const Options& options) {
  auto start = std::chrono::steady_clock::now();
  GE_TRY(auto file, MappedFile::open(path));
  Sha256 sha;
  sha.update(file->bytes());
  return timed(import_onnx_file(path), options, sha.hex(), start);
}

Result<Compiled> compile_bytes(std::span<const std::byte> bytes, const Options& options) {
  auto start = std::chrono::steady_clock::now();
  auto file = MappedFile::from_bytes(bytes);
  Sha256 sha;
  sha.update(bytes);
  return timed(import_onnx(file, ""), options, sha.hex(), start);
}

Result<Compiled> compile_graph(ir::Graph graph, const Options& options) {
  return timed(std::move(graph), options, "", std::chrono::steady_clock::now());
}

Result<Compiled> optimize_graph(ir::Graph graph, const Options& options) { return run_passes(std::move(graph), options); }

std::vector<std::string> rule_names() {
  std::vector<std::string> out;
  for (auto* f : passes::fusions()) out.push_back(f->name);
  for (auto& p : passes::pipeline()) out.emplace_back(p.name);
  out.emplace_back("vector_region");
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace ge
