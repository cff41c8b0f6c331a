// Pieces of compile() that compiling in parts uses as well.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "driver/compile.h"
#include "lower/lanes.h"
#include "runtime/binding.h"

namespace ge {

// What was compiled: its hash, and its file if it is one.
struct Source {
  std::string hash;
  std::shared_ptr<const MappedFile> file;
};

// Passes, lowering, memory plan and report of a graph that is edited already; no cache.
// file: weights are laid out there; null: where the options say.
Result<Compiled> build(ir::Graph graph, const Options& o, const Source& source, std::shared_ptr<NamelessFile> file = nullptr);
// Everything in the options that the result depends on, as text.
std::string options_text(const Options& o);
Result<lower::LaneOptions> lanes_of(const Options& o);
// The model's name, its origin, and what its file says of itself.
Status name_model(om::ModelT& model, nlohmann::ordered_json& notes, const Options& o, const Source& source);
// How the memory plan of a compilation is made: for one thread, within its budget.
runtime::BindOptions plan_options(const Options& o);
// With all sizes known, or foreseen, the arena is planned now, with the search; the file keeps the offsets. The limit
// of the arena is checked. tensors: a name for each buffer.
Status plan_memory(om::Package& package, const Options& o, const std::vector<std::string>& tensors, nlohmann::ordered_json& notes);

}  // namespace ge
