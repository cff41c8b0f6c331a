#include "driver/atc.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "base/log.h"
#include "base/text.h"
#include "driver/compile.h"
#include "om/writer.h"

namespace ge {
namespace {

constexpr const char* kHelp = R"(usage: atc --model=FILE.onnx --framework=5 --output=PREFIX --soc_version=NAME [options]
  --model          the ONNX model
  --framework      5 (ONNX)
  --output         path of the result; .om is appended
  --soc_version    any name; the result runs on this CPU and others
  --input_shape    "name:1,3,224,224;name2:2~10,-1": fixed sizes, ranges, -1 for any
  --log            debug, info, warning, error or null
and the compiler's own:
)";

struct Arguments {
  std::map<std::string, std::string> atc;
  std::vector<std::pair<std::string, std::string>> options;
};

const std::vector<std::string> kAtcNames = {"model", "framework", "output", "soc_version", "log", "help", "mode"};

Result<Arguments> read(const std::vector<std::string>& arguments) {
  Arguments a;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string word = arguments[i];
    if (word == "-h") word = "--help";
    if (!word.starts_with("--"))
      return error(code::kInvalidValue, format("Argument {} is not an option.", word), "", "options are written --name=value");
    size_t equals = word.find('=');
    std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2), value;
    if (equals != std::string::npos) value = word.substr(equals + 1);
    else if (i + 1 < arguments.size() && !arguments[i + 1].starts_with("--")) value = arguments[++i];
    auto compiler = option_names();
    bool is_atc = std::find(kAtcNames.begin(), kAtcNames.end(), name) != kAtcNames.end();
    bool is_compiler = std::find(compiler.begin(), compiler.end(), name) != compiler.end();
    if (!is_atc && !is_compiler) {
      compiler.insert(compiler.end(), kAtcNames.begin(), kAtcNames.end());
      std::string near = nearest(name, compiler);
      return error(code::kInvalidValue, format("Option --{} is not known.", name), "", near.empty() ? "see atc --help" : format("did you mean --{}?", near));
    }
    if (is_atc) a.atc[name] = value;
    else a.options.emplace_back(name, value);
  }
  return a;
}

std::string command_without_paths(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"atc"};
  for (auto& w : arguments) {
    size_t equals = w.find('='), slash = w.rfind('/');
    bool path = slash != std::string::npos && (w.starts_with("--model") || w.starts_with("--output"));
    words.push_back(path && equals != std::string::npos ? w.substr(0, equals + 1) + w.substr(slash + 1) : path ? w.substr(slash + 1) : w);
  }
  return join(words, " ");
}

Status build(const Arguments& a, const std::vector<std::string>& arguments, std::string& out) {
  auto get = [&](const char* name) {
    auto it = a.atc.find(name);
    return it == a.atc.end() ? std::string() : it->second;
  };
  for (const char* needed : {"model", "framework", "output", "soc_version"})
    if (get(needed).empty())
      return error(code::kInvalidValue, format("Value  for parameter --{} is invalid. Reason: it is required and missing.", needed), "", format("add --{}=...", needed));
  if (get("framework") != "5")
    return error(code::kInvalidValue, format("Value {} for parameter --framework is invalid. Reason: GE reads ONNX models.", get("framework")),
                 "0 is Caffe, 1 MindSpore, 3 TensorFlow", "export the model to ONNX and use --framework=5");
  if (!get("mode").empty() && get("mode") != "0")
    return error(code::kInvalidValue, format("Value {} for parameter --mode is invalid. Reason: only mode 0 (build) is there.", get("mode")));
  Options o;
  for (auto& [name, value] : a.options) GE_RETURN_IF_ERROR(set_option(o, name, value));
  o.command = command_without_paths(arguments);
  GE_TRY(Compiled c, compile_file(get("model"), o));
  std::string path = get("output");
  if (!path.ends_with(".om")) path += ".om";
  GE_RETURN_IF_ERROR(om::write(c.package, path));
  out += format("[GE] Planning completed, fusion {} operators\n[GE] Graph compile completed in {:.2f}s\n", [&] {
    size_t n = 0;
    for (auto& f : c.trace.all_fused()) n += f.origins.size();
    return n;
  }(), c.milliseconds / 1000);
  for (auto& m : c.trace.near_misses())
    if (m.rule != "vector_region" && m.rule != "cube_epilogue")
      out += format("[GE] WARN: Fusion pattern {} not matched: at {}, {}{}\n", m.rule, m.anchor, m.why, m.help.empty() ? "" : "; " + m.help);
  return ok();
}

}  // namespace

AtcOutcome atc(const std::vector<std::string>& arguments) {
  AtcOutcome r;
  auto a = read(arguments);
  if (a.ok() && a->atc.count("help")) {
    r.out = kHelp;
    for (auto& n : option_names()) r.out += "  --" + n + "\n";
    return r;
  }
  r.out = "ATC start working now, please wait for a moment.\n";
  if (a.ok() && a->atc.count("log")) {
    static const std::map<std::string, LogLevel> kLevels = {{"debug", LogLevel::debug}, {"info", LogLevel::info}, {"warning", LogLevel::warning}, {"error", LogLevel::error}, {"null", LogLevel::none}};
    auto it = kLevels.find(a->atc["log"]);
    if (it == kLevels.end()) a = error(code::kInvalidValue, format("Value {} for parameter --log is invalid. Reason: it must be debug, info, warning, error or null.", a->atc["log"]));
    else set_log_sink([](LogLevel, const std::string& line) { std::fprintf(stderr, "[GE] %s\n", line.c_str()); }, it->second);
  }
  Status s = a.ok() ? build(*a, arguments, r.out) : Status(std::move(a).take_error());
  if (s.ok()) {
    r.out += "ATC run success, welcome to the next use.\n";
    return r;
  }
  r.out += "ATC run failed, Please check the detail log, Try 'atc --help' for more information\n";
  r.err = s.error().text() + "\n";
  r.status = 1;
  return r;
}

}  // namespace ge
