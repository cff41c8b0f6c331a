#include "driver/atc.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <map>

#include "base/log.h"
#include "base/text.h"
#include "base/file.h"
#include "driver/atc_options.h"
#include "driver/atc_report.h"
#include "driver/compile.h"
#include "driver/report.h"
#include "om/writer.h"
#include "runtime/model.h"

namespace ge {
namespace {

// Everything is told when it happens: a long compilation is seen to work.
void say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

struct Arguments {
  std::map<std::string, std::string> own;
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<std::string> warnings;
  LogLevel log = LogLevel::warning;
};

std::string help_text() {
  std::string t = "usage: atc --model=FILE.onnx --framework=5 --output=PREFIX --soc_version=NAME [--OPTION=VALUE ...]\n";
  auto list = [&](AtcKind kind, const char* before) {
    for (auto& o : atc_options())
      if (o.kind == kind) t += format("  --{:<27} {}{}\n", o.name, before, o.answer);
  };
  list(AtcKind::own, "");
  list(AtcKind::compiler, "");
  list(AtcKind::nothing, "(ignored) ");
  list(AtcKind::refused, "(refused) ");
  return t;
}

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
    auto* option = find_atc_option(name);
    if (!option) {
      std::vector<std::string> known;
      for (auto& o : atc_options()) known.emplace_back(o.name);
      std::string near = nearest(name, known);
      return error(code::kInvalidValue, format("Option --{} is not known.", name), "", near.empty() ? "see atc --help" : format("did you mean --{}?", near));
    }
    switch (option->kind) {
      case AtcKind::own: a.own[name] = value; break;
      case AtcKind::compiler: a.options.emplace_back(name, value); break;
      case AtcKind::refused: return refusal(*option);
      default: a.warnings.push_back(format("--{}: {}", name, option->answer));
    }
  }
  // What switches single rules beats the file, wherever it stands.
  std::stable_partition(a.options.begin(), a.options.end(), [](auto& o) { return o.first != "optimization_switch"; });
  return a;
}

std::string command_without_paths(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"atc"};
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto& w = arguments[i];
    size_t equals = w.find('=');
    std::string name = w.starts_with("--") ? w.substr(2, equals == std::string::npos ? equals : equals - 2) : "";
    words.push_back(equals == std::string::npos ? w : "--" + name + "=" + without_folder(name, w.substr(equals + 1)));
    if (equals == std::string::npos && i + 1 < arguments.size() && !arguments[i + 1].starts_with("--")) words.push_back(without_folder(name, arguments[++i]));
  }
  return join(words, " ");
}

std::string get(const Arguments& a, const char* name) {
  auto it = a.own.find(name);
  return it == a.own.end() ? std::string() : it->second;
}

Error invalid(const char* name, const std::string& value, std::string reason, std::string fix = "") {
  return error(code::kInvalidValue, format("Value {} for parameter --{} is invalid. Reason: {}.", value, name, reason), "", std::move(fix));
}

// ASCEND_WORK_PATH, or the current folder.
std::string work_path(const std::string& file) {
  const char* w = std::getenv("ASCEND_WORK_PATH");
  return w && *w ? std::string(w) + "/" + file : file;
}

std::string check_report_path(const Arguments& a) {
  std::string given = get(a, "check_report");
  return given.empty() ? work_path("check_result.json") : given;
}

// 0 or 1, or absent.
Status check_flags(const Arguments& a) {
  for (const char* n : {"display_model_info", "dump_mode"})
    if (a.own.count(n) && get(a, n) != "0" && get(a, n) != "1") return invalid(n, get(a, n), "it must be 0 or 1");
  return ok();
}

Status require(const Arguments& a, std::initializer_list<const char*> names) {
  for (const char* n : names)
    if (get(a, n).empty()) return invalid(n, "", "it is required and missing", format("add --{}=...", n));
  if (a.own.count("framework") && get(a, "framework") != "5")
    return invalid("framework", get(a, "framework"), "GE reads ONNX models (5); 0 is Caffe, 1 MindSpore, 3 TensorFlow", "export the model to ONNX and use --framework=5");
  return ok();
}

Result<std::string> output_path(const Arguments& a) {
  std::string given = get(a, "output"), path = given.ends_with(".om") ? given : given + ".om";
  std::string last = given.substr(given.rfind('/') + 1);
  if (last.empty() || last == "." || last == "..")
    return invalid("output", given, "it names a folder", "give the path of the result without .om, as in --output=folder/model");
  return path;
}

