#include "driver/compile.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "driver/cache.h"
#include "driver/closed_regions.h"
#include "driver/gears.h"
#include "driver/model_edits.h"
#include "driver/peak.h"
#include "driver/precision_options.h"
#include "driver/precision_report.h"
#include "driver/shapes.h"
#include "driver/verify.h"
#include "import/about.h"
#include "import/onnx.h"
#include "ir/print.h"
#include "lower/lanes.h"
#include "lower/lower.h"
#include "passes/expand.h"
#include "passes/fusion.h"
#include "passes/pass.h"
#include "runtime/binding.h"
#include "runtime/model.h"

namespace ge {
namespace {

using Json = nlohmann::ordered_json;

// What was compiled: its hash, and its file if it is one.
struct Source {
  std::string hash;
  std::shared_ptr<const MappedFile> file;
};

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
  r["memory"]["pool"] = 0;
  return r;
}

// The limit where sizes may change: it holds for the largest. Without a largest it cannot be checked.
Status check_limit(const om::Package& package, const Options& o, const std::vector<std::string>& tensors) {
  auto& program = *package.model.programs[0];
  std::vector<int64_t> most;
  for (auto& s : program.symbols) {
    if (s->max == INT64_MAX) {
      log(LogLevel::warning, format("mem_workspace_size is not checked: size '{}' has no upper limit; give it one with --input_shape (1~64)", s->name));
      return ok();
    }
    most.push_back(s->max);
  }
  GE_TRY(auto b, runtime::Binding::make(package, program, most, {}));
  return b->arena > o.workspace_limit ? Status(over_limit(*b, tensors, o.workspace_limit, true)) : ok();
}

void log_time(std::string_view stage, std::chrono::steady_clock::time_point start) {
  log(LogLevel::debug, format("{}: {:.2f} ms", stage, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count()));
}

// The sets of sizes that are foreseen: gears that say all of them, and the hint.
Result<std::vector<std::vector<int64_t>>> foreseen(const om::ProgramT& program, const Options& o) {
  std::vector<std::vector<int64_t>> out;
  const size_t each = program.gear_symbols.size();
  if (each > 0 && each == program.symbols.size())
    for (size_t at = 0; at < program.gears.size(); at += each) {
      std::vector<int64_t> symbols(each);
      for (size_t i = 0; i < each; ++i) symbols[static_cast<size_t>(program.gear_symbols[i])] = program.gears[at + i];
      out.push_back(std::move(symbols));
    }
  if (o.input_hint_shape.empty()) return out;
  GE_TRY(auto shapes, hinted_shapes(o.input_hint_shape, program.inputs.size()));
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!shapes[i].empty()) continue;
    for (int32_t e : program.inputs[i]->dims) {
      const om::Expr& x = program.exprs[static_cast<size_t>(e)];
      if (x.op() != om::ExprOp::constant)
        return error(code::kInvalidValue, format("Value {} for parameter --input_hint_shape is invalid. Reason: input {} ('{}') has open sizes and is left out.", o.input_hint_shape, i, program.inputs[i]->name), "", "give its sizes");
      shapes[i].push_back(x.imm());
    }
  }
  auto symbols = runtime::bind_symbols(program, shapes);
  if (!symbols.ok()) return std::move(symbols).take_error();
  out.push_back(*std::move(symbols));
  return out;
}

// With all sizes known, or foreseen, the arena is planned now, with the search; the file keeps the offsets.
Status plan_memory(om::Package& package, const Options& o, const std::vector<std::string>& tensors, Json& r) {
  auto& program = *package.model.programs[0];
  runtime::BindOptions bind;
  bind.threads = 1;
  bind.plan.strategy = static_cast<arena::Strategy>(o.allocator_strategy);
  bind.plan.budget_steps = o.plan_steps;
  if (!program.symbols.empty()) {
    GE_TRY(auto sets, foreseen(program, o));
    for (auto& symbols : sets) {
      GE_TRY(auto b, runtime::Binding::make(package, program, symbols, bind));
      program.plans.push_back(b->plan());
      if (o.workspace_limit > 0 && b->arena > o.workspace_limit) return over_limit(*b, tensors, o.workspace_limit, o.allocator_strategy == 2);
    }
    return o.workspace_limit > 0 && program.gears.empty() ? check_limit(package, o, tensors) : ok();
  }
  GE_TRY(auto b, runtime::Binding::make(package, program, {}, bind));
  program.plans.push_back(b->plan());
  r["memory"]["arena"] = b->arena;
  r["memory"]["lower_bound"] = b->lower_bound;
  r["memory"]["proved"] = b->proved;
  r["memory"]["threads"] = 1;
  if (o.workspace_limit > 0 && b->arena > o.workspace_limit)
    return over_limit(*b, tensors, o.workspace_limit, o.allocator_strategy == 2);
  return ok();
}

