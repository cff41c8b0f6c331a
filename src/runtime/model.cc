#include "runtime/model.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <new>

#include "base/text.h"
#include "om/reader.h"
#include "runtime/fault_text.h"

namespace ge::runtime {
namespace {

// The caller's buffers, made for the Binding's sizes.
class Buffers : public Sink {
 public:
  Buffers(const Binding& b, std::span<void* const> outputs) : binding_(b), outputs_(outputs) {}
  Result<std::byte*> tensor(size_t i, DType, std::span<const int64_t> dims) override {
    auto& expected = binding_.output_dims[i];
    if (!std::equal(dims.begin(), dims.end(), expected.begin(), expected.end()))
      return error(code::kRunFailed, format("Output {} has shape {} instead of {}.", i, shape_text(dims), shape_text(expected)));
    return static_cast<std::byte*>(outputs_[i]);
  }
  Status value(size_t i, Value v) override {
    if (!v.is_tensor()) return error(code::kRunFailed, format("Output {} is no tensor.", i));
    GE_TRY(std::byte* to, tensor(i, v.dtype, v.dims));
    if (v.bytes()) std::memcpy(to, v.data, static_cast<size_t>(v.bytes()));
    return ok();
  }

 private:
  const Binding& binding_;
  std::span<void* const> outputs_;
};

// Outputs with memory of their own.
class Fresh : public Sink {
 public:
  Fresh(const om::ProgramT& program, std::vector<Value>& outputs, OutputMemory& memory) : program_(program), outputs_(outputs), memory_(memory) {}
  ~Fresh() override { memory_.keep_up_to(bytes_); }
  Result<std::byte*> tensor(size_t i, DType t, std::span<const int64_t> dims) override {
    GE_TRY(outputs_[i], make(i, t, dims));
    return const_cast<std::byte*>(outputs_[i].data);
  }
  Status value(size_t i, Value v) override {
    GE_TRY(outputs_[i], copy(i, v));
    return ok();
  }

