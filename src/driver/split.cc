#include "driver/split.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/nameless.h"
#include "base/processes.h"
#include "base/text.h"
#include "driver/cache.h"
#include "driver/notes.h"
#include "driver/split_report.h"
#include "ir/print.h"
#include "om/check.h"
#include "om/link.h"
#include "om/reader.h"
#include "om/writer.h"
#include "passes/pass.h"
#include "runtime/cpu_count.h"
#include "tensor/pages.h"

namespace ge {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What options ask of the model is done before it is cut; a part is compiled as it is.
Options part_options(const Options& o, const std::string& name) {
  Options p = o;
  p.split = {};
  p.input_shape.clear();
  p.dynamic_batch_size = p.dynamic_image_size = p.dynamic_dims = p.input_hint_shape = "";
  p.feed.clear(), p.out_nodes.clear(), p.output_type.clear();
  p.precision.fp16_inputs.clear();
  p.input_format = "NCHW";
  p.workspace_limit = 0;                                      // of the whole
  p.allocator_strategy = std::min(p.allocator_strategy, 1);   // likewise: the plan is made anew
  p.external_weight = 0;
  p.command = "", p.name = name;
  if (!o.debug_dir.empty()) p.debug_dir = (fs::path(o.debug_dir) / name).string();
  return p;
}

std::string key_of(const ir::Graph& g, const Options& o) {
  Sha256 text;
  text.update(ir::print(g));
  std::string key = cache_key(g, {}, text.hex(), "part " + options_text(o));
  for (size_t i = 0; i < g.value_capacity(); ++i)
    if (auto& c = g.value(ir::ValueId{static_cast<int32_t>(i)}).constant) rest(*c);
  return key;
}

// The cache of parts, if there is one.
class Shelf {
 public:
  explicit Shelf(const Options& o) : cached_(o.cache_mode != "disable"), folder_(cache_folder(o.cache_dir)), folders_(temporary_folders({o.output_dir})) {
    if (!cached_) return;
    std::error_code e;
    fs::create_directories(folder_, e);
    cached_ = !e && ::access(folder_.c_str(), W_OK) == 0;
    if (cached_) folders_.insert(folders_.begin(), folder_);
    else log(LogLevel::warning, format("The cache folder {} cannot be written: parts are compiled anew each time.", folder_));
  }
  bool cached() const { return cached_; }
  const std::string& folder() const { return folder_; }
  // For a process that compiles a part to leave its .om in: nobody else sees it, and nothing is left of a process that was ended.
  Result<std::shared_ptr<NamelessFile>> file() const {
    auto made = NamelessFile::make(folders_);
    if (!made) made = NamelessFile::in_memory();
    if (!made) return error(code::kWrite, "There is no folder for temporary files.", "", "set TMPDIR");
    return made;
  }
  // Opens what was left there, and keeps it under its key.
  Result<om::Package> open(const std::shared_ptr<NamelessFile>& file, const std::string& key) const {
    GE_TRY(auto mapped, MappedFile::from_descriptor(::dup(file->descriptor()), "of a part"));
    GE_TRY(auto package, om::read(mapped, false));
    if (!cached_) {
      package.file = file;
      return package;
    }
    const std::string path = format("{}/{}.om", folder_, key);
    FileAside aside(path);
    const bool kept = (aside.adopt(*file) == 0 && aside.finish() == 0) || om::write(package, path, false).ok();
    if (!kept) log(LogLevel::warning, format("A part cannot be kept in the cache folder {}.", folder_));
    return package;
  }

