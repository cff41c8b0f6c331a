#include "driver/commands.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "driver/cache.h"
#include "driver/command_model.h"
#include "driver/fusion_switch.h"
#include "driver/notes.h"
#include "driver/report.h"
#include "driver/roofline.h"
#include "driver/run.h"
#include "driver/tensor_io.h"
#include "ir/print.h"
#include "kernels/isa.h"
#include "om/writer.h"
#include "ops/op.h"
#include "passes/fusion.h"
#include "passes/pass.h"
#include "runtime/cpu_count.h"

namespace ge {
namespace {

std::string file_name(std::string name) {
  for (char& c : name)
    if (c == '/' || c == '\\' || c == '\0') c = '_';
  return name;
}

std::string lower_case(std::string_view s) {
  std::string out(s);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

size_t fused_groups(const om::Package& p) {
  auto notes = notes_of(p);
  return notes.contains("fused") ? notes["fused"].size() : 0;
}

std::string parts_text(const Compiled& c) {
  std::string out;
  for (auto& p : c.parts) out += format("  part {}: {}\n", p.name, p.from_cache ? "taken from the cache" : "compiled");
  return out;
}

}  // namespace

Result<std::string> compile_command(const CompileCommand& given) {
  CompileCommand c = given;
  if (c.output.empty()) c.output = std::filesystem::path(c.model).replace_extension(".om").string();
  const std::string& path = c.output;
  GE_RETURN_IF_ERROR(not_in_place_of(path, {&c.model, 1}));   // said before compiling
  GE_TRY(auto done, compile_model(c));
  GE_RETURN_IF_ERROR(om::write(done.package, path));
  return format("{}: {} tasks, {} of weights, {} fused groups, {:.0f} ms\n", path, done.package.model.programs[0]->tasks.size(),
                bytes_text(static_cast<double>(done.package.weights.size())), fused_groups(done.package), done.milliseconds) + parts_text(done);
}

Result<std::string> run_command(const RunCommand& c) {
  GE_RETURN_IF_ERROR(not_in_place_of(c.state_save, {&c.om, 1}));
  GE_TRY(auto m, runtime::Model::open(c.om, {c.threads, false, false}));
  GE_TRY(auto inputs, inputs_of(*m, c));
  if (m->has_states() || !c.state_load.empty()) GE_RETURN_IF_ERROR(rewind(*m, c.state_load));
  if (!c.state_save.empty() && !m->has_states()) return error(code::kInvalidValue, "The model has no states to save.", "", "compile it with --state");
  GE_TRY(auto outputs, run(*m, inputs));
  std::string out;
  if (m->has_states()) {
    GE_TRY(auto state, m->default_state());
    out += format("state: {} entries, {}\n", state->length(), bytes_text(static_cast<double>(state->committed())));
    if (!c.state_save.empty()) GE_RETURN_IF_ERROR(state->save(c.state_save));
  }
  if (!c.output.empty()) {
    std::error_code e;
    std::filesystem::create_directories(c.output, e);
    if (e) return error(code::kWrite, format("Folder {} cannot be made: {}.", c.output, e.message()));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto& t = outputs[i];
    double low = 0, high = 0, sum = 0;
    const Tensor numbers = t.reals();
    for (int64_t k = 0; k < numbers.count(); ++k) {
      double v = numbers.at(k);
      low = k ? std::min(low, v) : v;
      high = k ? std::max(high, v) : v;
      sum += v;
    }
    auto& name_text = m->program().outputs[i]->name;
    std::vector<std::string> dims;
    for (auto d : t.dims()) dims.push_back(format("{}", d));
    out += format("{} {}[{}] min {:g} max {:g} mean {:g}\n", name_text, name(t.dtype()), join(dims, ","), low, high, t.count() ? sum / static_cast<double>(numbers.count()) : 0);
    if (!c.output.empty()) GE_RETURN_IF_ERROR(write_npy((std::filesystem::path(c.output) / (file_name(name_text) + ".npy")).string(), t));
  }
  return out;
}

Result<std::string> explain_command(const CompileCommand& c, bool json) {
  if (c.model.ends_with(".om")) {
    GE_TRY(auto m, runtime::Model::open(c.model));
    return json ? notes_of(m->package()).dump() + "\n" : explain_text(m->package());
  }
  GE_TRY(auto done, compile_model(c));
  return json ? done.package.notes + "\n" : explain_text(done.package);
}

Result<std::string> inspect_command(const RunCommand& c, bool tasks, bool check_weights) {
  GE_TRY(auto m, runtime::Model::open(c.om, {1, check_weights, false}));
  std::string out = inspect_text(m->package(), tasks) + (check_weights ? "checksums of the weights: right\n" : "");
  if (c.sizes.empty()) return out;
  GE_TRY(auto inputs, inputs_of(*m, c));
  GE_TRY(auto b, bind_for(*m, inputs));
  return out + format("arena for these sizes: {} for 1 thread, lower bound {}{}\n", bytes_text(static_cast<double>(b->arena)),
                      bytes_text(static_cast<double>(b->lower_bound)), b->proved ? " (proved: no smaller one exists)" : "");
}

Result<std::string> problem_command(const RunCommand& c) {
  GE_TRY(auto m, runtime::Model::open(c.om, {1, false, false}));
  GE_TRY(auto inputs, inputs_of(*m, c));
  GE_TRY(auto b, bind_for(*m, inputs));
  std::string out = "id,lower,upper,size,alignment\n";
  int id = 0;
  for (auto& x : b->intervals) out += format("{},{},{},{},{}\n", id++, x.first, x.last + 1, x.size, x.align);
  return out;
}

Result<std::string> dump_command(const CompileCommand& c, bool imported) {
  GE_TRY(auto g, read_graph(c.model));
  GE_TRY(Options o, options_of(c));
  if (imported) o.reference = true;
  GE_TRY(auto done, optimize_graph(std::move(g), o));
  return ir::print(done.graph);
}

Result<std::string> bench_command(const BenchCommand& c) {
  auto start = std::chrono::steady_clock::now();
  GE_TRY(auto m, runtime::Model::open(c.run.om, {c.run.threads, false, false}));
  double open_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  GE_TRY(auto inputs, inputs_of(*m, c.run));
  GE_TRY(auto r, bench(*m, inputs, c.warmup, c.iterations, c.seconds, c.run.state_load));
  GE_RETURN_IF_ERROR(rewind(*m, c.run.state_load));
  GE_TRY(auto b, bind_for(*m, inputs));
  nlohmann::ordered_json sizes = nlohmann::ordered_json::object();
  std::vector<std::string> said;
  for (size_t i = 0; i < b->symbols.size(); ++i)
    if (m->program().symbols[i]->input >= 0) sizes[m->program().symbols[i]->name] = b->symbols[i], said.push_back(format("{}={}", m->program().symbols[i]->name, b->symbols[i]));
  if (c.json) {
    nlohmann::ordered_json j = {{"threads", m->threads()}, {"sizes", sizes}, {"open_ms", open_ms}, {"first_ms", r.first_ms}, {"mean_ms", r.mean_ms}, {"min_ms", r.min_ms},
                                {"p50_ms", r.p50_ms}, {"p90_ms", r.p90_ms}, {"p99_ms", r.p99_ms}, {"max_ms", r.max_ms}, {"runs", r.runs},
                                {"arena", b->arena}, {"lower_bound", b->lower_bound}, {"gflop", b->operations() / 1e9}};
    return j.dump() + "\n";
  }
  std::string out = said.empty() ? "" : format("sizes {}\n", join(said, " "));
  out += format("threads {}\nopen  {:.3f} ms\nfirst {:.3f} ms\nsteady, {} runs: mean {:.3f} min {:.3f} p50 {:.3f} p90 {:.3f} p99 {:.3f} max {:.3f} ms\n"
                           "arena {} (lower bound {}, scratch for {} threads included)\n"
                           "{:.3f} GFLOP, {:.1f} GFLOP/s in the fastest run\n",
                           m->threads(), open_ms, r.first_ms, r.runs, r.mean_ms, r.min_ms, r.p50_ms, r.p90_ms, r.p99_ms, r.max_ms,
                           bytes_text(static_cast<double>(b->arena)), bytes_text(static_cast<double>(b->lower_bound)), b->threads, b->operations() / 1e9, b->operations() / 1e6 / r.min_ms);
  if (!c.profile) return out;
  // The least of several runs: what a task takes when nothing interrupts it.
  runtime::Profile profile;
  GE_TRY(auto ignored, run(*m, inputs, &profile));
  int runs = std::clamp(static_cast<int>(1000 / std::max(r.p50_ms, 0.1)), 3, 50);
  for (int i = 1; i < runs; ++i) {
    runtime::Profile again;
    GE_RETURN_IF_ERROR(rewind(*m, c.run.state_load));
    GE_TRY(auto more, run(*m, inputs, &again));
    for (size_t k = 0; k < profile.entries.size(); ++k) profile.entries[k].us = std::min(profile.entries[k].us, again.entries[k].us);
  }
  auto bound_task = [&](int32_t task) { return std::find_if(b->tasks.begin(), b->tasks.end(), [&](auto& x) { return x.task == task; }); };
  // Tasks of later segments are bound in the run alone.
  auto kernel_of = [&](int32_t task) -> std::string_view {
    auto t = bound_task(task);
    return t != b->tasks.end() ? t->kernel->name : m->package().model.kernels[static_cast<size_t>(m->program().tasks[static_cast<size_t>(task)]->alternatives[0]->kernel)];
  };
  double total = 0;
  std::map<std::string_view, std::pair<double, int>> kernels;
  for (auto& e : profile.entries) {
    auto& [us, count] = kernels[kernel_of(e.task)];
    total += e.us, us += e.us, ++count;
  }
  std::vector<std::pair<std::string_view, std::pair<double, int>>> sorted(kernels.begin(), kernels.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](auto& x, auto& y) { return x.second.first > y.second.first; });
  out += "kernels:\n";
  for (auto& [name, sum] : sorted) out += format("{:10.1f} us {:5.1f} % {:<18} {:>4} task{}\n", sum.first, 100 * sum.first / total, name, sum.second, sum.second == 1 ? "" : "s");
  out += format("tasks, each the least of {} runs; a task's name is that of the last node in it (`ge inspect --tasks` shows what each reads and makes):\n"
                "{:>13} {:>7} {:>14} {:<18} {:>10}  task\n", runs, "time", "share", "speed", "kernel", "cut into");
  for (auto& e : profile.entries) {
    auto& task = *m->program().tasks[static_cast<size_t>(e.task)];
    auto t = bound_task(e.task);
    const bool bound = t != b->tasks.end();
    double operations = bound ? b->operations(*t) : 0;
    std::string speed = operations > 0 ? format("{:6.1f} GFLOP/s", operations / 1e3 / e.us) : std::string(14, ' ');
    out += format("{:10.1f} us {:5.1f} % {} {:<18} {:>3} chunks  {}\n", e.us, 100 * e.us / total, speed, kernel_of(e.task), bound ? format("{}", t->work.chunks) : "-", task.name);
  }
  return out;
}

std::string roofline_command(int threads, bool json) {
  int most = threads > 0 ? threads : runtime::available_threads();
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  std::string out = format("{:>7} {:>14} {:>16}   ({})\n", "threads", "f32 GFLOP/s", "memory read GB/s", kernels::name(kernels::isa()));
  for (int t = threads > 0 ? threads : 1; t <= most; t = t < most ? std::min(most, 2 * t) : t + 1) {
    Roofline r = roofline(t);
    all.push_back({{"threads", r.threads}, {"gflops", r.gflops}, {"read_gbs", r.read_gbs}});
    out += format("{:>7} {:>14.1f} {:>16.1f}\n", r.threads, r.gflops, r.read_gbs);
  }
  return json ? all.dump() + "\n" : out;
}

Result<std::string> cache_command(const std::string& action, const std::string& given) {
  std::string folder = cache_folder(given);
  if (action == "clear") return format("{} models removed from {}\n", cache_prune(folder, 0), folder);
  if (action == "prune") return format("{} models removed from {}\n", cache_prune(folder, cache_limit()), folder);
  std::string out = folder + "\n";
  int64_t total = 0;
  auto entries = cache_list(folder);
  for (auto& e : entries) {
    auto m = runtime::Model::open(folder + "/" + e.key + ".om", {1, false, false});
    out += format("  {} {:>12}  {}\n", e.key, bytes_text(static_cast<double>(e.bytes)), m.ok() ? (*m)->package().model.name : "(cannot be read)");
    total += e.bytes;
  }
  return out + format("{} models, {} of at most {}\n", entries.size(), bytes_text(static_cast<double>(total)), bytes_text(static_cast<double>(cache_limit())));
}

Result<std::string> ops_command(const std::string& wanted) {
  std::vector<std::string> names;
  for (auto* d : ops::all())
    if (!d->name.starts_with("ge.")) names.emplace_back(d->name);   // those are made by passes
  const bool all = wanted.empty(), known = all || std::any_of(names.begin(), names.end(), [&](auto& n) { return lower_case(n).find(lower_case(wanted)) != std::string::npos; });
  if (!known) {
    std::string near = nearest(wanted, names);
    return error(code::kUnknownName, format("There is no operator '{}'.", wanted), "", near.empty() ? "`ge ops` lists all" : format("did you mean {}?", near));
  }
  constexpr std::string_view line = "{:<50} {:>7} {:>8}  {:<10} {:<40} {}\n";
  std::string out = format(line, "operator", "opsets", "inputs", "runs as", "types", "meaning");
  for (auto* d : ops::all()) {
    if (d->name.starts_with("ge.") || (!all && lower_case(d->name).find(lower_case(wanted)) == std::string::npos)) continue;
    const char* how = d->lower ? "kernel" : d->vector ? "vector" : d->reference ? "reference" : "shape only";
    std::string inputs = d->max_inputs < 0 ? format("{}..", d->min_inputs) : d->max_inputs == d->min_inputs ? format("{}", d->min_inputs) : format("{}..{}", d->min_inputs, d->max_inputs);
    std::string types = !d->max_inputs ? "-" : (d->data ? format("input {}: ", d->data) : "") + ops::text(d->types);
    out += format(line, d->name, format("{}-{}", d->since, d->newest), inputs, how, types, d->doc);
  }
  return out;
}

std::string rules_command() {
  std::string out = "fusions:\n";
  constexpr std::string_view line = "  {:<24} {}\n";
  for (auto* f : passes::fusions()) out += format(line, f->name, f->doc);
  out += format(line, "vector_region", "elementwise nodes and row reductions become one vector program");
  out += "passes:\n";
  for (auto& p : passes::pipeline()) out += format(line, p.name, p.doc);
  out += format(line, "aliases", "Reshape, Slice, Concat and the like as views of their neighbours' memory");
  return out + "other names, and the rules that each switches:\n" + aliases_text() + format("  {:<36} {}\n", "all", "every fusion");
}

}  // namespace ge