Status build(const Arguments& a, const std::vector<std::string>& arguments) {
  GE_RETURN_IF_ERROR(require(a, {"model", "framework", "output", "soc_version"}));
  GE_TRY(std::string path, output_path(a));
  const std::string model = get(a, "model");
  GE_RETURN_IF_ERROR(not_in_place_of(path, {&model, 1}));
  Options o;
  for (auto& [name, value] : a.options) GE_RETURN_IF_ERROR(set_option(o, name, value));
  o.command = command_without_paths(arguments);
  o.output_dir = folder_of(path);
  say("[GE] Graph build started...\n");
  say(o.reuse_memory ? "[GE] Memory reuse enabled, planning...\n" : "[GE] Memory reuse disabled\n");
  auto c = compile_file(model, o);
  if (!c.ok()) {
    Error e = std::move(c).take_error();
    // The parser's findings, as ATC leaves them.
    if (e.code == code::kUnsupportedOp) {
      auto written = write_check_report(model, check_report_path(a));
      if (written.ok()) e.fix += format("; {} lists every operator", check_report_path(a));
    }
    return e;
  }
  GE_RETURN_IF_ERROR(om::write(c->package, path));
  if (c->from_cache) say("[GE] Compiled before: taken from the cache\n");
  say(format("[GE] Planning completed, fusion {} operators\n", fused_operators(c->package)));
  say(format("[GE] Graph compile completed in {:.2f}s\n", c->milliseconds / 1000));
  if (a.log <= LogLevel::warning) say(fusion_warnings(c->package));
  if (o.export_compile_stat) {
    Status s = write_compile_stat(c->package, work_path("fusion_result.json"));
    if (!s.ok() && a.log <= LogLevel::warning) say(format("[GE] WARN: {}\n", s.error().message));
  }
  if (get(a, "display_model_info") == "1") {
    GE_TRY(auto file, MappedFile::open(path));
    say(display_model_info(c->package, static_cast<int64_t>(file->bytes().size())));
  }
  return ok();
}

Status check_only(const Arguments& a) {
  GE_RETURN_IF_ERROR(require(a, {"model", "framework"}));
  std::string path = check_report_path(a);
  GE_TRY(bool pass, write_check_report(get(a, "model"), path));
  say(format("[GE] check report: {}\n", path));
  if (!pass) return error(code::kUnsupportedOp, "Some operators of the model are not supported.", "", format("see {}", path));
  return ok();
}

Status to_json(const Arguments& a) {
  GE_RETURN_IF_ERROR(require(a, {"json"}));
  const std::vector<std::string> read{get(a, "om"), get(a, "model")};
  GE_RETURN_IF_ERROR(not_in_place_of(get(a, "json"), read));
  if (!get(a, "om").empty() && get(a, "om").ends_with(".om")) {
    GE_TRY(auto m, runtime::Model::open(get(a, "om")));
    return write_file(get(a, "json"), om_json(m->package()));
  }
  std::string model = get(a, "om").empty() ? get(a, "model") : get(a, "om");
  if (model.empty()) return invalid("om", "", "an .om file or a model is required", "add --om=... or --model=...");
  GE_TRY(auto text, onnx_json(model, get(a, "dump_mode") == "1"));
  return write_file(get(a, "json"), text);
}

Status show_info(const Arguments& a) {
  GE_RETURN_IF_ERROR(require(a, {"om"}));
  GE_TRY(auto file, MappedFile::open(get(a, "om")));
  GE_TRY(auto m, runtime::Model::open(get(a, "om")));
  say(display_model_info(m->package(), static_cast<int64_t>(file->bytes().size())));
  return ok();
}

Status run_mode(const Arguments& a, const std::vector<std::string>& arguments) {
  GE_RETURN_IF_ERROR(check_flags(a));
  std::string mode = get(a, "mode");
  if (mode.empty() || mode == "0") return build(a, arguments);
  if (mode == "1") return to_json(a);
  if (mode == "3") return check_only(a);
  if (mode == "6") return show_info(a);
  return invalid("mode", mode, "it must be 0, 1, 3 or 6");
}

// --log: which lines of the log go to standard error, and whether the [GE] WARN lines stand on standard output.
Status set_log(Arguments& a) {
  static constexpr std::pair<const char*, const char*> kLevels[] = {{"debug", "DEBUG"}, {"info", "INFO"}, {"warning", "WARN"}, {"error", "ERROR"}, {"null", ""}};
  if (a.own.count("log")) {
    auto* it = std::find_if(std::begin(kLevels), std::end(kLevels), [&](auto& l) { return a.own["log"] == l.first; });
    if (it == std::end(kLevels)) return invalid("log", a.own["log"], "it must be debug, info, warning, error or null");
    a.log = static_cast<LogLevel>(it - kLevels);
  }
  set_log_sink([](LogLevel l, const std::string& line) { std::fprintf(stderr, "[GE] %s: %s\n", kLevels[static_cast<int>(l)].second, line.c_str()); }, a.log);
  return ok();
}

}  // namespace

int atc(const std::vector<std::string>& arguments) {
  auto a = read(arguments);
  if (a.ok() && a->own.count("help")) {
    say(help_text());
    return 0;
  }
  say("ATC start working now, please wait for a moment.\n");
  if (a.ok()) {
    Status s = set_log(*a);
    if (!s.ok()) a = std::move(s).take();
  }
  if (a.ok() && a->log <= LogLevel::warning)
    for (auto& w : a->warnings) say(format("[GE] WARN: {}\n", w));
  Status s = a.ok() ? run_mode(*a, arguments) : Status(std::move(a).take_error());
  if (s.ok()) {
    say("ATC run success, welcome to the next use.\n");
    return 0;
  }
  say("ATC run failed, Please check the detail log, Try 'atc --help' for more information\n");
  std::fputs((s.error().text() + "\n").c_str(), stderr);
  return 1;
}

}  // namespace ge