 private:
  Result<Value> make(size_t i, DType t, std::span<const int64_t> dims) {
    GE_TRY(int64_t bytes, checked_bytes(t, dims, program_.outputs[i]->name));
    auto taken = memory_.take(bytes);
    if (!taken.ok()) return no_output(program_, i, t, dims, bytes);
    auto block = *std::move(taken);
    bytes_ += bytes;
    std::byte* p = block.get();
    return Value::tensor(t, dims, p, std::move(block));
  }
  Result<Value> copy(size_t i, const Value& v) {
    Value out = v;
    for (auto& item : out.items) {
      GE_TRY(item, copy(i, item));
    }
    if (!v.is_tensor()) return out;
    GE_TRY(out, make(i, v.dtype, v.dims));
    if (v.bytes()) std::memcpy(const_cast<std::byte*>(out.data), v.data, static_cast<size_t>(v.bytes()));
    return out;
  }
  const om::ProgramT& program_;
  std::vector<Value>& outputs_;
  OutputMemory& memory_;
  int64_t bytes_ = 0;
};

std::string_view kind_text(Value::Kind k) {
  switch (k) {
    case Value::Kind::tensor: return "a tensor";
    case Value::Kind::sequence: return "a sequence of tensors";
    case Value::Kind::optional: return "an optional tensor";
    case Value::Kind::optional_sequence: return "an optional sequence";
    case Value::Kind::map_from_i64: case Value::Kind::map_from_text: return "a map";
    default: return "a sequence of maps";
  }
}

// Of the port's kind and type. Sizes are checked when they are bound.
Status check_input(const om::PortT& port, const Value& v) {
  auto kind = static_cast<Value::Kind>(port.kind);
  auto refuse = [&](std::string what) { return error(code::kInputMismatch, format("Input '{}' {}.", port.name, what)); };
  if (v.kind != kind) return refuse(format("is {}, the model takes {}", kind_text(v.kind), kind_text(kind)));
  if (v.dtype != static_cast<DType>(port.dtype)) return refuse(format("is {}, the model takes {}", name(v.dtype), name(static_cast<DType>(port.dtype))));
  if (kind == Value::Kind::tensor) return ok();
  if (v.is_map()) {
    bool pair = v.items.size() == 2 && v.items[0].is_tensor() && v.items[1].is_tensor() && v.items[0].dims.size() == 1;
    if (!pair || v.items[0].dims != v.items[1].dims || v.items[0].dtype != (kind == Value::Kind::map_from_text ? DType::string : DType::i64) || v.items[1].dtype != v.dtype)
      return refuse("has keys or values of another type");
    return ok();
  }
  bool optional = kind != Value::Kind::sequence;
  if (optional && v.items.size() > 1) return refuse("holds more than one value");
  auto inner = kind == Value::Kind::optional_sequence ? Value::Kind::sequence : Value::Kind::tensor;
  for (auto& item : v.items) {
    if (item.kind != inner || item.dtype != v.dtype) return refuse("holds a value of another type");
    for (auto& x : item.items)
      if (!x.is_tensor() || x.dtype != v.dtype) return refuse("holds a value of another type");
  }
  return ok();
}

}  // namespace

Result<std::shared_ptr<Model>> Model::open(const std::string& path, const LoadOptions& options) {
  GE_TRY(auto file, MappedFile::open(path));
  auto package = om::read(file, options.check_weights, std::filesystem::path(path).parent_path().string());
  if (!package.ok()) return std::move(package).context("opening " + path).take_error();
  return from(*std::move(package), options);
}

Result<std::shared_ptr<Model>> Model::open(std::span<const std::byte> bytes, const LoadOptions& options) {
  GE_TRY(auto package, om::read(MappedFile::from_bytes(bytes), options.check_weights));
  return from(std::move(package), options);
}

Result<std::shared_ptr<Model>> Model::from(om::Package package, const LoadOptions& options) {
  if (package.model.programs.empty() || package.model.entries.empty())
    return error(code::kParse, "The .om file holds no program.", "the file is damaged");
  int entry = package.model.entries[0]->program;
  if (entry < 0 || static_cast<size_t>(entry) >= package.model.programs.size())
    return error(code::kParse, "The .om file's entry names no program.", "the file is damaged");
  if (options.huge_pages && !package.weights.empty()) {
    size_t size = (package.weights.size() + (2u << 20) - 1) / (2u << 20) * (2u << 20);
    void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return error(code::kOutOfMemory, "The weights do not fit into memory.");
    madvise(p, size, MADV_HUGEPAGE);
    std::memcpy(p, package.weights.data(), package.weights.size());
    package.weights = {static_cast<const std::byte*>(p), package.weights.size()};
    package.keep = std::shared_ptr<const void>(p, [size](const void* q) { munmap(const_cast<void*>(q), size); });
  }
  auto m = std::shared_ptr<Model>(new Model(std::move(package)));
  m->entry_ = entry;
  m->text_numbers_ = numbers_of(m->package_.model.texts);
  m->threads_ = options.threads > 0 ? options.threads : default_threads();
  auto strings = [](auto& port) { return static_cast<DType>(port->dtype) == DType::string || port->kind == om::ValueKind::map_from_text || port->kind == om::ValueKind::maps_from_text; };
  m->strings_ = std::any_of(m->program().inputs.begin(), m->program().inputs.end(), strings) ||
                std::any_of(m->program().outputs.begin(), m->program().outputs.end(), strings);
  m->plain_ = is_plain(m->package_, m->program());
  m->segments_ = std::make_unique<BindingCache>(m->package_, m->threads_);
  return m;
}

Result<std::shared_ptr<const Binding>> Model::bind(std::span<const std::vector<int64_t>> input_dims, const StateDims& states) {
  if (input_dims.size() != program().inputs.size())
    return error(code::kInputMismatch, format("The model takes {} inputs, got {}.", program().inputs.size(), input_dims.size()));
  auto same = [&](const std::shared_ptr<const Binding>& b) {
    return std::equal(input_dims.begin(), input_dims.end(), b->input_dims.begin()) && b->state_dims == states;
  };
  std::shared_ptr<const Binding> like;
  {
    std::lock_guard lock(mutex_);
    auto it = std::find_if(bindings_.begin(), bindings_.end(), same);
    if (it != bindings_.end()) {
      bindings_.splice(bindings_.begin(), bindings_, it);
      return bindings_.front();
    }
    if (!bindings_.empty()) like = bindings_.front();   // a token later, most sizes are the same
  }
  try {
    GE_TRY(auto symbols, bind_symbols(program(), input_dims, states));
    BindOptions options;
    options.threads = threads_;
    options.states = states;
    options.like = std::move(like);
    GE_TRY(auto binding, Binding::make(package_, program(), symbols, options));
    std::lock_guard lock(mutex_);
    bindings_.push_front(binding);
    if (bindings_.size() > kBindings) bindings_.pop_back();
    return binding;
  } catch (const std::bad_alloc&) {
    return error(code::kOutOfMemory, "There is not enough memory for inputs of these sizes.");
  }
}

std::unique_ptr<Context> Model::take(const std::shared_ptr<const Binding>& binding) {
  std::unique_ptr<Context> context;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      // One that served this Binding last needs no new addresses.
      auto it = std::find_if(idle_.rbegin(), idle_.rend(), [&](auto& c) { return c->serves(binding); });
      if (it != idle_.rend()) std::swap(*it, idle_.back());
      context = std::move(idle_.back());
      idle_.pop_back();
    } else {
      ++contexts_;
      idle_.reserve(static_cast<size_t>(contexts_));
    }
  }
  return context ? std::move(context) : std::make_unique<Context>();
}