// The model as options want it, before any pass.
Status edit(ir::Graph& g, const Options& o) {
  GE_TRY(auto geared, geared_shapes(o));
  GE_RETURN_IF_ERROR(set_input_shapes(g, geared.shapes));
  if (!geared.gears.symbols.empty()) GE_RETURN_IF_ERROR(set_gears(g, std::move(geared.gears)));
  GE_RETURN_IF_ERROR(cut_outputs(g, o.out_nodes));
  set_input_format(g, o.input_format);
  if (!o.output_type.empty()) {
    GE_RETURN_IF_ERROR(passes::infer(g));
    GE_RETURN_IF_ERROR(set_output_types(g, o.output_type));
  }
  GE_RETURN_IF_ERROR(set_fp16_inputs(g, o.precision.fp16_inputs));
  set_order(g, o.topo_sorting_mode);
  return ok();
}

Result<Compiled> run_passes(ir::Graph graph, const Options& o, const Exclusions& off = {}, const passes::Precision* precision = nullptr) {
  Compiled c;
  c.graph = std::move(graph);
  passes::PassOptions p;
  p.precision = precision ? *precision : precision_of(c.graph, o);
  p.disabled = o.disabled;
  // An order that was asked for stays; without sharing of memory none needs less.
  if (o.topo_sorting_mode != 3 || !o.reuse_memory) p.disabled.insert("order");
  p.disabled.insert(off.rules.begin(), off.rules.end());
  p.disabled_at = off.places;
  p.scope = o.scope;
  p.attention = {o.head_num, o.attention_scale};
  p.winograd_budget = o.memory_policy == "MemoryPriority" ? 0 : o.memory_policy == "Speed" ? std::numeric_limits<double>::infinity() : 0.25;
  int dumped = 0;
  if (!o.debug_dir.empty())
    p.dump = [&](const ir::Graph& g, const std::string& pass) {
      Status s = write_file(format("{}/ge_{:02}_{}.ir", o.debug_dir, dumped++, pass), ir::print(g));
      if (!s.ok()) log(LogLevel::warning, s.error().text());
    };
  p.fusion = o.fusion;
  p.verify = o.verify_ir;
  if (!o.fusion) p.disabled.insert("vector_regions");
  if (o.reference) {
    // The graph as the model has it.
    GE_RETURN_IF_ERROR(passes::spell_out(c.graph));
    return c;
  }
  passes::PassContext context{p, c.trace, {}};
  GE_RETURN_IF_ERROR(passes::run_pipeline(c.graph, context));
  for (auto& t : context.times) log(LogLevel::debug, format("pass {}: {:.2f} ms{}", t.name, t.ms, t.changed ? "" : ", no change"));
  return c;
}

lower::LowerOptions lower_options(const Options& o) { return {o.reuse_memory, o.reference, !o.disabled.count("aliases")}; }

Result<lower::LaneOptions> lanes_of(const Options& o) {
  if (o.single_stream && !o.multi_stream.empty())
    return error(code::kExclusive, "Options [--enable_single_stream] and [--multi_stream_parallel_mode] exclude each other.", "", "Give one of them.");
  if (o.single_stream) return lower::LaneOptions{lower::LaneOptions::Mode::single, 1};
  return lower::parse_lanes(o.multi_stream.empty() ? "cv" : o.multi_stream);
}

Result<Compiled> finish(Compiled c, const Options& o, const Source& source, const std::vector<RuleVerdict>& verdicts,
                        std::optional<double> moved) {
  lower::LowerReport lowered;
  auto start = std::chrono::steady_clock::now();
  GE_TRY(c.package, lower::lower(c.graph, lower_options(o), lowered));
  log_time("lower", start);
  auto& model = c.package.model;
  GE_TRY(auto lanes, lanes_of(o));
  for (auto& p : model.programs) lower::assign_lanes(*p, lanes);
  if (!o.name.empty()) model.name = o.name;
  model.producer = "GE " GE_VERSION;
  model.command = o.command;
  model.source_hash = source.hash;
  Json r = report(c.graph, c.trace, lowered);
  for (auto& v : verdicts) r["verified"].push_back({{"rule", v.rule}, {"eps", v.eps}, {"difference", v.difference}, {"off_at", v.off_at}});
  r["closed"] = Json::array();
  if (o.fusion && !o.reference) {
    passes::PassOptions scope;
    scope.scope = o.scope;
    for (auto& region : closed_regions(c.graph, scope)) r["closed"].push_back({{"nodes", region.nodes}, {"why", region.why}, {"help", region.help}});
  }
  if (!o.op_backend.empty()) r["op_backend"] = o.op_backend;
  r["precision"] = precision_report(c.trace, o.precision, moved);
  if (source.file) {
    GE_TRY(std::string said, about_onnx(*source.file));
    r["model"] = Json::parse(said);
    if (o.name.empty())
      if (std::string graph = r["model"].value("graph", ""); !graph.empty()) model.name = graph;
  }
  start = std::chrono::steady_clock::now();
  GE_RETURN_IF_ERROR(plan_memory(c.package, o, lowered.tensors, r));
  log_time("plan", start);
  c.package.notes = r.dump();
  return c;
}

