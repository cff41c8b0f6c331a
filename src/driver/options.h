// Options of the compiler: every one, its default and its reason. atc's flags, ge.compile's keywords and
// the article's graph options all end here.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/dim.h"

namespace ge {

struct Options {
  // One entry an input: sizes, -1 or a symbol's name or a range "1~8" for what may change. Absent: as the model says.
  std::map<std::string, std::vector<std::string>> input_shape;
  bool reuse_memory = true;              // arena, views, in place; off to see what they give
  bool fusion = true;                    // off: no rule at all, vector programs included
  std::set<std::string> disabled;        // fusion rules and passes by name
  bool reference = false;                // every op by its reference kernel: the meaning, slow
  bool verify_ir = false;                // check the graph after every pass
  int allocator_strategy = 2;            // 0 none, 1 greedy, 2 search
  int64_t plan_steps = 20'000'000;       // the planner's budget: some 0.2 s
  int64_t workspace_limit = 0;           // bytes; 0: none. An arena above it is an error
  std::string name;                      // of the model in the file
  std::string command;                   // recorded in the file, without paths
};

// Sets an option by its name as users type it, from text: the one table behind atc's flags, ge compile's
// and ge.compile's keywords. Unknown names and values that do not fit are errors that say what would.
Status set_option(Options& o, const std::string& name, const std::string& value);
std::vector<std::string> option_names();

// "a:1,3,224,224;b:2~10,3,-1", ATC's --input_shape. Names may contain ':'.
Result<std::map<std::string, std::vector<std::string>>> parse_input_shape(const std::string& text);

}  // namespace ge
