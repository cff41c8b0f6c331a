#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "driver/command_model.h"
#include "driver/notes.h"
#include "driver/report.h"
#include "driver/run.h"
#include "driver/verify.h"

namespace ge {
namespace {

std::string difference_text(const std::string& output, const Tensor& t, const Difference& d) {
  std::vector<std::string> dims;
  for (auto n : t.dims()) dims.push_back(format("{}", n));
  std::string head = format("{} {}[{}]: ", output, name(t.dtype()), join(dims, ","));
  if (d.count == 0) return head + "equal\n";
  return head + format("{} of {} elements differ, by at most {:.3g} ({:.3g} of the largest magnitude)\n", d.count, t.count(), d.largest, d.relative());
}

std::string megabytes(const nlohmann::ordered_json& notes, const char* kind) {
  bool said = notes.contains("memory") && notes["memory"].contains(kind) && notes["memory"][kind].is_number();
  return said ? bytes_text(notes["memory"][kind].get<double>()) : "by size";
}

// Lines of a that b lacks, each with the mark; equal lines count one for one.
std::string only(std::vector<std::string> a, std::vector<std::string> b, const char* mark) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  std::vector<std::string> rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
  std::string out;
  for (auto& line : rest) out += format("{} {}\n", mark, line);
  return out;
}

// What can be told of a model line by line.
struct Lines {
  std::vector<std::string> signature, fused, tasks;
};

Lines lines_of(const om::Package& p) {
  Lines out;
  auto& program = *p.model.programs[static_cast<size_t>(p.model.entries[0]->program)];
  for (auto& port : program.inputs) out.signature.push_back("input " + port_text(program, *port));
  for (auto& port : program.outputs) out.signature.push_back("output " + port_text(program, *port));
  auto notes = notes_of(p);
  if (notes.contains("fused"))
    for (auto& f : notes["fused"]) out.fused.push_back(format("{} at {}", f["rule"].get<std::string>(), f["node"].get<std::string>()));
  for (auto& t : program.tasks) out.tasks.push_back(format("{} {}", p.model.kernels[static_cast<size_t>(t->alternatives[0]->kernel)], t->name));
  return out;
}

void section(std::string& out, const char* title, const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::string text = only(a, b, "  -") + only(b, a, "  +");
  out += text.empty() ? format("{}: the same ({})\n", title, a.size()) : format("{}: {} and {}\n{}", title, a.size(), b.size(), text);
}

}  // namespace

Result<JudgedOutput> verify_command(const VerifyCommand& c) {
  if (c.compile.model.ends_with(".om"))
    return error(code::kInvalidValue, format("{} is compiled already.", c.compile.model), "its operators one by one are not in the file any more", "verify the ONNX model; `ge diff` compares two .om files");
  GE_TRY(auto compiled, open_model(c.compile, c.run.threads));
  // Options that say what the model is; the others only say how it is made fast.
  static const std::set<std::string> kEdits = {"input_shape", "dynamic_batch_size", "dynamic_image_size", "dynamic_dims", "out_nodes", "output_type", "input_format", "input_fp16_nodes"};
  CompileCommand plain{c.compile.model, "", {}};
  for (auto& option : c.compile.options)
    if (kEdits.count(option.first)) plain.options.push_back(option);
  GE_TRY(Options reference, options_of(plain));
  reference.reference = true;
  GE_TRY(auto graph, read_graph(plain.model));
  GE_TRY(auto meaning, compile_graph(std::move(graph), reference));
  GE_TRY(auto unfused, runtime::Model::from(std::move(meaning.package), {c.run.threads, false, false}));
  GE_TRY(auto inputs, inputs_of(*compiled, c.run));
  GE_TRY(auto got, run(*compiled, inputs));
  GE_TRY(auto expected, run(*unfused, inputs));
  JudgedOutput out;
  std::vector<std::string> far;
  for (size_t i = 0; i < got.size(); ++i) {
    auto d = difference_of(got[i], expected[i]);
    auto& output = compiled->program().outputs[i]->name;
    out.text += difference_text(output, got[i], d);
    if (!(d.relative() <= c.tolerance)) far.push_back(output);
  }
  if (!far.empty()) out.missed = format("{} of {} outputs differ by more than {:g} of their largest magnitude from operators run one by one: {}", far.size(), got.size(), c.tolerance, join(far, ", "));
  return out;
}

Result<std::string> diff_command(const DiffCommand& c) {
  GE_TRY(auto a, open_model({c.first, "", {}}, c.run.threads));
  GE_TRY(auto b, open_model({c.second, "", {}}, c.run.threads));
  std::string out = format("- {}\n+ {}\n", c.first, c.second);
  auto row = [&](const char* what, const std::string& x, const std::string& y) { out += x == y ? format("{}: {}\n", what, x) : format("{}: {} and {}\n", what, x, y); };
  auto& pa = a->package();
  auto& pb = b->package();
  row("source", pa.model.source_hash, pb.model.source_hash);
  auto command = [](const om::Package& p) { return p.model.command.empty() ? "a call of the library" : p.model.command; };
  row("command", command(pa), command(pb));
  row("weights", bytes_text(static_cast<double>(om::weight_bytes(pa))), bytes_text(static_cast<double>(om::weight_bytes(pb))));
  auto na = notes_of(pa), nb = notes_of(pb);
  for (const char* kind : {"arena", "state"}) row(kind, megabytes(na, kind), megabytes(nb, kind));
  Lines la = lines_of(pa), lb = lines_of(pb);
  section(out, "signature", la.signature, lb.signature);
  section(out, "fused groups", la.fused, lb.fused);
  section(out, "tasks", la.tasks, lb.tasks);
  if (la.signature != lb.signature) return out + "outputs: not compared, the signatures differ\n";
  GE_TRY(auto inputs, inputs_of(*a, c.run));
  GE_TRY(auto ya, run(*a, inputs));
  GE_TRY(auto yb, run(*b, inputs));
  for (size_t i = 0; i < ya.size(); ++i) out += difference_text(a->program().outputs[i]->name, ya[i], difference_of(ya[i], yb[i]));
  return out;
}

}  // namespace ge