Status Model::run(const std::shared_ptr<const Binding>& binding, std::span<const void* const> inputs,
                  std::span<void* const> outputs, Profile* profile, State* state) {
  if (strings_) return error(code::kUnsupportedOp, "The model takes or gives strings, which plain buffers do not hold.", "", "run it from Python");
  StateLease states;
  GE_RETURN_IF_ERROR(lease(state, states));
  return run_plain(binding, inputs, outputs, profile, states);
}

Status Model::lease(State* state, StateLease& states) {
  if (!has_states()) return state ? Status(error(code::kInvalidValue, "The model has no states.", "", "compile it with --state")) : ok();
  std::shared_ptr<State> own;
  if (!state) {
    GE_TRY(own, default_state());   // lives as long as the Model
    state = own.get();
  }
  return states.take(*state, package_.model, program());
}

Status Model::run_plain(const std::shared_ptr<const Binding>& binding, std::span<const void* const> inputs,
                        std::span<void* const> outputs, Profile* profile, StateLease& states) {
  if (has_states() && binding->state_dims != states.dims())
    return error(code::kInputMismatch, "The state has changed since the sizes were bound.", "a run makes it longer", "bind again before every run");
  if (!plain_) {
    if (binding->open_outputs) return error(code::kUnsupportedOp, "The sizes of the model's outputs depend on data.", "there is no buffer to give before the run", "let the run make its outputs");
    std::vector<Value> values;
    for (size_t i = 0; i < program().inputs.size(); ++i)
      values.push_back(Value::tensor(static_cast<DType>(program().inputs[i]->dtype), binding->input_dims[i], inputs[i]));
    Buffers given(*binding, outputs);
    return run_values(values, given, profile, nullptr, states);
  }
  if (has_states()) GE_RETURN_IF_ERROR(states.prepare(*binding));
  auto context = take(binding);
  int64_t before = context->arena_bytes();
  Status s = context->run(binding, package_.weights, inputs, outputs, profile, &states);
  if (has_states() && !s.ok()) states.fail(program());
  if (has_states() && s.ok()) {
    StateDims out;
    for (auto& b : binding->states) out.push_back(b.out);
    states.finish(out);
  }
  std::lock_guard lock(mutex_);
  arena_ += context->arena_bytes() - before;
  idle_.push_back(std::move(context));
  return s;
}

