// Control flow: flow.if, flow.loop, flow.scan.
//
// What the graph of a Loop or Scan stacks is written where it ends up when the size is known before; else into
// a block that grows.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "runtime/frame.h"

namespace ge::runtime {
namespace {

// ---- flow.if: in: condition, then what both programs take. Outputs are theirs.

class Forward : public Sink {
 public:
  explicit Forward(TaskRun& t) : task_(t) {}
  Result<std::byte*> tensor(size_t i, DType t, std::span<const int64_t> dims) override {
    if (task_.wants(i)) return task_.out(i, t, dims);
    GE_TRY(int64_t bytes, checked_bytes(t, dims, "an unread output"));
    GE_TRY(auto block, task_.blocks().take(bytes));
    unread_.push_back(block);
    return block.get();
  }
  Status value(size_t i, Value v) override { return task_.give(i, std::move(v)); }

 private:
  TaskRun& task_;
  std::vector<std::shared_ptr<std::byte>> unread_;
};

Status inputs_from(TaskRun& t, size_t first, std::vector<Value>& out) {
  for (size_t i = first; i < t.inputs(); ++i) {
    GE_TRY(Value v, t.in(i));
    out.push_back(std::move(v));
  }
  return ok();
}

Status run_if(TaskRun& t) {
  if (t.programs() != 2) return t.fail("it needs two graphs");
  GE_TRY(int64_t condition, t.integer(0));
  std::vector<Value> inputs;
  GE_RETURN_IF_ERROR(inputs_from(t, 1, inputs));
  Forward outputs(t);
  return t.run_program(condition ? 0 : 1, inputs, outputs);
}

// ---- values that a program stacks

class Stack {
 public:
  // output: of the task; entries: how many there will be, -1 when not known; reverse: the first comes last.
  Stack(TaskRun& t, size_t output, int64_t entries, bool reverse) : task_(t), output_(output), entries_(entries), reverse_(reverse) {}

  // Memory for entry i.
  Result<std::byte*> entry(int64_t i, DType t, std::span<const int64_t> dims) {
    if (i == 0) GE_RETURN_IF_ERROR(begin(t, dims));
    if (t != dtype_ || !std::equal(dims.begin(), dims.end(), dims_.begin(), dims_.end()))
      return task_.fail(format("what it stacks has shape {} and then {}", shape_text(dims_), shape_text(dims)));
    if (entries_ >= 0 && i >= entries_) return task_.fail(format("it runs more than {} times", entries_));
    if (i >= room_) GE_RETURN_IF_ERROR(grow());
    int64_t at = reverse_ && entries_ >= 0 ? entries_ - 1 - i : i;
    count_ = i + 1;
    return base_ + at * bytes_;
  }

  Status finish() {
    if (!task_.wants(output_)) return ok();
    if (count_ == 0) {
      Value nothing = Value::tensor(task_.out_type(output_), empty_dims(), nullptr);
      return nothing.count() ? Status(task_.fail("it did not run")) : task_.give(output_, std::move(nothing));
    }
    std::vector<int64_t> all = dims_;
    all.insert(all.begin(), count_);
    if (direct_) return count_ == entries_ ? ok() : Status(task_.fail(format("it ran {} times instead of {}", count_, entries_)));
    return task_.give(output_, Value::tensor(dtype_, all, base_, block_));
  }

 private:
  Status begin(DType t, std::span<const int64_t> dims) {
    dtype_ = t;
    dims_.assign(dims.begin(), dims.end());
    GE_TRY(bytes_, checked_bytes(t, dims, "what it stacks"));
    // Known beforehand: where it ends up.
    if (entries_ < 0 || !task_.wants(output_)) return ok();
    std::vector<int64_t> all = dims_;
    all.insert(all.begin(), entries_);
    GE_TRY(int64_t total, checked_bytes(t, all, "what it stacks"));
    if (task_.known(output_)) {
      GE_TRY(base_, task_.out(output_, t, all));
      direct_ = true;
    } else {
      GE_TRY(block_, task_.blocks().take(total));
      base_ = block_.get();
    }
    room_ = entries_;
    return ok();
  }
  Status grow() {
    int64_t room = std::max<int64_t>(room_ * 2, 8), total;
    if (__builtin_mul_overflow(room, bytes_, &total)) return task_.fail("what it stacks is too large");
    GE_TRY(auto block, task_.blocks().take(total));
    if (count_) std::memcpy(block.get(), base_, static_cast<size_t>(count_ * bytes_));
    block_ = std::move(block);
    base_ = block_.get();
    room_ = room;
    return ok();
  }
  // The shape of nothing: sizes that the program decides inside are 0.
  std::vector<int64_t> empty_dims() const {
    if (task_.known(output_)) return {task_.known_dims(output_).begin(), task_.known_dims(output_).end()};
    std::vector<int64_t> dims{0};
    auto& p = task_.program(0);
    size_t port = output_ + p.outputs.size() - task_.outputs();
    for (int32_t e : p.outputs[port]->dims) {
      auto& x = p.exprs[static_cast<size_t>(e)];
      dims.push_back(x.op() == om::ExprOp::constant ? x.imm() : 0);
    }
    return dims;
  }