 private:
  bool cached_;
  std::string folder_;
  std::vector<std::string> folders_;
};

struct Compiling {
  std::string key;
  std::shared_ptr<NamelessFile> file;
  std::optional<om::Package> package;
  bool from_cache = false;
};

Status compile_part(ir::Graph graph, const Options& o, const std::string& key, const std::shared_ptr<NamelessFile>& file) {
  if (!o.debug_dir.empty()) {
    std::error_code e;
    fs::create_directories(o.debug_dir, e);
  }
  GE_TRY(Compiled done, build(std::move(graph), o, {key, {}}, file));
  return om::fill(done.package, *file);
}

// Every part from the cache or compiled, as many at a time as there are CPUs. A part's graph goes when a process has it, so
// that weights can be given back where they are packed: nobody else holds them.
Status compile_parts(CutModel& cut, const Options& o, std::vector<Compiling>& out) {
  const Shelf shelf(o);
  out.resize(cut.parts.size());
  std::vector<std::function<Status()>> jobs;
  std::vector<size_t> job_of;
  for (size_t i = 0; i < cut.parts.size(); ++i) {
    auto& c = out[i];
    auto& graph = cut.parts[i].graph;
    Options own = part_options(o, cut.parts[i].name);
    if (shelf.cached()) c.key = key_of(graph, own);
    if (shelf.cached() && o.cache_mode != "force" && o.debug_dir.empty()) c.package = cache_find(shelf.folder(), c.key);
    c.from_cache = c.package.has_value();
    if (c.from_cache) {
      let_go_of_pages(c.package->weights);   // its checksums were verified
      graph = {};
      continue;
    }
    GE_TRY(c.file, shelf.file());
    job_of.push_back(i);
    jobs.push_back([&cut, i, own, &c, here = getpid()] {
      ir::Graph mine = std::move(cut.parts[i].graph);
      if (getpid() != here)
        for (auto& other : cut.parts) other.graph = {};
      return compile_part(std::move(mine), own, c.key, c.file);
    });
  }
  auto made = in_processes(jobs, runtime::available_threads(), [&](size_t k) { cut.parts[job_of[k]].graph = {}; });
  Status first;
  for (size_t k = 0; k < jobs.size(); ++k) {
    auto& c = out[job_of[k]];
    std::string where = "part " + cut.parts[job_of[k]].name;
    if (made[k].ok()) {
      auto package = shelf.open(c.file, c.key);
      if (package.ok()) c.package = *std::move(package);
      else made[k] = std::move(package).take_error();
    }
    c.file = nullptr;
    if (!made[k].ok() && first.ok()) first = std::move(made[k]).context(where);
  }
  if (shelf.cached()) cache_prune(shelf.folder(), cache_limit());
  return first;
}

// Who writes each buffer, for messages about memory.
std::vector<std::string> buffer_names(const om::ProgramT& p) {
  std::vector<std::string> names(p.buffers.size());
  for (auto& t : p.tasks)
    for (auto& v : t->alternatives[0]->outs)
      if (v->buffer >= 0 && names[static_cast<size_t>(v->buffer)].empty()) names[static_cast<size_t>(v->buffer)] = t->name;
  return names;
}

Status set_gears(om::ProgramT& p, const ir::Gears& gears) {
  for (auto& name : gears.symbols) {
    auto it = std::find_if(p.symbols.begin(), p.symbols.end(), [&](auto& s) { return s->name == name; });
    GE_CHECK(it != p.symbols.end(), "a gear's size is no size of an input: " + name);
    p.gear_symbols.push_back(static_cast<int>(it - p.symbols.begin()));
  }
  for (auto& sizes : gears.sizes) p.gears.insert(p.gears.end(), sizes.begin(), sizes.end());
  return ok();
}

Result<CutModel> cut(ir::Graph graph, const Options& o) {
  passes::Trace trace;
  passes::PassOptions none;
  passes::PassContext context{none, trace, {}};
  GE_TRY(bool dead, passes::dce(graph, context));
  (void)dead;
  ir::Graph typed = graph;
  GE_RETURN_IF_ERROR(passes::infer(typed));
  GE_TRY(Places places, place_nodes(graph, typed, o.split));
  return cut_graph(graph, typed, places);
}

}  // namespace

Result<Compiled> compile_split(ir::Graph graph, const Options& o, const Source& source) {
  const ir::Gears gears = graph.gears;
  const std::vector<std::string> output_names = graph.output_names;
  GE_TRY(CutModel model, cut(std::move(graph), o));
  std::vector<Compiling> parts;
  GE_RETURN_IF_ERROR(compile_parts(model, o, parts));
  om::LinkJob job{{}, model.inputs, model.outputs, output_names};
  std::vector<Json> notes;
  Compiled c;
  c.from_cache = true;
  for (size_t i = 0; i < parts.size(); ++i) {
    notes.push_back(notes_of(*parts[i].package));
    c.parts.push_back({model.parts[i].name, parts[i].from_cache});
    c.from_cache &= parts[i].from_cache;
    job.parts.push_back({model.parts[i].name, *std::move(parts[i].package), model.parts[i].inputs, model.parts[i].outputs});
    log(LogLevel::info, format("part {}: {}", model.parts[i].name, parts[i].from_cache ? "taken from the cache" : "compiled"));
  }
  GE_TRY(om::Linked linked, om::link(std::move(job)));
  c.package = std::move(linked.package);
  auto& program = *c.package.model.programs[0];
  GE_RETURN_IF_ERROR(set_gears(program, gears));
  GE_TRY(auto lanes, lanes_of(o));
  for (auto& p : c.package.model.programs) lower::assign_lanes(*p, lanes);
  Json r = joined_notes(notes);
  r["memory"] = {{"weights", c.package.weights.size()}, {"state", 0}, {"pool", 0}};
  c.package.model.name = "main";
  GE_RETURN_IF_ERROR(name_model(c.package.model, r, o, source));
  r["split"] = split_notes(model, notes, linked.shared_weights);
  GE_RETURN_IF_ERROR(om::check(c.package));
  GE_RETURN_IF_ERROR(plan_memory(c.package, o, buffer_names(program), r));
  c.package.notes = r.dump();
  return c;
}

}  // namespace ge
