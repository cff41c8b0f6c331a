// `ge report`: the compile report as one page of HTML that loads nothing.
#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "driver/command_model.h"
#include "driver/notes.h"
#include "driver/report.h"
#include "driver/run.h"

namespace ge {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p.sub { margin: .2rem 0 1rem; opacity: .7; overflow-wrap: anywhere; }
.tiles { display: flex; flex-wrap: wrap; gap: .6rem; }
.tiles div { border: 1px solid var(--line); border-radius: 6px; padding: .4rem .8rem; }
.tiles b { display: block; font-size: 1.15rem; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; max-height: 32rem; overflow-y: auto; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th { text-align: left; position: sticky; top: 0; background: Canvas; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.m { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; background: var(--soft); border-radius: 6px; }
svg rect { stroke: Canvas; stroke-width: .4; } svg rect:hover { opacity: .6; }
svg text { font: 11px system-ui, sans-serif; fill: currentColor; }
)";

std::string escaped(std::string_view s) {
  std::string out;
  for (char c : s) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    }
  return out;
}

std::string size_text(int64_t bytes) { return escaped(bytes_text(static_cast<double>(bytes))); }
std::string tile(const std::string& what, const std::string& value) { return format("<div>{}<b>{}</b></div>\n", what, value); }

std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows, const std::string& classes) {
  std::string out = "<div class=wide><table><tr>";
  auto cls = [&](size_t i) { return classes[i] == ' ' ? std::string() : format(" class={}", classes[i]); };
  for (size_t i = 0; i < head.size(); ++i) out += format("<th{}>{}</th>", cls(i), head[i]);
  out += "</tr>\n";
  for (auto& row : rows) {
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) out += format("<td{}>{}</td>", cls(i), escaped(row[i]));
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string text_of(const Json& j, const char* key) { return j.contains(key) && j[key].is_string() ? j[key].get<std::string>() : std::string(); }

std::string fusions(const Json& notes) {
  if (!notes.contains("fused")) return "<p>The file has no compile report.</p>\n";
  std::vector<std::vector<std::string>> fused, missed;
  for (auto& f : notes["fused"]) {
    std::vector<std::string> origins;
    for (auto& n : f["origins"]) origins.push_back(n.get<std::string>());
    const std::string how = text_of(f, "how");
    fused.push_back({text_of(f, "rule") + (how.empty() ? "" : ", " + how), text_of(f, "node"), format("{}", origins.size()), join(origins, ", ")});
  }
  for (auto& m : notes["near_misses"]) missed.push_back({text_of(m, "rule"), text_of(m, "anchor"), text_of(m, "blocker"), text_of(m, "why"), text_of(m, "help")});
  std::string out = format("<h2>Fused groups ({})</h2>\n", fused.size());
  if (!fused.empty()) out += table({"rule", "makes", "nodes", "of the model's nodes"}, fused, " mnm");
  out += format("<h2>Near misses ({})</h2>\n", missed.size());
  if (!missed.empty()) out += table({"rule", "at", "in the way", "why", "what would help"}, missed, " mm  ");
  return out;
}

// One rectangle a buffer: over the tasks during which it lives, at its place in the arena.
std::string memory_plan(const om::ProgramT& program, const runtime::Binding& b) {
  constexpr double kWidth = 1000, kHeight = 360;
  static constexpr const char* kColors[] = {"#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#b07aa1", "#edc948", "#9c755f"};
  const double tasks = std::max<double>(1, static_cast<double>(program.tasks.size())), bytes = std::max<double>(1, static_cast<double>(b.arena));
  std::string out = format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=img aria-label=\"buffers over tasks\">\n", kWidth, kHeight + 18);
  auto task_name = [&](int32_t t) { return program.tasks[static_cast<size_t>(std::clamp<int64_t>(t, 0, static_cast<int64_t>(program.tasks.size()) - 1))]->name; };
  auto add = [&](int32_t first, int32_t last, int64_t offset, int64_t size, const std::string& title, const char* color) {
    double y = static_cast<double>(offset) / bytes * kHeight, h = static_cast<double>(size) / bytes * kHeight;
    out += format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"><title>{}</title></rect>\n", first / tasks * kWidth, kHeight - y - h,
                  (last - first + 1) / tasks * kWidth, std::max(h, 0.3), color, escaped(title));
  };
  for (size_t i = 0; i < b.buffer_offset.size(); ++i) {
    if (b.buffer_offset[i] < 0 || b.buffer_bytes[i] <= 0) continue;
    const auto alive = b.life(i);
    int32_t first = std::max(alive.first, 0), last = std::max(alive.last, first);
    add(first, last, b.buffer_offset[i], b.buffer_bytes[i], format("{} at {}: tasks {} to {}, made by {}", bytes_text(static_cast<double>(b.buffer_bytes[i])), b.buffer_offset[i], first, last, task_name(first)), kColors[i % 8]);
  }
  for (auto& t : b.tasks) {
    if (t.work.shared > 0) add(t.task, t.task, t.shared_offset, t.work.shared, format("{} shared scratch of {}", bytes_text(static_cast<double>(t.work.shared)), task_name(t.task)), "#8888");
    if (t.work.scratch > 0) add(t.task, t.task, t.scratch_offset, t.work.scratch * b.threads, format("{} scratch of {}, for {} threads", bytes_text(static_cast<double>(t.work.scratch * b.threads)), task_name(t.task), b.threads), "#8888");
  }
  return out + format("<text x=0 y=\"{:.0f}\">task 0</text><text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=end>task {}</text></svg>\n", kHeight + 14, kWidth, kHeight + 14, program.tasks.size());
}