  TaskRun& task_;
  size_t output_;
  int64_t entries_;
  bool reverse_, direct_ = false;
  DType dtype_ = DType::none;
  std::vector<int64_t> dims_;
  int64_t bytes_ = 0, room_ = 0, count_ = 0;
  std::byte* base_ = nullptr;
  std::shared_ptr<std::byte> block_;
};

// Where the outputs of one iteration go: own [0, first) into small memory, then carried values, then stacks. Carried
// values are the program's inputs [input, ...); one that only updates such a value is made where that lies.
class Iteration : public Sink {
 public:
  Iteration(TaskRun& t, size_t carried, size_t first, size_t input) : task_(t), next_(carried), made_(carried), held_(carried), first_(first), input_(input) {}
  Result<std::byte*> tensor(size_t i, DType t, std::span<const int64_t> dims) override {
    if (i < first_) {
      if (t != DType::boolean || std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d != 1; })) return task_.fail("its condition is no bool");
      return reinterpret_cast<std::byte*>(&condition);
    }
    i -= first_;
    if (i >= next_.size()) return stacks[i - next_.size()].entry(index, t, dims);
    GE_TRY(int64_t bytes, checked_bytes(t, dims, "a carried value"));
    made_[i] = updated(i, bytes, dims);
    if (!made_[i].memory) {
      GE_TRY(made_[i].memory, task_.blocks().take(bytes));
      made_[i].bytes = bytes;
      made_[i].dims.assign(dims.begin(), dims.end());
    }
    next_[i] = Value::tensor(t, dims, made_[i].memory.get(), made_[i].memory);
    return made_[i].memory.get();
  }
  Status value(size_t i, Value v) override {
    if (v.is_tensor() && (i < first_ || i - first_ >= next_.size())) {
      GE_TRY(std::byte* to, tensor(i, v.dtype, v.dims));
      if (v.bytes()) std::memcpy(to, v.data, static_cast<size_t>(v.bytes()));
      return ok();
    }
    if (i < first_ || i - first_ >= next_.size()) return task_.fail("it stacks what is no tensor");
    // One number may be the loop's own, which changes.
    if (v.is_tensor() && v.count() == 1) {
      GE_TRY(v, task_.blocks().own(v));
    }
    next_[i - first_] = std::move(v);
    return ok();
  }
  // The next iteration takes what this one has made.
  void carry(std::vector<Value>& inputs) {
    for (size_t i = 0; i < next_.size(); ++i) {
      inputs[input_ + i] = std::move(next_[i]);
      held_[i] = std::exchange(made_[i], {});
    }
  }

 private:
  struct Memory {
    std::shared_ptr<std::byte> memory;
    int64_t bytes = 0;
    std::vector<int64_t> dims;
  };
  // The memory of the carried value that value i updates, when an iteration made it, as large as value i is, and nobody
  // else has it.
  Memory updated(size_t i, int64_t bytes, std::span<const int64_t> dims) {
    const int64_t from = task_.program(0).outputs[first_ + i]->updates - static_cast<int64_t>(input_);
    if (from < 0 || from >= static_cast<int64_t>(held_.size())) return {};
    constexpr long kHolders = 2;   // this, and the program's input
    auto& held = held_[static_cast<size_t>(from)];
    return held.memory && held.bytes == bytes && std::equal(dims.begin(), dims.end(), held.dims.begin(), held.dims.end()) && held.memory.use_count() == kHolders ? std::move(held) : Memory();
  }

  TaskRun& task_;
  std::vector<Value> next_;             // carried values
  std::vector<Memory> made_, held_;     // what they lie in, and what the inputs lie in; none: another's memory

 public:
  std::vector<Stack> stacks;
  int64_t index = 0;
  uint8_t condition = 1;

 private:
  size_t first_, input_;
};

// Carried values and stacks to the task's outputs.
Status finish(TaskRun& t, std::vector<Value>& inputs, size_t first, size_t carried, Iteration& it) {
  for (size_t i = 0; i < carried; ++i) {
    Value& v = inputs[first + i];
    // Began as an optional, and comes out as what the program gives.
    auto kind = static_cast<Value::Kind>(t.program(0).outputs[t.program(0).outputs.size() - t.outputs() + i]->kind);
    if (v.kind != kind && v.kind == optional_of(kind)) {
      if (v.items.empty()) return t.fail(format("carried value {} has no value", i));
      v = Value(v.items[0]);
    }
    GE_RETURN_IF_ERROR(t.give(i, std::move(v)));
  }
  for (auto& s : it.stacks) GE_RETURN_IF_ERROR(s.finish());
  return ok();
}

