#include "runtime/fault_text.h"

#include <algorithm>

#include "base/text.h"
#include "om/expressions.h"
#include "runtime/binding.h"
#include "runtime/value.h"

namespace ge::runtime {

using om::op_of;

namespace {

constexpr size_t kShown = 8;   // operands and numbers of a call that a message lists

std::string views_text(std::span<const View> views) {
  std::vector<std::string> parts;
  for (auto& v : views.first(std::min(views.size(), kShown)))
    parts.push_back(v.dtype == DType::none ? "nothing" : format("{}{}", name(v.dtype), shape_text(v.shape())));
  if (views.size() > kShown) parts.push_back(format("{} more", views.size() - kShown));
  return parts.empty() ? "nothing" : join(parts, ", ");
}

bool has_shape(const View& v) { return v.rank >= 0 && v.rank <= kMaxRank && (v.rank == 0 || v.dims); }

}  // namespace

const om::TaskT* maker_of(const om::ProgramT& program, size_t buffer) {
  for (auto& task : program.tasks)
    for (auto& call : task->alternatives)
      for (auto& v : call->outs)
        if (v->buffer >= 0 && static_cast<size_t>(v->buffer) == buffer) return task.get();
  return nullptr;
}

std::string call_text(const kernels::Call& call) {
  for (auto views : {call.in, call.out})
    for (auto& v : views)
      if (!has_shape(v)) return "operands without a shape";
  std::string out = format("{} to {}", views_text(call.in), views_text(call.out));
  std::vector<std::string> numbers;
  for (size_t i = 0; i < call.ints.size() && i < kShown; ++i) numbers.push_back(format("{}", call.ints[i]));
  if (call.ints.size() > kShown) numbers.push_back(format("{} more", call.ints.size() - kShown));
  return numbers.empty() ? out : out + "; parameters " + join(numbers, ", ");
}

Error refused_call(Error why, const om::TaskT& task, std::string_view kernel, const kernels::Call& call, bool open, bool data) {
  if (why.node.empty()) why.node = task.name;
  why.context.push_back(format("kernel {} on {}", kernel, call_text(call)));
  // A call that no compiler writes: the file's fault, not the caller's.
  if (why.code == code::kInternal || (why.code == code::kParse && !open)) {
    why.code = code::kParse, why.cause = "the file is damaged, or another version of GE wrote it", why.fix = "compile the model again";
    return why;
  }
  if (size_t colon = why.message.find(": "); colon != std::string::npos && kernels::find(std::string_view(why.message).substr(0, colon)))
    why.message = format("{}{}", op_of(task), why.message.substr(colon));
  if (!open || (why.code != code::kBadOp && why.code != code::kParse)) return why;
  if (why.code == code::kParse) why.code = data ? code::kRunFailed : code::kInputMismatch;
  if (why.cause.empty()) why.cause = data ? "sizes that the data give, or the node's attributes, do not fit together" : "the inputs' sizes, or the node's attributes, do not fit together";
  if (why.fix.empty()) why.fix = data ? "check the numbers that the inputs hold" : "feed sizes that the model is made for";
  return why;
}

Error wrong_size(const om::ProgramT& program, size_t buffer, int64_t bytes) {
  auto* maker = maker_of(program, buffer);
  std::string what = maker ? "What " + op_of(*maker) + " makes" : format("Buffer {}", buffer);
  const char* node = maker ? maker->name.c_str() : "";
  if (bytes >= 0) return node_error(code::kTooLarge, node, format("{} would take {}.", what, bytes_text(static_cast<double>(bytes))), "", "run with smaller inputs");
  if (program.symbols.empty()) return node_error(code::kParse, node, format("{} would take {} bytes.", what, bytes), "the .om file is damaged", "compile the model again");
  return node_error(code::kInputMismatch, node, format("{} would have a size below 0 for inputs of these sizes.", what), "an input is smaller than what slides over it or is cut from it",
                    "feed sizes that the model is made for");
}

Error no_arena(const Binding& binding, size_t bytes) {
  auto& program = *binding.program;
  Error e = error(code::kOutOfMemory, format("{} for the values between the nodes cannot be had.", bytes_text(static_cast<double>(bytes))), "",
                  "run with smaller inputs, or give the process more memory");
  size_t most = program.buffers.size();
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i]->kind == om::BufferKind::arena && binding.buffer_bytes[i] > 0 &&
        (most == program.buffers.size() || binding.buffer_bytes[i] > binding.buffer_bytes[most]))
      most = i;
  const om::TaskT* maker = most < program.buffers.size() ? maker_of(program, most) : nullptr;
  if (!maker) return e;
  e.node = maker->name;
  e.cause = format("the largest of them, {}, is what {} makes", bytes_text(static_cast<double>(binding.buffer_bytes[most])), op_of(*maker));
  return e;
}

Error no_output(const om::ProgramT& program, size_t output, DType type, std::span<const int64_t> dims, int64_t bytes) {
  auto& port = *program.outputs[output];
  const om::TaskT* maker = nullptr;
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i]->kind == om::BufferKind::output && program.buffers[i]->index == static_cast<int32_t>(output)) maker = maker_of(program, i);
  return node_error(code::kOutOfMemory, maker ? maker->name : "", format("{} for output '{}' cannot be had.", bytes_text(static_cast<double>(bytes)), port.name),
                    format("it is {}{}{}", name(type), shape_text(dims), maker ? " and made by " + op_of(*maker) : ""),
                    "run with smaller inputs, or give the process more memory");
}

}  // namespace ge::runtime
