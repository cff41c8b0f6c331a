#include "driver/command_model.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "driver/run.h"
#include "driver/tensor_io.h"
#include "import/onnx.h"
#include "ir/parse.h"

namespace ge {

Result<Options> options_of(const CompileCommand& c) {
  Options o;
  for (auto& [name, value] : c.options) GE_RETURN_IF_ERROR(set_option(o, name, value));
  std::vector<std::string> words = {"ge compile", std::filesystem::path(c.model).filename().string()};
  for (auto& [name, value] : c.options) words.push_back(format("--{}={}", name, without_folder(name, value)));
  o.command = join(words, " ");
  if (!c.output.empty()) o.output_dir = folder_of(c.output);
  return o;
}

Result<ir::Graph> read_graph(const std::string& path) {
  if (!path.ends_with(".ir")) return import_onnx_file(path);
  GE_TRY(auto file, MappedFile::open(path));
  auto graph = ir::parse(std::string_view(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()));
  if (graph.ok()) graph->files.push_back(absolute_path(path));
  return graph;
}

Result<Compiled> compile_model(const CompileCommand& c) {
  GE_TRY(Options o, options_of(c));
  if (!c.model.ends_with(".ir")) return compile_file(c.model, o);
  GE_TRY(auto g, read_graph(c.model));
  return compile_graph(std::move(g), o);
}

namespace {

// Values of named sizes: those of --size.
Result<std::map<std::string, int64_t>> named_sizes(const om::ProgramT& p, const RunCommand& c) {
  std::map<std::string, int64_t> sizes;
  for (auto& s : c.sizes) {
    size_t equals = s.find('=');
    int64_t n = 0;
    const char* end = s.data() + s.size();
    auto [stop, e] = equals == std::string::npos ? std::from_chars_result{s.data(), std::errc::invalid_argument} : std::from_chars(s.data() + equals + 1, end, n);
    if (e != std::errc() || stop != end || n < 0) return error(code::kInvalidValue, format("--size {} is not NAME=NUMBER.", s), "", "write --size batch=8, and --size again for each other size");
    std::vector<std::string> names;
    for (auto& symbol : p.symbols)
      if (symbol->input >= 0) names.push_back(symbol->name);
    std::string name = s.substr(0, equals);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      std::string near = nearest(name, names);
      return error(code::kUnknownName, format("--size names '{}', which the model does not have.", name),
                   names.empty() ? "all its sizes are fixed" : format("its sizes are {}", join(names, ", ")), near.empty() ? "" : format("did you mean '{}'?", near));
    }
    sizes[name] = n;
  }
  return sizes;
}

// The inputs of --input, by name.
Result<std::map<std::string, Tensor>> given_inputs(const om::ProgramT& p, const RunCommand& c) {
  std::map<std::string, Tensor> given;
  for (auto& text : c.inputs) {
    size_t equals = text.rfind('=');
    std::string name = equals == std::string::npos ? "" : text.substr(0, equals);
    GE_TRY(auto tensors, read_tensors(equals == std::string::npos ? text : text.substr(equals + 1)));
    for (auto& t : tensors) given[!name.empty() ? name : t.name] = std::move(t.tensor);
  }
  if (given.size() == 1 && given.count("") && p.inputs.size() == 1) {
    given[p.inputs[0]->name] = std::move(given[""]);
    given.erase("");
  }
  std::vector<std::string> names;
  for (auto& port : p.inputs) names.push_back(port->name);
  for (auto& [name, tensor] : given) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    std::string near = nearest(name, names);
    return error(code::kUnknownName, format("--input names '{}', which the model does not have.", name), format("its inputs are {}", join(names, ", ")),
                 near.empty() ? "" : format("did you mean '{}'?", near));
  }
  return given;
}

// Inputs that are given say the sizes of the others.
void add_sizes_of(const om::ProgramT& p, const std::map<std::string, Tensor>& given, std::map<std::string, int64_t>& sizes) {
  for (auto& port : p.inputs) {
    auto it = given.find(port->name);
    if (it == given.end() || it->second.dims().size() != port->dims.size()) continue;
    for (size_t k = 0; k < port->dims.size(); ++k) {
      auto& e = p.exprs[static_cast<size_t>(port->dims[k])];
      if (e.op() == om::ExprOp::symbol) sizes[p.symbols[static_cast<size_t>(e.imm())]->name] = it->second.dims()[k];
    }
  }
}

}  // namespace

Result<std::vector<Tensor>> inputs_of(const runtime::Model& m, const RunCommand& c) {
  constexpr int64_t kOtherwise = 4;   // of sizes that nobody gives
  auto& p = m.program();
  GE_TRY(auto sizes, named_sizes(p, c));
  GE_TRY(auto given, given_inputs(p, c));
  add_sizes_of(p, given, sizes);
  const bool gears = sizes.empty() && !p.gears.empty();
  for (size_t i = 0; gears && i < p.gear_symbols.size(); ++i) sizes[p.symbols[static_cast<size_t>(p.gear_symbols[i])]->name] = p.gears[i];
  std::vector<std::string> taken;
  for (auto& s : p.symbols) {
    if (s->input < 0 || (sizes.count(s->name) && !gears)) continue;
    const int64_t n = sizes.emplace(s->name, std::clamp(kOtherwise, s->min, s->max)).first->second;
    taken.push_back(format("{}={}", s->name, n));
  }
  if (!taken.empty()) log(LogLevel::warning, format("no sizes are given: {} is assumed; --size NAME=NUMBER or --input gives others", join(taken, " ")));
  GE_TRY(auto inputs, seeded_inputs(m, sizes, kOtherwise, c.seed));
  for (size_t i = 0; i < p.inputs.size(); ++i)
    if (auto it = given.find(p.inputs[i]->name); it != given.end()) inputs[i] = std::move(it->second);
  return inputs;
}

Result<std::shared_ptr<runtime::Model>> open_model(const CompileCommand& c, int threads) {
  if (c.model.ends_with(".om")) {
    if (!c.options.empty())
      return error(code::kInvalidValue, format("--{} is given for {}, which is compiled already.", c.options[0].first, c.model), "", "name the ONNX model to compile it with other options");
    return runtime::Model::open(c.model, {threads, false, false});
  }
  GE_TRY(auto done, compile_model(c));
  return runtime::Model::from(std::move(done.package), {threads, false, false});
}

}  // namespace ge
