// What host functions ask of the frame that runs them.
#include <cstring>
#include <map>

#include "base/text.h"
#include "om/expressions.h"
#include "runtime/frame.h"

namespace ge::runtime {
namespace {

std::map<std::string_view, HostFunction>& table() {
  static std::map<std::string_view, HostFunction> t;
  return t;
}

}  // namespace

RegisterHost::RegisterHost(std::string_view kernel, HostFunction f) {
  bool fresh = table().emplace(kernel, f).second;
  GE_CHECK(fresh, "host function registered twice: " + std::string(kernel));
}

Value::Kind optional_of(Value::Kind k) {
  return k == Value::Kind::tensor ? Value::Kind::optional : k == Value::Kind::sequence ? Value::Kind::optional_sequence : k;
}

HostFunction find_host(std::string_view kernel) {
  auto it = table().find(kernel);
  return it == table().end() ? nullptr : it->second;
}

Error TaskRun::fail(std::string message) const {
  auto& t = *frame_.program().tasks[static_cast<size_t>(task_.task)];
  return node_error(code::kRunFailed, t.name, format("{}: {}", om::op_of(t), message));
}

std::string_view TaskRun::text() const {
  auto& blob = task_.call->blob;
  return {reinterpret_cast<const char*>(blob.data()), blob.size()};
}

DType TaskRun::out_type(size_t i) const { return i < outputs() ? static_cast<DType>(task_.call->outs[i]->dtype) : DType::none; }

Value::Kind TaskRun::out_kind(size_t i) const {
  if (!wants(i)) return Value::Kind::tensor;
  return static_cast<Value::Kind>(frame_.program().buffers[static_cast<size_t>(at(inputs() + i).buffer)]->value);
}

Result<Value> TaskRun::in(size_t i) const {
  if (!has(i)) return fail(format("input {} is missing", i));
  const BoundView& place = at(i);
  auto buffer = static_cast<size_t>(place.buffer);
  auto& b = *frame_.program().buffers[buffer];
  if (frame_.filled_[buffer] == Frame::Slot::held) return frame_.slots_[buffer];
  if (place.open) {
    if (b.kind == om::BufferKind::input) return frame_.inputs_[static_cast<size_t>(b.index)];
    return fail(format("input {} has not been made", i));
  }
  const View& v = view(i);
  if (!v.dense()) return fail(format("input {} is not dense", i));
  return Value::tensor(v.dtype, v.shape(), v.data);
}

Result<int64_t> TaskRun::integer(size_t i) const {
  GE_TRY(Value v, in(i));
  if (!v.is_tensor() || v.count() != 1) return fail(format("input {} is not one number", i));
  switch (v.dtype) {
    case DType::boolean: return int64_t{*reinterpret_cast<const uint8_t*>(v.data) != 0};
    case DType::i32: return int64_t{*reinterpret_cast<const int32_t*>(v.data)};
    case DType::i64: return *reinterpret_cast<const int64_t*>(v.data);
    default: return fail(format("input {} is {}", i, name(v.dtype)));
  }
}

Result<std::byte*> TaskRun::out(size_t i, DType t, std::span<const int64_t> dims) {
  if (!wants(i)) return fail(format("output {} is missing", i));
  size_t operand = inputs() + i;
  const BoundView& place = at(operand);
  auto buffer = static_cast<size_t>(place.buffer);
  if (out_type(i) != t) return fail(format("output {} is {} instead of {}", i, name(t), name(out_type(i))));
  if (!place.open) {
    const View& v = view(operand);
    if (!std::equal(dims.begin(), dims.end(), v.shape().begin(), v.shape().end()))
      return fail(format("output {} has shape {} instead of {}", i, shape_text(dims), shape_text(v.shape())));
    if (!v.dense()) return fail(format("output {} is not dense", i));
    return v.data;
  }
  if (frame_.filled_[buffer] != Frame::Slot::empty) return fail(format("output {} is made twice", i));
  GE_TRY(int64_t bytes, checked_bytes(t, dims, frame_.program().tasks[static_cast<size_t>(task_.task)]->name));
  auto& b = *frame_.program().buffers[buffer];
  Value made = Value::tensor(t, dims, nullptr);
  std::byte* memory = nullptr;
  if (b.kind == om::BufferKind::output) {
    GE_TRY(memory, frame_.sink_->tensor(static_cast<size_t>(b.index), t, dims));
  } else {
    GE_TRY(auto block, blocks().take(bytes));
    memory = block.get();
    made.keep = block;
  }
  made.data = memory;
  frame_.address_[buffer] = memory;
  frame_.address_bytes_[buffer] = bytes;
  frame_.slots_[buffer] = std::move(made);
  frame_.filled_[buffer] = Frame::Slot::held;
  return memory;
}

Status TaskRun::give(size_t i, Value v) {
  if (!wants(i)) return ok();
  const BoundView& place = at(inputs() + i);
  auto buffer = static_cast<size_t>(place.buffer);
  auto& b = *frame_.program().buffers[buffer];
  if (v.is_tensor() && (!place.open || v.dtype != out_type(i))) {
    GE_TRY(std::byte* to, out(i, v.dtype, v.dims));
    if (v.bytes()) std::memcpy(to, v.data, static_cast<size_t>(v.bytes()));
    return ok();
  }
  if (!place.open) return fail(format("output {} is no tensor", i));
  if (frame_.filled_[buffer] != Frame::Slot::empty) return fail(format("output {} is made twice", i));
  GE_TRY(v, blocks().own(v));
  if (b.kind == om::BufferKind::output) GE_RETURN_IF_ERROR(frame_.sink_->value(static_cast<size_t>(b.index), v));
  frame_.address_[buffer] = const_cast<std::byte*>(v.data);
  frame_.address_bytes_[buffer] = v.is_tensor() ? v.bytes() : -1;
  frame_.slots_[buffer] = std::move(v);
  frame_.filled_[buffer] = Frame::Slot::held;
  return ok();
}

size_t TaskRun::programs() const { return frame_.program().tasks[static_cast<size_t>(task_.task)]->programs.size(); }

const om::ProgramT& TaskRun::program(size_t k) const {
  auto index = frame_.program().tasks[static_cast<size_t>(task_.task)]->programs[k];
  return *frame_.x_->package.model.programs[static_cast<size_t>(index)];
}

Status TaskRun::run_program(size_t k, std::span<const Value> values, Sink& sink) {
  auto index = frame_.program().tasks[static_cast<size_t>(task_.task)]->programs[k];
  auto& p = program(k);
  if (values.size() != p.inputs.size()) return fail(format("its graph takes {} inputs, not {}", p.inputs.size(), values.size()));
  std::vector<Value> wrapped;
  for (size_t i = 0; i < values.size(); ++i) {
    auto kind = static_cast<Value::Kind>(p.inputs[i]->kind);
    if (kind != values[i].kind && kind == optional_of(values[i].kind)) {
      if (wrapped.empty()) wrapped.assign(values.begin(), values.end());
      wrapped[i] = Value{.kind = kind, .dtype = values[i].dtype, .dims = {}, .data = nullptr, .keep = {}, .items = {values[i]}};
      kind = values[i].kind;
    }
    if (static_cast<DType>(p.inputs[i]->dtype) != values[i].dtype || kind != values[i].kind)
      return fail(format("input {} of its graph has another type", i));
  }
  if (!wrapped.empty()) values = wrapped;
  auto& child = frame_.children_[{task_.task, static_cast<int>(k)}];
  if (!child) child = std::make_unique<Frame>(index);
  return child->run(*frame_.x_, values, sink);
}

}  // namespace ge::runtime
