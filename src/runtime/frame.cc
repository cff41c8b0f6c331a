#include "runtime/frame.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/text.h"
#include "om/expressions.h"
#include "runtime/chunk.h"
#include "runtime/fault_text.h"

namespace ge::runtime {
namespace {

Error damaged(std::string what) {
  return error(code::kParse, std::move(what), "the .om file is damaged", "compile the model again");
}

}  // namespace

Status Frame::run(Execution& x, std::span<const Value> inputs, Sink& sink) {
  x_ = &x;
  inputs_ = inputs;
  sink_ = &sink;
  auto& p = program();
  std::vector<std::vector<int64_t>> dims;
  for (auto& v : inputs) dims.push_back(v.dims);
  if (!p.states.empty() && (!x.states || !outermost())) return damaged("A nested graph has states.");
  GE_TRY(symbols_, bind_symbols(p, dims, p.states.empty() ? StateDims() : x.states->dims()));
  size_t buffers = p.buffers.size();
  segments_.resize(std::max<size_t>(p.segments.size(), 1));
  address_.assign(buffers, nullptr);
  address_bytes_.assign(buffers, -1);
  slots_.assign(buffers, {});
  filled_.assign(buffers, Slot::empty);
  Status s = ok();
  for (int i = 0; i < static_cast<int>(segments_.size()) && s.ok(); ++i) s = run_segment(i);
  if (s.ok()) s = hand_on();
  // Nothing outlives the activation but what was given to the sink.
  slots_.clear();
  for (auto& segment : segments_) segment.block.reset();
  if (s.ok() && !p.states.empty()) s = end_states();
  return s;
}

Status Frame::run_segment(int index) {
  Segment& s = segments_[static_cast<size_t>(index)];
  if (!s.binding || s.binding->symbols != symbols_) {
    s.binding = nullptr;
    GE_TRY(s.binding, x_->bindings.get(program_, index, symbols_));
  }
  GE_RETURN_IF_ERROR(attach(s));
  Profile* profile = outermost() ? x_->profile : nullptr;
  auto clock = [&] { return profile ? std::chrono::steady_clock::now() : x_->begin; };
  for (size_t t = 0; t < s.binding->tasks.size(); ++t) {
    auto start = clock();
    Status status = run_task(s, t);
    auto& task = *program().tasks[static_cast<size_t>(s.binding->tasks[t].task)];
    if (!status.ok()) {
      Error e = std::move(status).take();
      if (e.node.empty()) e.node = task.name;
      return e;
    }
    auto us = [](auto d) { return std::chrono::duration<double, std::micro>(d).count(); };
    if (profile) profile->entries.push_back({s.binding->tasks[t].task, us(start - x_->begin), us(clock() - start)});
  }
  GE_RETURN_IF_ERROR(read_symbols(index));
  release(index);
  return ok();
}

// Outputs that are inputs.
Status Frame::hand_on() {
  auto& p = program();
  for (size_t i = 0; i < p.outputs.size(); ++i) {
    int32_t at = p.outputs[i]->buffer;
    if (at < 0 || static_cast<size_t>(at) >= p.buffers.size() || p.buffers[static_cast<size_t>(at)]->kind != om::BufferKind::input) continue;
    GE_RETURN_IF_ERROR(sink_->value(i, inputs_[static_cast<size_t>(p.buffers[static_cast<size_t>(at)]->index)]));
  }
  return ok();
}

// Memory for the segment's arena, and an address for every operand.
Status Frame::attach(Segment& s) {
  const Binding& b = *s.binding;
  auto& p = program();
  s.block.reset();
  if (!b.states.empty()) GE_RETURN_IF_ERROR(x_->states->prepare(b));
  // Memory of no bytes has an address too.
  if (std::any_of(b.buffer_offset.begin(), b.buffer_offset.end(), [](int64_t at) { return at >= 0; }) || b.arena > 0) {
    auto block = x_->blocks.take(b.arena);
    if (!block.ok()) return no_arena(b, static_cast<size_t>(b.arena));
    s.block = *std::move(block);
  }
  s.keep = b.segment;
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    if (b.buffer_offset[i] < 0) continue;
    address_[i] = s.block.get() + b.buffer_offset[i];
    address_bytes_[i] = b.buffer_bytes[i];
    for (size_t k = static_cast<size_t>(s.keep) + 1; k < p.segments.size(); ++k)
      if (p.buffers[i]->last >= p.segments[k]->first) s.keep = static_cast<int>(k);
  }
  s.views.assign(b.views.begin(), b.views.end());
  for (size_t i = 0; i < s.views.size(); ++i)
    if (b.placed[i].buffer >= 0 && !b.placed[i].open) GE_RETURN_IF_ERROR(address(s, i));
  s.calls.resize(b.tasks.size());
  for (size_t t = 0; t < b.tasks.size(); ++t) {
    const BoundTask& task = b.tasks[t];
    kernels::Call& c = s.calls[t];
    c = b.call(task);
    c.in = std::span<const View>(s.views).subspan(static_cast<size_t>(task.view0), static_cast<size_t>(task.inputs));
    c.out = std::span<const View>(s.views).subspan(static_cast<size_t>(task.view0 + task.inputs), static_cast<size_t>(task.outputs));
    c.shared = task.work.shared ? s.block.get() + task.shared_offset : nullptr;
    c.scratch = task.work.scratch ? s.block.get() + task.scratch_offset : nullptr;
  }
  return ok();
}