// Rules whose eps is given, or every rule that fired with --verify, are checked by running the model.
Result<std::vector<RuleVerdict>> check_rules(const ir::Graph& graph, const Compiled& c, const Options& o, Exclusions& off) {
  auto eps = o.eps;
  if (o.verify)
    for (auto& f : c.trace.all_fused()) eps.emplace(f.rule, 1e-4);
  if (eps.empty()) return std::vector<RuleVerdict>();
  return verify_rules(eps, c.trace.all_fused(), [&](const Exclusions& x) -> Result<om::Package> {
    GE_TRY(Compiled one, run_passes(graph, o, x));
    lower::LowerReport ignored;
    return lower::lower(one.graph, lower_options(o), ignored);
  }, off);
}

// How far the outputs are from those of the other precision: bf16 against f32, whichever of the two was built.
Result<std::optional<double>> check_precision(const ir::Graph& graph, const Compiled& c, const Options& o, const Exclusions& off) {
  const bool built = std::any_of(c.trace.precision.begin(), c.trace.precision.end(), [](auto& n) { return n.bf16; });
  const bool could = std::any_of(c.trace.precision.begin(), c.trace.precision.end(), [](auto& n) { return n.best < n.f32; });
  if (!built && !could) return std::optional<double>();
  passes::Precision other = precision_of(graph, o);
  other.bf16 = !built;
  if (built) other.bf16_types.clear(), other.bf16_nodes.clear();
  GE_TRY(Compiled changed, run_passes(graph, o, off, &other));
  lower::LowerReport ignored;
  GE_TRY(auto here, lower::lower(c.graph, lower_options(o), ignored));
  GE_TRY(auto there, lower::lower(changed.graph, lower_options(o), ignored));
  GE_TRY(double moved, built ? difference_of(here, there) : difference_of(there, here));
  return std::optional<double>(moved);
}

// Everything in the options that the result depends on, as text.
std::string options_text(const Options& o) {
  std::string t = format("{} {} {} {} {} {} {} {} {} {} {} {}", o.single_stream, o.multi_stream, o.memory_policy, o.reuse_memory, o.fusion, o.reference, o.verify, o.allocator_strategy, o.plan_steps, o.workspace_limit, o.input_format, o.topo_sorting_mode);
  t += " name " + o.name + " backend " + o.op_backend;
  t += format(" gears {} {} {} hint {}", o.dynamic_batch_size, o.dynamic_image_size, o.dynamic_dims, o.input_hint_shape);
  for (auto& [k, v] : o.input_shape) t += " shape " + k + ":" + join(v, ",");
  for (auto& d : o.disabled) t += " off " + d;
  for (auto& d : o.scope) t += " scope " + d;
  for (auto& [k, v] : o.eps) t += format(" eps {}={}", k, v);
  for (auto h : o.head_num) t += format(" heads {}", h);
  if (o.attention_scale) t += format(" scale {}", *o.attention_scale);
  auto& p = o.precision;
  t += format(" precision {} {} {} {}", p.mode, p.bf16, p.check, join(p.fp16_inputs, ";"));
  for (auto* names : {&p.f32_types, &p.f32_nodes, &p.bf16_types, &p.bf16_nodes}) {
    t += " list";
    for (auto& n : *names) t += " " + n;
  }
  return t + " feed " + join(o.feed, ";") + " out " + join(o.out_nodes, ";") + " type " + join(o.output_type, ";");
}

Status make_debug_dir(const Options& o) {
  if (o.debug_dir.empty()) return ok();
  std::error_code e;
  std::filesystem::create_directories(o.debug_dir, e);
  return e ? Status(error(code::kWrite, format("Folder {} of --debug_dir cannot be made: {}.", o.debug_dir, e.message()), "", "check the path and its permissions")) : ok();
}