// ---- flow.loop: ints [carried]; in: trip count or none, condition or none, carried values, captures. The program
// takes the iteration's number, the condition, carried values, captures; it gives the condition, carried values and
// what is stacked.

Status run_loop(TaskRun& t) {
  if (t.programs() != 1 || t.ints().size() != 1 || t.inputs() < 2) return t.fail("it needs one graph");
  size_t carried = static_cast<size_t>(t.ints()[0]);
  auto& body = t.program(0);
  if (t.ints()[0] < 0 || carried > t.inputs() - 2 || t.outputs() < carried || body.outputs.size() != t.outputs() + 1) return t.fail("its values do not fit its graph");
  int64_t most = INT64_MAX;
  Iteration it(t, carried, 1, 2);
  if (t.has(0)) {
    GE_TRY(most, t.integer(0));
  }
  if (t.has(1)) {
    GE_TRY(int64_t condition, t.integer(1));
    it.condition = condition != 0;
  }
  for (size_t i = carried; i < t.outputs(); ++i) {
    int64_t entries = t.wants(i) && t.known(i) && !t.known_dims(i).empty() ? t.known_dims(i)[0] : -1;
    it.stacks.emplace_back(t, i, entries, false);
  }
  std::vector<Value> inputs{Value::tensor(DType::i64, {}, &it.index), Value::tensor(DType::boolean, {}, nullptr)};
  GE_RETURN_IF_ERROR(inputs_from(t, 2, inputs));
  uint8_t condition = 1;
  inputs[1].data = reinterpret_cast<const std::byte*>(&condition);
  for (; it.index < most && it.condition; ++it.index) {
    condition = it.condition;
    GE_RETURN_IF_ERROR(t.run_program(0, inputs, it));
    it.carry(inputs);
  }
  return finish(t, inputs, 2, carried, it);
}

// ---- flow.scan: ints [states, scans, then for each scan and each stack: 1 from the end]; in: states, scans (along
// their first axis), captures. The program takes states, one entry of each scan, captures; it gives states and what
// is stacked.

Status run_scan(TaskRun& t) {
  if (t.programs() != 1 || t.ints().size() < 2 || t.ints()[0] < 0 || t.ints()[1] < 1) return t.fail("it needs one graph");
  auto states = static_cast<size_t>(t.ints()[0]), scans = static_cast<size_t>(t.ints()[1]);
  if (states > t.outputs() || scans > t.inputs() || states > t.inputs() - scans || t.program(0).outputs.size() != t.outputs() ||
      t.ints().size() != 2 + scans + (t.outputs() - states))
    return t.fail("its values do not fit its graph");
  std::vector<Value> inputs;
  GE_RETURN_IF_ERROR(inputs_from(t, 0, inputs));
  std::vector<Value> whole(inputs.begin() + static_cast<int64_t>(states), inputs.begin() + static_cast<int64_t>(states + scans));
  int64_t length = -1;
  for (auto& v : whole) {
    if (!v.is_tensor() || v.dims.empty()) return t.fail("an input has nothing to go along");
    if (length >= 0 && v.dims[0] != length) return t.fail(format("its inputs have {} and {} entries", length, v.dims[0]));
    length = v.dims[0];
  }
  Iteration it(t, states, 0, 0);
  for (size_t i = states; i < t.outputs(); ++i) it.stacks.emplace_back(t, i, length, t.ints()[2 + scans + i - states] != 0);
  for (; it.index < length; ++it.index) {
    for (size_t k = 0; k < scans; ++k) {
      Value& v = inputs[states + k];
      v = whole[k];
      v.dims.erase(v.dims.begin());
      v.data += v.bytes() * (t.ints()[2 + k] ? length - 1 - it.index : it.index);
    }
    GE_RETURN_IF_ERROR(t.run_program(0, inputs, it));
    it.carry(inputs);
  }
  return finish(t, inputs, 0, states, it);
}

// A branch that cannot run; the blob says why.
Status run_fail(TaskRun& t) { return t.fail(std::string(t.text())); }

const RegisterHost r1("flow.if", run_if);
const RegisterHost r2("flow.loop", run_loop);
const RegisterHost r3("flow.scan", run_scan);
const RegisterHost r4("flow.fail", run_fail);

}  // namespace
}  // namespace ge::runtime