Status Model::run_values(std::span<const Value> inputs, Sink& outputs, Profile* profile, Texts* texts, StateLease& states) {
  auto context = take(nullptr);
  int64_t before = context->pool_bytes();
  Status s = [&]() -> Status {
    try {
      return context->run(package_, entry_, *segments_, threads_, inputs, outputs, profile, texts, &states);
    } catch (const std::bad_alloc&) {
      return error(code::kOutOfMemory, "There is not enough memory for values of these sizes.");
    }
  }();
  if (has_states() && !s.ok()) states.fail(program());
  std::lock_guard lock(mutex_);
  pool_ += context->pool_bytes() - before;
  idle_.push_back(std::move(context));
  return s;
}

Result<std::vector<Value>> Model::run(std::span<const Value> inputs, Profile* profile, Texts* texts, State* state) {
  auto& p = program();
  if (inputs.size() != p.inputs.size())
    return error(code::kInputMismatch, format("The model takes {} inputs, got {}.", p.inputs.size(), inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) GE_RETURN_IF_ERROR(check_input(*p.inputs[i], inputs[i]));
  std::vector<Value> outputs(p.outputs.size());
  Fresh sink(p, outputs, *output_memory_);
  StateLease states;
  GE_RETURN_IF_ERROR(lease(state, states));
  if (!plain_) {
    GE_RETURN_IF_ERROR(run_values(inputs, sink, profile, texts, states));
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].is_tensor() && !outputs[i].data) return error(code::kParse, format("Output '{}' was not made.", p.outputs[i]->name), "the .om file is damaged", "compile the model again");
    return outputs;
  }
  std::vector<std::vector<int64_t>> dims;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (auto& v : inputs) dims.push_back(v.dims), in.push_back(v.data);
  GE_TRY(auto binding, bind(dims, states.dims()));
  for (size_t i = 0; i < outputs.size(); ++i) {
    GE_TRY(std::byte* to, sink.tensor(i, static_cast<DType>(p.outputs[i]->dtype), binding->output_dims[i]));
    out.push_back(to);
  }
  GE_RETURN_IF_ERROR(run_plain(binding, in, out, profile, states));
  return outputs;
}

Memory Model::memory() const {
  std::lock_guard lock(mutex_);
  Memory m;
  m.weights = om::weight_bytes(package_);
  m.arena = arena_;
  m.pool = pool_ + output_memory_->idle_bytes();
  m.contexts = contexts_;
  for (auto& s : states_->all()) m.state += s->committed(), m.state_reserved += s->reserved();
  for (auto& port : program().states) {
    auto& s = *package_.model.states[static_cast<size_t>(port->state)];
    int64_t bytes = s.axis >= 0 ? size_of(static_cast<DType>(s.dtype)) : 0;
    for (size_t k = 0; k < s.dims.size(); ++k)
      if (static_cast<int>(k) != s.axis && s.dims[k] >= 0) bytes *= s.dims[k];
    m.state_token += bytes;
  }
  return m;
}

Result<std::shared_ptr<State>> Model::new_state() {
  if (!has_states()) return error(code::kInvalidValue, "The model has no states.", "", "compile it with --state");
  return State::make(package_.model, states_);
}

Result<std::shared_ptr<State>> Model::default_state() {
  {
    std::lock_guard lock(mutex_);
    if (default_state_ || !has_states()) return default_state_;
  }
  GE_TRY(auto s, new_state());
  std::lock_guard lock(mutex_);
  if (!default_state_) default_state_ = s;
  return default_state_;
}

Result<StateDims> Model::state_dims(State* state) {
  StateLease states;
  GE_RETURN_IF_ERROR(lease(state, states));
  return states.dims();
}

void Model::trim() {
  std::lock_guard lock(mutex_);
  for (auto& c : idle_) arena_ -= c->arena_bytes(), pool_ -= c->pool_bytes();
  contexts_ -= static_cast<int>(idle_.size());
  idle_.clear();
  output_memory_->trim();
}

}  // namespace ge::runtime
