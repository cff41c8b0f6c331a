#include "driver/command_model.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "base/file.h"
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
  return ir::parse(std::string_view(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()));
}

Result<Compiled> compile_model(const CompileCommand& c) {
  GE_TRY(Options o, options_of(c));
  if (!c.model.ends_with(".ir")) return compile_file(c.model, o);
  GE_TRY(auto g, read_graph(c.model));
  return compile_graph(std::move(g), o);
}

Result<std::vector<Tensor>> inputs_of(const runtime::Model& m, const RunCommand& c) {
  std::map<std::string, int64_t> sizes;
  for (auto& s : c.sizes) {
    size_t equals = s.find('=');
    int64_t n = 0;
    const char* end = s.data() + s.size();
    auto [stop, e] = equals == std::string::npos ? std::from_chars_result{s.data(), std::errc::invalid_argument} : std::from_chars(s.data() + equals + 1, end, n);
    if (e != std::errc() || stop != end || n < 0) return error(code::kInvalidValue, format("--size {} is not NAME=NUMBER.", s));
    std::vector<std::string> names;
    for (auto& symbol : m.program().symbols) names.push_back(symbol->name);
    std::string name = s.substr(0, equals);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      std::string near = nearest(name, names);
      return error(code::kUnknownName, format("--size names '{}', which the model does not have.", name),
                   names.empty() ? "all its sizes are fixed" : format("its sizes are {}", join(names, ", ")), near.empty() ? "" : format("did you mean '{}'?", near));
    }
    sizes[name] = n;
  }
  std::map<std::string, Tensor> given;
  for (auto& text : c.inputs) {
    size_t equals = text.rfind('=');
    std::string name = equals == std::string::npos ? "" : text.substr(0, equals);
    GE_TRY(auto tensors, read_tensors(equals == std::string::npos ? text : text.substr(equals + 1)));
    for (auto& t : tensors) given[!name.empty() ? name : t.name] = std::move(t.tensor);
  }
  auto& ports = m.program().inputs;
  if (given.size() == 1 && given.count("") && ports.size() == 1) {
    given[ports[0]->name] = std::move(given[""]);
    given.erase("");
  }
  GE_TRY(auto inputs, seeded_inputs(m, sizes, 4, c.seed));
  for (auto& [name, tensor] : given) {
    std::vector<std::string> names;
    bool found = false;
    for (size_t i = 0; i < ports.size(); ++i) {
      names.push_back(ports[i]->name);
      if (ports[i]->name == name) inputs[i] = std::move(tensor), found = true;
    }
    if (!found) {
      std::string near = nearest(name, names);
      return error(code::kUnknownName, format("--input names '{}', which the model does not have.", name), format("its inputs are {}", join(names, ", ")),
                   near.empty() ? "" : format("did you mean '{}'?", near));
    }
  }
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
