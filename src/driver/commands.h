// The commands of `ge`: each takes parsed arguments and returns what is to be printed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "driver/options.h"

namespace ge {

struct CompileCommand {
  std::string model, output;
  std::vector<std::pair<std::string, std::string>> options;
};
struct RunCommand {
  std::string om, output;
  std::vector<std::string> inputs, sizes;
  std::string state_load, state_save;   // files: what the model's states hold before and after
  int threads = 0;
  uint64_t seed = 1;
};
struct BenchCommand {
  RunCommand run;
  int warmup = 3, iterations = 10;
  double seconds = 1;
  bool json = false, profile = false;
};
struct PlanCommand {
  std::string problem;              // a CSV file
  std::optional<int64_t> capacity;  // the first plan that fits ends the search
  int64_t steps = 0;                // the budget; 0: the default
  bool json = false;
};
struct VerifyCommand {
  CompileCommand compile;
  RunCommand run;
  double tolerance = 1e-3;          // of the largest magnitude of an output
};
struct DiffCommand {
  std::string first, second;        // .om files, or models that are compiled with the defaults
  RunCommand run;
};
struct ReportCommand {
  CompileCommand compile;
  RunCommand run;
  std::string output;               // the page (default: the model's name with .html)
  bool profile = false;             // runs it, and adds the time of every task
};
// A text, and why the command still ends with exit status 1, or "".
struct JudgedOutput {
  std::string text, missed;
};

Result<std::string> compile_command(const CompileCommand& c);
Result<std::string> run_command(const RunCommand& c);
Result<std::string> explain_command(const CompileCommand& c, bool json);
// With sizes: the arena for them as well.
Result<std::string> inspect_command(const RunCommand& c, bool tasks, bool check_weights);
// What its memory plan has to place, as `ge plan` reads it, for one thread.
Result<std::string> problem_command(const RunCommand& c);
Result<std::string> dump_command(const CompileCommand& c, bool imported);
Result<std::string> bench_command(const BenchCommand& c);
// Offsets for the buffers of a CSV problem, by the compiler's planner.
Result<JudgedOutput> plan_command(const PlanCommand& c);
// Compiles twice, with the options and with every operator by its reference kernel, and compares the outputs.
Result<JudgedOutput> verify_command(const VerifyCommand& c);
// What two compiled models do not have in common: signature, memory, fusions, kernels, outputs on the same inputs.
Result<std::string> diff_command(const DiffCommand& c);
// Writes the compile report as one page of HTML that needs nothing else.
Result<std::string> report_command(const ReportCommand& c);
// What the machine can do at most, for so many threads (0: one, and all).
std::string roofline_command(int threads, bool json);
// action: list, prune or clear.
Result<std::string> cache_command(const std::string& action, const std::string& folder);
// The operators: name, opsets, unit, how they run, what they do.
// Whose name holds `wanted`, in capitals or not; all for "".
Result<std::string> ops_command(const std::string& wanted);
std::string rules_command();

}  // namespace ge
