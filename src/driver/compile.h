// compile(): the whole compiler. A model in, a Package and a report out.
#pragma once

#include <memory>
#include <string>

#include "base/file.h"
#include "driver/options.h"
#include "ir/graph.h"
#include "om/program.h"
#include "passes/trace.h"

namespace ge {

// A part of a model that was compiled in several.
struct CompiledPart {
  std::string name;
  bool from_cache = false;
};

struct Compiled {
  om::Package package;
  ir::Graph graph;                 // after the passes; optimize_graph alone gives it
  passes::Trace trace;
  double milliseconds = 0;
  bool from_cache = false;         // then graph and trace are empty; the package's notes say it all
  std::vector<CompiledPart> parts; // of a split model: likewise; from_cache: all of them
};

// An ONNX file by path, or in memory (external data are then refused).
Result<Compiled> compile_file(const std::string& path, const Options& options);
Result<Compiled> compile_bytes(std::span<const std::byte> bytes, const Options& options);
Result<Compiled> compile_graph(ir::Graph graph, const Options& options);
// The same through the passes only, for `ge dump` and `ge explain`.
Result<Compiled> optimize_graph(ir::Graph graph, const Options& options);

// The fusions by name.
std::vector<std::string> fusion_names();
// The names that --disable_fusion takes, passes among them, sorted.
std::vector<std::string> rule_names();

}  // namespace ge
