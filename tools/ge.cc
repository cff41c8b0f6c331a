// ge: the commands of the compiler and the runtime. Argument parsing only.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>

#include "base/log.h"
#include "base/result.h"
#include "base/text.h"
#include "driver/atc.h"
#include "driver/commands.h"

namespace {

// The command whose options are wrong: the innermost that was named.
const CLI::App* innermost(const CLI::App* app) {
  auto named = app->get_subcommands();
  return named.empty() ? app : innermost(named.back());
}

// CLI11's message, and the nearest name where one was mistyped.
int refused(const CLI::App& app, const CLI::ParseError& e) {
  int status = app.exit(e);
  auto* at = innermost(&app);
  std::vector<std::string> names;
  for (auto* o : at->get_options())
    for (auto& name : o->get_lnames()) names.push_back("--" + name);
  for (auto* s : at->get_subcommands({})) names.push_back(s->get_name());
  for (auto& word : at->remaining()) {
    std::string near = ge::nearest(word.substr(0, word.find('=')), names);
    if (!near.empty()) std::fprintf(stderr, "%s: did you mean %s?\n", word.c_str(), near.c_str());
  }
  return status;
}

int command(int argc, char** argv) {
  CLI::App app{"GE: compiles a neural network into one .om file and runs it"};
  app.require_subcommand(1);
  app.footer("The Python package adds: ge export --model=model.py --input=input.pt --output=model.onnx");
  app.set_version_flag("--version", "ge " GE_VERSION);

  ge::CompileCommand compile;
  std::vector<std::string> settings;
  auto add_compile_options = [&](CLI::App* c, const char* what = "an ONNX model or an .ir file") {
    c->add_option("model", compile.model, what)->required();
    for (auto& name : ge::option_names())
      c->add_option_function<std::string>("--" + name, [&compile, name](const std::string& v) { compile.options.emplace_back(name, v); }, ge::option_help(name))
          ->type_name("")
          ->group("Compiling");
  };
  auto* c = app.add_subcommand("compile", "compile a model into an .om file");
  add_compile_options(c);
  c->add_option("-o,--output", compile.output, "the .om file (default: the model's path with .om)");

  ge::RunCommand run;
  auto add_inputs = [](CLI::App* a, ge::RunCommand& to) {
    a->add_option("--input", to.inputs, "name=file.npy, name=file.pb or a .npz of all; inputs that are not given are random numbers");
    a->add_option("--size", to.sizes, "a size that the model leaves open, for inputs that are not given: batch=8 (default: 4)");
    a->add_option("--seed", to.seed, "of the random numbers (default: 1)");
    a->add_option("--threads,-t", to.threads, "most threads that a run may use (default: all)");
  };
  auto* r = app.add_subcommand("run", "run an .om file");
  r->add_option("om", run.om, "the .om file")->required();
  r->add_option("--output", run.output, "folder for the outputs, NAME.npy each");
  add_inputs(r, run);

  r->add_option("--state-load", run.state_load, "what the model's states hold when the run begins: a file of --state-save");
  r->add_option("--state-save", run.state_save, "where to write what they hold when it has ended");

  bool json = false;
  auto* e = app.add_subcommand("explain", "what was fused, and why the rest was not");
  add_compile_options(e);
  e->add_flag("--json", json, "as JSON");

  ge::RunCommand inspected;
  bool tasks = false, check = false, problem = false;
  auto* i = app.add_subcommand("inspect", "what an .om file holds");
  i->add_option("om", inspected.om, "the .om file")->required();
  i->add_flag("--tasks", tasks, "list every task");
  i->add_flag("--check", check, "verify the checksums of the weights too");
  i->add_flag("--plan-csv", problem, "instead: the buffers of its memory plan, as `ge plan` reads them");
  i->add_option("--size", inspected.sizes, "a size that the model leaves open, for the arena or --plan-csv: batch=8");

  std::string stage = "optimized";
  auto* d = app.add_subcommand("dump", "the graph as text");
  add_compile_options(d);
  d->add_option("--stage", stage, "imported: as the model has it; optimized: after all passes (default)")->check(CLI::IsMember({"imported", "optimized"}));

  ge::BenchCommand bench;
  auto add_bench = [&](CLI::App* a) {
    a->add_option("om", bench.run.om, "the .om file")->required();
    add_inputs(a, bench.run);
    a->add_option("--warmup", bench.warmup, "runs before measuring (default: 3)");
    a->add_option("--iterations", bench.iterations, "runs that are measured, at least (default: 10)");
    a->add_option("--duration", bench.seconds, "seconds of measuring, at least (default: 1)");
  };
  auto* b = app.add_subcommand("bench", "how long opening a model takes, its first run, and the runs after it");
  add_bench(b);
  b->add_option("--state-load", bench.run.state_load, "what the model's states hold when a run begins (default: nothing)");
  b->add_flag("--json", bench.json, "as JSON");
  b->add_flag("--profile", bench.profile, "time of every task");
  auto* pr = app.add_subcommand("profile", "bench --profile: time of every task");
  add_bench(pr);

  ge::VerifyCommand verify;
  auto* v = app.add_subcommand("verify", "compare with every operator run by itself, by its reference kernel; exit status 1 where an output is too far");
  add_compile_options(v);
  add_inputs(v, verify.run);
  v->add_option("--tolerance", verify.tolerance, "of the largest magnitude of an output (default 0.001)");

  ge::DiffCommand diff;
  auto* df = app.add_subcommand("diff", "what two compiled models do not have in common, and how far their outputs are apart");
  df->add_option("first", diff.first, "an .om file, or a model to compile")->required();
  df->add_option("second", diff.second, "another")->required();
  add_inputs(df, diff.run);

  ge::ReportCommand report;
  auto* re = app.add_subcommand("report", "the compile report as a page of HTML: memory plan, fusions, tasks");
  add_compile_options(re, "an .om file, or a model to compile");
  re->add_option("-o,--output", report.output, "the page (default: the model's name with .html)");
  add_inputs(re, report.run);
  re->add_flag("--profile", report.profile, "run it, and add the time of every task");

  auto* at = app.add_subcommand("atc", "the command `atc`");
  at->prefix_command();

  ge::PlanCommand plan;
  auto* p = app.add_subcommand("plan", "offsets for buffers with sizes and lifetimes: the compiler's memory planner on a CSV problem");
  p->add_option("problem", plan.problem, "CSV with the columns id,lower,upper,size; a buffer lives in [lower, upper)")->required();
  p->add_option("--capacity", plan.capacity, "stop at the first plan of at most so many bytes (default: the smallest that is found)");
  p->add_option("--steps", plan.steps, "budget of the search, in steps of about 3 ns (default: 6000000000)")->check(CLI::PositiveNumber);
  p->add_flag("--json", plan.json, "as JSON, with all offsets");

  auto* f = app.add_subcommand("roofline", "what this machine can do at most: f32 arithmetic, reading memory");
  int roofline_threads = 0;
  bool roofline_json = false;
  f->add_option("--threads,-t", roofline_threads, "for so many threads (default: for one, and for all)");
  f->add_flag("--json", roofline_json, "as JSON");

  std::string action = "list", folder;
  auto* k = app.add_subcommand("cache", "the compile cache");
  k->add_option("action", action, "list, prune or clear")->check(CLI::IsMember({"list", "prune", "clear"}));
  k->add_option("--dir", folder, "its folder (default: GE_CACHE_DIR, or the user's cache folder)");
  std::string wanted;
  auto* o = app.add_subcommand("ops", "the operators that are supported");
  o->add_option("name", wanted, "only those with this in their name");
  o->footer("runs as: \"kernel\" by one of its own, \"vector\" in registers with its neighbours, \"reference\" by the plain kernel that says what\n"
            "it means (slow), \"shape only\" without any work in a run, or written as other operators.");
  auto* u = app.add_subcommand("rules", "the fusion rules and passes, as --disable_fusion takes them");

  ge::set_log_sink([](ge::LogLevel, const std::string& line) { std::fprintf(stderr, "[GE] WARN: %s\n", line.c_str()); }, ge::LogLevel::warning);
  if (argc > 1 && std::string_view(argv[1]) == "atc") return ge::atc(std::vector<std::string>(argv + 2, argv + argc));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& refusal) {
    return refused(app, refusal);
  }
  ge::Result<std::string> out = std::string();
  if (c->parsed()) out = ge::compile_command(compile);
  if (r->parsed()) out = ge::run_command(run);
  if (e->parsed()) out = ge::explain_command(compile, json);
  if (i->parsed()) out = problem ? ge::problem_command(inspected) : ge::inspect_command(inspected, tasks, check);
  if (d->parsed()) out = ge::dump_command(compile, stage == "imported");
  if (pr->parsed()) bench.profile = true;
  if (b->parsed() || pr->parsed()) out = ge::bench_command(bench);
  if (df->parsed()) out = ge::diff_command(diff);
  report.compile = verify.compile = compile;
  if (re->parsed()) out = ge::report_command(report);
  std::string missed;
  auto judge = [&](ge::Result<ge::JudgedOutput> done) {
    out = done.ok() ? ge::Result<std::string>(done->text) : ge::Result<std::string>(done.error());
    if (done.ok()) missed = done->missed;
  };
  if (p->parsed()) judge(ge::plan_command(plan));
  if (v->parsed()) judge(ge::verify_command(verify));
  if (f->parsed()) out = ge::roofline_command(roofline_threads, roofline_json);
  if (k->parsed()) out = ge::cache_command(action, folder);
  if (o->parsed()) out = ge::ops_command(wanted);
  if (u->parsed()) out = ge::rules_command();
  if (!out.ok()) {
    std::fprintf(stderr, "[GE] ERROR: %s\n", out.error().text().c_str());
    return 1;
  }
  std::fputs(out->c_str(), stdout);
  if (missed.empty()) return 0;
  std::fprintf(stderr, "[GE] ERROR: %s\n", missed.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return command(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "[GE] ERROR: %s: There is not enough memory.\n", ge::code::kOutOfMemory);
    return 1;
  }
}