Result<Compiled> compile_imported(ir::Graph graph, const Options& o, const Source& source) {
  if (auto lanes = lanes_of(o); !lanes.ok()) return std::move(lanes).take_error();
  GE_RETURN_IF_ERROR(make_debug_dir(o));
  GE_RETURN_IF_ERROR(edit(graph, o));
  bool cached = o.cache_mode != "disable";
  std::string folder = cached ? cache_folder(o.cache_dir) : "", key = cached ? cache_key(graph, source.file ? source.file->bytes() : std::span<const std::byte>(), source.hash, options_text(o)) : "";
  if (o.cache_mode == "enable" && o.debug_dir.empty())  // there are no passes to show where nothing is compiled
    if (auto hit = cache_find(folder, key)) {
      Compiled c;
      c.package = *std::move(hit);
      c.package.model.command = o.command;
      c.from_cache = true;
      return c;
    }
  bool check = o.verify || !o.eps.empty(), both = (o.verify || o.precision.check) && !o.reference;
  ir::Graph kept = check || both ? graph : ir::Graph();
  GE_TRY(Compiled c, run_passes(std::move(graph), o));
  Exclusions off;
  std::vector<RuleVerdict> verdicts;
  if (check) {
    GE_TRY(verdicts, check_rules(kept, c, o, off));
    if (!off.rules.empty() || !off.places.empty()) {
      GE_TRY(c, run_passes(kept, o, off));
    }
  }
  std::optional<double> moved;
  if (both) {
    GE_TRY(moved, check_precision(kept, c, o, off));
  }
  kept = {};
  malloc_trim(0);  // what the passes are through with, before the weights are laid out
  GE_TRY(Compiled done, finish(std::move(c), o, source, verdicts, moved));
  if (cached) {
    Status s = cache_put(folder, key, done.package);
    if (!s.ok()) log(LogLevel::warning, s.error().text());  // the result is there all the same
  }
  return done;
}

Result<Compiled> timed(Result<ir::Graph> graph, const Options& o, const Source& source, std::chrono::steady_clock::time_point start) {
  if (!graph.ok()) return std::move(graph).take_error();
  GE_TRY(Compiled done, compile_imported(*std::move(graph), o, source));
  done.package.external_weight = static_cast<om::ExternalWeight>(o.external_weight);
  done.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return done;
}

// 128 bits by xxHash64: names the source; not a defence against forgery. By blocks, so that memory is read once.
std::string hash_of(std::span<const std::byte> bytes) {
  constexpr size_t kBlock = size_t(1) << 18;
  uint64_t one = hash64(bytes.first(std::min(kBlock, bytes.size())), 0), two = hash64(bytes.first(std::min(kBlock, bytes.size())), 1);
  for (size_t at = kBlock; at < bytes.size(); at += kBlock) {
    auto block = bytes.subspan(at, std::min(kBlock, bytes.size() - at));
    one = hash64(block, one), two = hash64(block, two);
  }
  return format("{:016x}{:016x}", one, two);
}

}  // namespace

Result<Compiled> compile_file(const std::string& path, const Options& options) {
  auto start = std::chrono::steady_clock::now();
  GE_TRY(auto file, MappedFile::open(path));
  return timed(import_onnx_file(file, path, {options.feed}), options, {hash_of(file->bytes()), file}, start);
}

Result<Compiled> compile_bytes(std::span<const std::byte> bytes, const Options& options) {
  auto start = std::chrono::steady_clock::now();
  auto file = MappedFile::from_bytes(bytes);
  return timed(import_onnx(file, "", {options.feed}), options, {hash_of(bytes), file}, start);
}

Result<Compiled> compile_graph(ir::Graph graph, const Options& options) {
  // No file stands behind the graph: its text names it, which the cache needs.
  auto start = std::chrono::steady_clock::now();
  std::string text = options.cache_mode == "disable" ? "" : ir::print(graph);
  return timed(std::move(graph), options, {text.empty() ? "" : hash_of(std::as_bytes(std::span(text))), {}}, start);
}

Result<Compiled> optimize_graph(ir::Graph graph, const Options& options) {
  GE_RETURN_IF_ERROR(edit(graph, options));
  return run_passes(std::move(graph), options);
}

std::vector<std::string> fusion_names() {
  std::vector<std::string> out = {"vector_region"};
  for (auto* f : passes::fusions()) out.push_back(f->name);
  return out;
}

std::vector<std::string> rule_names() {
  auto out = fusion_names();
  for (auto& p : passes::pipeline()) out.emplace_back(p.name);
  out.emplace_back("aliases");
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace ge