Status Frame::address(Segment& s, size_t i) {
  const Binding& b = *s.binding;
  auto at = static_cast<size_t>(b.placed[i].buffer);
  auto& buffer = *program().buffers[at];
  if (!address_[at]) switch (buffer.kind) {
      case om::BufferKind::weight:
        address_[at] = const_cast<std::byte*>(x_->package.weights.data()) + buffer.weight_offset;
        address_bytes_[at] = b.buffer_bytes[at];
        break;
      case om::BufferKind::input: {
        auto& v = inputs_[static_cast<size_t>(buffer.index)];
        if (!v.is_tensor()) return damaged("A tensor is taken from a value that is none.");
        address_[at] = const_cast<std::byte*>(v.data);
        address_bytes_[at] = v.bytes();
        break;
      }
      case om::BufferKind::output: {
        auto n = static_cast<size_t>(buffer.index);
        GE_TRY(address_[at], sink_->tensor(n, static_cast<DType>(program().outputs[n]->dtype), b.output_dims[n]));
        address_bytes_[at] = b.buffer_bytes[at];
        break;
      }
      case om::BufferKind::state:
        address_[at] = x_->states->address(static_cast<size_t>(buffer.index));
        address_bytes_[at] = b.buffer_bytes[at];
        break;
      default:
        if (filled_[at] == Slot::held && slots_[at].is_tensor()) {
          address_[at] = const_cast<std::byte*>(slots_[at].data);
          address_bytes_[at] = slots_[at].bytes();
          break;
        }
        return damaged(format("Buffer {} is read before it is made.", at));
    }
  // What was proved for the buffer's size must hold for the memory that there is.
  if (b.buffer_bytes[at] > address_bytes_[at]) return damaged(format("Buffer {} is smaller than the program says.", at));
  s.views[i].data = address_[at] + b.placed[i].byte_offset;
  return ok();
}

Status Frame::run_task(Segment& s, size_t t) {
  const BoundTask& task = s.binding->tasks[t];
  if (!task.kernel->executor) {
    Chunks chunks{&s.calls[t], &task};
    return x_->team.parallel(task.work.chunks, run_chunk, &chunks);
  }
  auto f = find_host(task.kernel->name);
  if (!f) return damaged(format("'{}' cannot be run.", task.kernel->name));
  TaskRun run(*this, s, task);
  return f(run);
}

Status Frame::read_symbol(const om::SymbolT& symbol, int64_t& value) {
  auto at = static_cast<size_t>(symbol.buffer);
  if (symbol.axis >= 0) {
    if (filled_[at] != Slot::held || static_cast<size_t>(symbol.axis) >= slots_[at].dims.size()) return damaged(format("Size '{}' has no value.", symbol.name));
    value = slots_[at].dims[static_cast<size_t>(symbol.axis)];
  } else {
    int64_t end = (int64_t{symbol.element} + 1) * static_cast<int64_t>(sizeof(int64_t));
    if (!address_[at] || symbol.element < 0 || end > address_bytes_[at]) return damaged(format("Size '{}' has no value.", symbol.name));
    std::memcpy(&value, address_[at] + end - sizeof(int64_t), sizeof value);
  }
  if (value < symbol.min || value > symbol.max) {
    std::string most = symbol.max == INT64_MAX ? "" : format(" to {}", symbol.max);
    int64_t sign;
    const std::string shown = om::symbol_text(symbol, sign);
    const om::TaskT* user = nullptr;
    for (size_t k = 0; k < program().symbols.size(); ++k)
      if (program().symbols[k].get() == &symbol) user = om::user_of_symbol(program(), k);
    if (!user) user = program().tasks[static_cast<size_t>(symbol.task)].get();
    return node_error(code::kRunFailed, user->name, format("{}: {} is {}, allowed are {}{}.", om::op_of(*user), shown, value, symbol.min, most.empty() ? " and more" : most),
                      "the data that are fed, or what is computed from them, say so", "check the numbers that the inputs hold");
  }
  return ok();
}

// All sizes are known now: those that the states hold from here on.
Status Frame::end_states() {
  auto& p = program();
  std::vector<int64_t> values;
  GE_RETURN_IF_ERROR(om::evaluate(p, symbols_, values));
  StateDims out;
  for (auto& port : p.states) {
    auto& dims = out.emplace_back();
    for (int32_t e : port->out) dims.push_back(values[static_cast<size_t>(e)]);
    if (std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; })) return damaged("The size of a state is not known.");
  }
  x_->states->finish(out);
  return ok();
}

// The sizes that the segment's tasks have decided.
Status Frame::read_symbols(int index) {
  auto& p = program();
  if (static_cast<size_t>(index) + 1 >= p.segments.size()) return ok();
  auto& segment = *p.segments[static_cast<size_t>(index)];
  for (size_t i = 0; i < p.symbols.size(); ++i) {
    auto& symbol = *p.symbols[i];
    if (symbol.buffer < 0 || symbol.task < segment.first || symbol.task >= segment.end) continue;
    GE_RETURN_IF_ERROR(read_symbol(symbol, symbols_[i]));
  }
  return ok();
}

// Gives back what no later segment reads; its addresses go too, so that nothing can read it.
void Frame::release(int after) {
  auto& p = program();
  if (static_cast<size_t>(after) + 1 >= p.segments.size()) return;
  for (auto& s : segments_) {
    if (!s.block || s.keep > after) continue;
    s.block.reset();
    for (size_t i = 0; i < address_.size(); ++i)
      if (s.binding->buffer_offset[i] >= 0) address_[i] = nullptr;
  }
  int32_t end = p.segments[static_cast<size_t>(after)]->end;
  for (size_t i = 0; i < slots_.size(); ++i)
    if (filled_[i] == Slot::held && p.buffers[i]->kind == om::BufferKind::pool && p.buffers[i]->last < end) {
      slots_[i] = {};
      filled_[i] = Slot::gone;
      address_[i] = nullptr;
    }
}

}  // namespace ge::runtime
