#include "driver/compile.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/file.h"
#include "base/free_memory.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/spill.h"
#include "base/text.h"
#include "driver/build.h"
#include "driver/cache.h"
#include "driver/closed_regions.h"
#include "driver/gears.h"
#include "driver/model_edits.h"
#include "driver/nested_report.h"
#include "driver/precision_options.h"
#include "driver/precision_report.h"
#include "driver/shapes.h"
#include "driver/split.h"
#include "driver/states.h"
#include "driver/verify.h"
#include "import/about.h"
#include "import/onnx.h"
#include "ir/print.h"
#include "lower/lanes.h"
#include "lower/lower.h"
#include "passes/expand.h"
#include "passes/fusion.h"
#include "passes/pass.h"
#include "tensor/pages.h"

namespace ge {
namespace {

using Json = nlohmann::ordered_json;

// The compile report that stands in the file: nothing of time or machine in it.
Json report(const ir::Graph& g, const passes::Trace& trace, const lower::LowerReport& lowered) {
  Json r;
  r["fused"] = Json::array();
  for (auto& f : trace.all_fused()) {
    r["fused"].push_back({{"rule", f.rule}, {"node", f.node}, {"origins", f.origins}});
    if (!f.graph.empty()) r["fused"].back()["graph"] = f.graph;
    if (!f.how.empty()) r["fused"].back()["how"] = f.how;
  }
  r["near_misses"] = Json::array();
  for (auto& m : trace.near_misses())
    r["near_misses"].push_back({{"rule", m.rule}, {"anchor", m.anchor}, {"matched", m.matched}, {"of", m.of}, {"blocker", m.blocker}, {"why", m.why}, {"help", m.help}});
  r["switched_off"] = trace.switched_off();
  r["branches"] = branches_report(trace);
  r["nodes"] = g.node_count();
  r["tasks"] = lowered.tasks;
  r["reference_ops"] = lowered.reference_ops;
  r["aliases"] = {{"views", lowered.aliases.views}, {"parts", lowered.aliases.parts}, {"in_place", lowered.aliases.in_place}, {"outputs", lowered.aliases.outputs}};
  r["memory"]["weights"] = lowered.weights;
  r["states"] = Json::array();
  int64_t capacity = 0, row = 0;
  for (auto& s : lowered.states) {
    r["states"].push_back({{"name", s.name}, {"input", s.input}, {"output", s.output}, {"update", s.update}, {"why", s.why}, {"converted", s.converted}, {"unfit", s.unfit}, {"bytes", s.capacity}, {"bytes_per_token", s.row}});
    capacity += s.capacity, row += s.row;
  }
  r["memory"]["state"] = capacity;
  r["memory"]["state_bytes_per_token"] = row;
  r["memory"]["pool"] = 0;
  return r;
}

void log_time(std::string_view stage, std::chrono::steady_clock::time_point start) {
  log(LogLevel::debug, format("{}: {:.2f} ms", stage, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count()));
}

// The model as options want it, before any pass.
Status edit(ir::Graph& g, const Options& o) {
  GE_TRY(auto geared, geared_shapes(o));
  GE_RETURN_IF_ERROR(set_input_shapes(g, geared.shapes));
  if (!geared.gears.symbols.empty()) set_gears(g, std::move(geared.gears));
  GE_RETURN_IF_ERROR(cut_outputs(g, o.out_nodes));
  set_input_format(g, o.input_format);
  if (!o.output_type.empty()) {
    GE_RETURN_IF_ERROR(passes::infer(g));
    GE_RETURN_IF_ERROR(set_output_types(g, o.output_type));
  }
  GE_RETURN_IF_ERROR(set_fp16_inputs(g, o.precision.fp16_inputs));
  if (o.state.empty() && o.state_dtype != "f32")
    return error(code::kInvalidValue, format("Value {} for parameter --state_dtype is invalid. Reason: no state is asked for.", o.state_dtype), "", "give --state too: auto, or IN:OUT");
  if (!o.state.empty()) {
    GE_RETURN_IF_ERROR(passes::infer(g));
    GE_TRY(bool refined, mark_states(g, o.state));
    if (o.state_dtype != "f32") store_states(g, o.state_dtype == "f16" ? DType::f16 : o.state_dtype == "int8" ? DType::i8 : DType::bf16);
    if (refined) g.facts = {};   // of sizes as they were called
    if (refined || o.state_dtype != "f32") GE_RETURN_IF_ERROR(passes::infer(g));
  }
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
  if (!o.fusion || !o.reuse_memory) p.disabled.insert({"strips", "open_strips"});
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
  p.strip_rows = o.strip_rows;
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

Result<Compiled> finish(Compiled c, const Options& o, const Source& source, const std::vector<RuleVerdict>& verdicts,
                        std::optional<double> moved, std::shared_ptr<NamelessFile> file) {
  // Weights go from the graph into the package one by one: no two of the same are held.
  auto let_go = [&graph = c.graph](ir::ValueId v) {
    auto& constant = graph.value(v).constant;
    if (constant && constant->dtype() != DType::string && constant->bytes() >= kLargeTensor) constant = std::make_shared<const Tensor>(without_data(*constant));
  };
  lower::LowerOptions lo = lower_options(o);
  lo.read_last = let_go;
  lo.file = std::move(file);
  lower::LowerReport lowered;
  auto start = std::chrono::steady_clock::now();
  GE_TRY(c.package, lower::lower(c.graph, lo, lowered));
  log_time("lower", start);
  auto& model = c.package.model;
  GE_TRY(auto lanes, lanes_of(o));
  for (auto& p : model.programs) lower::assign_lanes(*p, lanes);
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
  c.graph = {};   // constants of it are gone
  GE_RETURN_IF_ERROR(name_model(model, r, o, source));
  start = std::chrono::steady_clock::now();
  GE_TRY(r["bodies"], plan_bodies(c.package, lowered, c.trace, plan_options(o)));
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
    one.graph.states.clear();   // seeded inputs stand for what states hold
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
  ir::Graph built_graph = c.graph;
  built_graph.states.clear(), changed.graph.states.clear();   // seeded inputs stand for what states hold
  GE_TRY(auto here, lower::lower(built_graph, lower_options(o), ignored));
  GE_TRY(auto there, lower::lower(changed.graph, lower_options(o), ignored));
  GE_TRY(double moved, built ? difference_of(here, there) : difference_of(there, here));
  return std::optional<double>(moved);
}

Status make_debug_dir(const Options& o) {
  if (o.debug_dir.empty()) return ok();
  std::error_code e;
  std::filesystem::create_directories(o.debug_dir, e);
  return e ? Status(error(code::kWrite, format("Folder {} of --debug_dir cannot be made: {}.", o.debug_dir, e.message()), "", "check the path and its permissions")) : ok();
}

Result<Compiled> compile_imported(ir::Graph graph, const Options& o, const Source& source) {
  if (auto lanes = lanes_of(o); !lanes.ok()) return std::move(lanes).take_error();
  if (o.split.any() && !o.state.empty())
    return error(code::kExclusive, "Options [--split] and [--state] exclude each other.", "a part does not know what another keeps from run to run", "Give one of them.");
  GE_RETURN_IF_ERROR(make_debug_dir(o));
  GE_RETURN_IF_ERROR(edit(graph, o));
  if (o.split.any()) return compile_split(std::move(graph), o, source);
  bool cached = !o.cache_mode.empty() && o.cache_mode != "disable";
  std::string folder = cached ? cache_folder(o.cache_dir) : "", key = cached ? cache_key(graph, source.file ? source.file->bytes() : std::span<const std::byte>(), source.hash, options_text(o)) : "";
  if (o.cache_mode == "enable" && o.debug_dir.empty())  // there are no passes to show where nothing is compiled
    if (auto hit = cache_find(folder, key)) {
      Compiled c;
      c.package = *std::move(hit);
      c.package.model.command = o.command;
      c.from_cache = true;
      return c;
    }
  GE_TRY(Compiled done, build(std::move(graph), o, source));
  if (cached) {
    Status s = cache_put(folder, key, done.package);
    if (!s.ok()) log(LogLevel::warning, s.error().text());  // the result is there all the same
  }
  return done;
}

// What f gives. Memory that runs out while compiling is an error like others.
template <class F>
Result<Compiled> within_memory(F f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  return error(code::kOutOfMemory, "There is not enough memory to compile the model.", "its tensors are larger than what the process may have", "give the process more memory, or compile in parts (--split)");
}

Result<Compiled> timed(Result<ir::Graph> graph, const Options& o, const Source& source, std::chrono::steady_clock::time_point start) {
  if (!graph.ok()) return std::move(graph).take_error();
  auto files = graph->files;
  GE_TRY(Compiled done, within_memory([&] { return compile_imported(*std::move(graph), o, source); }));
  done.package.sources = std::move(files);
  done.package.external_weight = static_cast<om::ExternalWeight>(o.external_weight);
  done.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return done;
}

// Two xxHash64, each of one half of every block: names the source; not a defence against forgery.
std::string hash_of(std::span<const std::byte> bytes) {
  uint64_t one = bytes.size(), two = one;
  by_blocks(bytes, [&](std::span<const std::byte> block) {
    one = hash64(block.first(block.size() / 2), one), two = hash64(block.subspan(block.size() / 2), two);
  });
  return format("{:016x}{:016x}", one, two);
}

struct Bytes {
  size_t sum = 0, growth = 0;   // of constants; what narrow ones would grow by as floats
};
Bytes bytes_of(const ir::Graph& g) {
  Bytes b;
  for (size_t i = 0; i < g.value_capacity(); ++i) {
    auto& c = g.value(ir::ValueId{static_cast<int32_t>(i)}).constant;
    if (!c || c->dtype() == DType::string) continue;
    b.sum += c->bytes();
    const auto wide = static_cast<size_t>(c->count()) * sizeof(float);
    if (wide > c->bytes()) b.growth += wide - c->bytes();
  }
  return b;
}

// Constants that passes make lie in memory that a file stands behind where they may grow to several times the model,
// which those of 16 bits and less do, or fill much of what memory is free.
std::unique_ptr<Spill> spill_for(const ir::Graph& g, const Options& o) {
  constexpr size_t kLargeGrowth = size_t(4) << 20;
  const Bytes b = bytes_of(g);
  const bool grows = b.growth >= kLargeGrowth && b.growth > b.sum / 8;
  return grows || b.sum > free_memory() / 2 ? std::make_unique<Spill>(o.output_dir) : nullptr;
}

// Before a graph is there: by the size of its file.
std::unique_ptr<Spill> spill_for(size_t bytes, const Options& o) { return bytes > free_memory() / 2 ? std::make_unique<Spill>(o.output_dir) : nullptr; }

// The file in which large weights are laid out: on the output's disk, where it becomes the output; elsewhere where they are
// not to be held in memory.
std::shared_ptr<NamelessFile> file_for(const ir::Graph& g, const Options& o) {
  constexpr size_t kLargeWeights = size_t(4) << 20;
  if (!spilling() && (o.output_dir.empty() || bytes_of(g).sum < kLargeWeights)) return nullptr;
  return NamelessFile::make(temporary_folders({o.output_dir}));
}

}  // namespace

Result<lower::LaneOptions> lanes_of(const Options& o) {
  if (o.single_stream && !o.multi_stream.empty())
    return error(code::kExclusive, "Options [--enable_single_stream] and [--multi_stream_parallel_mode] exclude each other.", "", "Give one of them.");
  if (o.single_stream) return lower::LaneOptions{lower::LaneOptions::Mode::single, 1};
  return lower::parse_lanes(o.multi_stream.empty() ? "cv" : o.multi_stream);
}

Status name_model(om::ModelT& model, Json& notes, const Options& o, const Source& source) {
  model.producer = "GE " GE_VERSION;
  model.command = o.command;
  model.source_hash = source.hash;
  if (!o.name.empty()) model.name = o.name;
  if (!source.file) return ok();
  GE_TRY(std::string said, about_onnx(*source.file));
  notes["model"] = Json::parse(said);
  if (o.name.empty())
    if (std::string graph = notes["model"].value("graph", ""); !graph.empty()) model.name = graph;
  return ok();
}

Result<Compiled> build(ir::Graph graph, const Options& o, const Source& source, std::shared_ptr<NamelessFile> file) {
  const auto spill = spill_for(graph, o);
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
  if (!file) file = file_for(c.graph, o);
  return finish(std::move(c), o, source, verdicts, moved, std::move(file));
}

Result<Compiled> compile_file(const std::string& path, const Options& options) {
  auto start = std::chrono::steady_clock::now();
  GE_TRY(auto file, MappedFile::open(path));
  const auto spill = spill_for(file->bytes().size(), options);
  return timed(import_onnx_file(file, path, {options.feed}), options, {hash_of(file->bytes()), file}, start);
}

Result<Compiled> compile_bytes(std::span<const std::byte> bytes, const Options& options) {
  auto start = std::chrono::steady_clock::now();
  auto file = MappedFile::over(bytes);   // what is compiled keeps nothing of it
  const auto spill = spill_for(bytes.size(), options);
  return timed(import_onnx(file, "", {options.feed}), options, {hash_of(bytes), file}, start);
}

Result<Compiled> compile_graph(ir::Graph graph, const Options& options) {
  // No file stands behind the graph: its text names it, which the cache needs.
  auto start = std::chrono::steady_clock::now();
  std::string text = options.cache_mode.empty() || options.cache_mode == "disable" ? "" : ir::print(graph);
  return timed(std::move(graph), options, {text.empty() ? "" : hash_of(std::as_bytes(std::span(text))), {}}, start);
}

Result<Compiled> optimize_graph(ir::Graph graph, const Options& options) {
  return within_memory([&]() -> Result<Compiled> {
    GE_RETURN_IF_ERROR(edit(graph, options));
    return run_passes(std::move(graph), options);
  });
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