std::string task_table(const om::Package& p, const runtime::Binding& b, const std::map<int32_t, double>& us) {
  auto& program = *b.program;
  static constexpr const char* kUnits[] = {"cube", "vector", "host"};
  double total = 0;
  for (auto& [task, t] : us) total += t;
  std::vector<std::string> head = {"#", "unit", "lane", "kernel", "task", "stands for", "Mflop", "chunks"};
  std::string classes = "n nmmmnn";
  if (!us.empty()) head.insert(head.end(), {"us", "share"}), classes += "nn";
  std::vector<std::vector<std::string>> rows;
  for (auto& t : b.tasks) {
    auto& task = *program.tasks[static_cast<size_t>(t.task)];
    double operations = b.operations(t);
    std::vector<std::string> row = {format("{}", t.task), kUnits[std::min<int>(task.unit, 2)], format("{}", task.lane), p.model.kernels[static_cast<size_t>(t.call->kernel)],
                                    task.name, join(task.origins, ", "), operations > 0 ? format("{:.2f}", operations / 1e6) : "", format("{}", t.work.chunks)};
    if (auto it = us.find(t.task); !us.empty()) row.insert(row.end(), {it != us.end() ? format("{:.1f}", it->second) : "", it != us.end() ? format("{:.1f} %", 100 * it->second / total) : ""});
    rows.push_back(std::move(row));
  }
  return table(head, rows, classes);
}

// The least time of each task in some runs, in microseconds.
Result<std::map<int32_t, double>> times(runtime::Model& m, const std::vector<Tensor>& inputs) {
  std::map<int32_t, double> us;
  for (int i = 0; i < 5; ++i) {
    runtime::Profile profile;
    auto made = run(m, inputs, &profile);
    if (!made.ok()) return std::move(made).take_error();
    for (auto& e : profile.entries) us[e.task] = i && us.count(e.task) ? std::min(us[e.task], e.us) : e.us;
  }
  return us;
}

}  // namespace

Result<std::string> report_command(const ReportCommand& c) {
  std::string path = c.output.empty() ? std::filesystem::path(c.compile.model).replace_extension(".html").string() : c.output;
  GE_RETURN_IF_ERROR(not_in_place_of(path, {&c.compile.model, 1}));
  GE_TRY(auto m, open_model(c.compile, c.run.threads));
  auto& p = m->package();
  auto& program = m->program();
  Json notes = notes_of(p);
  GE_TRY(auto inputs, inputs_of(*m, c.run));
  std::map<int32_t, double> us;
  if (c.profile) {
    GE_TRY(us, times(*m, inputs));
  }
  auto bound = bind_for(*m, inputs);
  std::string out = format("<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\n<title>{0}</title><style>{1}</style>\n<h1>{0}</h1>\n<p class=sub>{2} &middot; {3}</p>\n",
                           escaped(p.model.name.empty() ? "model" : p.model.name), kStyle, escaped(p.model.producer), escaped(p.model.command));
  out += "<div class=tiles>\n" + tile("tasks", format("{}", program.tasks.size())) + tile("operators in fused groups", format("{}", fused_operators(p))) + tile("weights", size_text(om::weight_bytes(p)));
  if (bound.ok()) {
    auto& b = **bound;
    out += tile(format("arena, {} {}", b.threads, b.threads == 1 ? "thread" : "threads"), size_text(b.arena)) + tile(b.proved ? "no arena is smaller than" : "lower bound", size_text(b.lower_bound)) + tile("floating-point operations", format("{:.3f} G", b.operations() / 1e9));
  }
  out += "</div>\n<h2>Inputs and outputs</h2>\n";
  std::vector<std::vector<std::string>> ports;
  for (auto& port : program.inputs) ports.push_back({"input", port_text(program, *port)});
  for (auto& port : program.outputs) ports.push_back({"output", port_text(program, *port)});
  out += table({"", "name, type, sizes"}, ports, " m");
  if (bound.ok()) {
    std::vector<std::string> sizes;
    for (size_t i = 0; i < program.symbols.size() && i < (*bound)->symbols.size(); ++i) sizes.push_back(format("{} = {}", program.symbols[i]->name, (*bound)->symbols[i]));
    out += "<h2>Memory plan</h2>\n<p>Each buffer over the tasks during which it lives, at its place in the arena; point at one for its size.";
    if (!sizes.empty()) out += format(" For {}.", escaped(join(sizes, ", ")));
    if (program.segments.size() > 1) out += " Of the first segment: later sizes depend on data.";
    out += "</p>\n" + memory_plan(program, **bound);
  } else {
    out += format("<h2>Memory plan</h2>\n<p>{}</p>\n", escaped(bound.error().text()));
  }
  out += fusions(notes);
  if (bound.ok()) out += format("<h2>Tasks</h2>\n{}", task_table(p, **bound, us));
  out += "</html>\n";
  GE_RETURN_IF_ERROR(write_file(path, std::string_view(out)));
  return path + "\n";
}

}  // namespace ge
