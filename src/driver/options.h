// Options of the compiler: every one, its default and its reason. atc's flags, ge.compile's keywords and
// the article's graph options all end here.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "driver/cut.h"
#include "tensor/dim.h"

namespace ge {

// What --precision_mode and the options around it ask for (precision_options.h).
struct PrecisionOptions {
  std::string option, mode;              // the option that was given and its value, or empty
  bool bf16 = false;                     // products, convolutions and attention may round their operands to bf16
  std::set<std::string> f32_types, f32_nodes, bf16_types, bf16_nodes;   // exceptions, by the model's types and names
  bool mixlist = false;                  // modify_mixlist was given
  bool check = false;                    // run both precisions while compiling, and report how far outputs move
  std::vector<std::string> fp16_inputs;  // inputs that are fed as f16
  std::vector<std::string> notes;        // what was asked for and is not done
};

struct Options {
  // One entry an input: sizes, -1 or a symbol's name or a range "1~8" for what may change. Absent: as the model says.
  std::map<std::string, std::vector<std::string>> input_shape;
  std::string dynamic_batch_size, dynamic_image_size, dynamic_dims;  // gears: the only sizes for the -1 of input_shape
  std::string input_hint_shape;          // "0:[3,224]": sizes for which memory is planned while compiling
  std::string state;                     // "auto" or "in:out[:axis[:capacity]];...": caches that live from run to run (states.h)
  std::string state_dtype = "f32";       // how states of f32 are stored: f32, f16, bf16 or int8
  std::vector<std::string> feed;         // inputs with a default in the model that are fed all the same
  bool reuse_memory = true;              // arena, views, in place; off to see what they give
  bool fusion = true;                    // off: no rule at all, vector programs included
  std::set<std::string> disabled;        // fusion rules and passes by name
  std::set<std::string> scope;           // op types that may take part in fusions; empty: all
  std::map<std::string, double> eps;     // largest accepted difference of a rule (checked by running)
  bool verify = false;                   // check every rule by running, with an eps of 1e-4 where none is given
  std::vector<int64_t> head_num;         // attention only with these numbers of heads; empty: any
  std::optional<double> attention_scale; // attention only with this scale
  bool reference = false;                // every op by its reference kernel: the meaning, slow
  int64_t strip_rows = 0;                // PassOptions::strip_rows, for tests
  bool verify_ir = false;                // check the graph after every pass
  int allocator_strategy = 2;            // 0 none, 1 greedy, 2 search
  int64_t plan_steps = 20'000'000;       // the planner's budget: some 0.2 s
  int64_t workspace_limit = 0;           // bytes; 0: none. An arena above it is an error
  std::string memory_policy = "BalanceMode";  // weights that grow to be faster: MemoryPriority none, BalanceMode at most 25 % of all weights, Speed any
  PrecisionOptions precision;
  std::string name;                      // of the model in the file
  std::string command;                   // recorded in the file, without paths
  std::vector<std::string> out_nodes;    // "node:0" or names of values: where the model is cut
  std::vector<std::string> output_type;  // "FP16", or "node:0:FP16"
  std::string input_format = "NCHW";     // NHWC: 4-D inputs are fed channels-last
  int topo_sorting_mode = 3;             // 0 breadth first, 1 depth first, 2 reverse depth first, 3 the model's order
  bool single_stream = false;            // all tasks in one lane
  std::string multi_stream;              // cv (default), LoadBalance:N, MainStream:N: lanes of tasks, for reports
  std::string op_backend;                // recorded; there is one backend
  int external_weight = 0;               // 0 weights in the .om, 1 each in a file of its own, 2 together in one file
  int export_compile_stat = 1;           // fusion_result.json: 0 never, 1 and 2 after compiling (atc only)
  SplitOptions split;                    // compiled in parts, each cached
  std::string debug_dir;                 // the graph after each pass, as text
  std::string cache_mode;                // enable, force or disable; empty: the parts of a split model alone
  std::string cache_dir;                 // empty: the user's cache folder
  std::string output_dir;                // where the result will be written; large weights are laid out on its disk. Empty: not known
};

// Sets an option by its name as users type it, from text: the one table behind atc's flags, ge compile's
// and ge.compile's keywords. Unknown names and values that do not fit are errors that say what would.
Status set_option(Options& o, const std::string& name, const std::string& value);
std::vector<std::string> option_names();
// What the option does, in a line for --help.
std::string option_help(const std::string& name);

// The value of an option as it may stand in a file: of a path only the last part.
std::string without_folder(const std::string& name, const std::string& value);

// "a:1,3,224,224;b:2~10,3,-1", ATC's --input_shape. Names may contain ':'.
Result<std::map<std::string, std::vector<std::string>>> parse_input_shape(const std::string& text);

}  // namespace ge
