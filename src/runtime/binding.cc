#include "runtime/binding.h"

#include <algorithm>
#include <chrono>
#include <tuple>

#include "base/text.h"
#include "kernels/isa.h"
#include "om/expressions.h"
#include "runtime/fault_text.h"
#include "runtime/value.h"
#include "tensor/limits.h"

namespace ge::runtime {
namespace {


Error damaged(std::string what) {
  return error(code::kParse, std::move(what), "the .om file is damaged or was made for other sizes",
               "compile the model again");
}

// Sizes that do not go together. With open sizes that is the caller's doing more likely than the file's.
Error unfit(const om::ProgramT& program, const std::string& where, const std::string& what) {
  if (program.symbols.empty()) return damaged(where + ": " + what + ".");
  return error(code::kInputMismatch, format("{}: {} for inputs of these sizes.", where, what),
               "a node takes another number of elements than the one before it gives, or a window is larger than what it slides over", "feed sizes that the model is made for");
}

// Row-major strides, or an empty vector when the element count overflows.
std::vector<int64_t> dense_strides_checked(std::span<const int64_t> dims) {
  std::vector<int64_t> s(dims.size());
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    s[i] = step;
    if (dims[i] > 0 && __builtin_mul_overflow(step, dims[i], &step)) return {};
  }
  return s;
}

// Sizes of an empty tensor that no tensor with elements could have.
bool outsized(std::span<const int64_t> dims) {
  int64_t product = 1;
  return std::any_of(dims.begin(), dims.end(), [&](int64_t d) { return d > 0 && (__builtin_mul_overflow(product, d, &product) || product > kMaxTensorBytes); });
}

// Bit 0: portable, 1: AVX2, 2: AVX-512, as om.fbs's cpu masks have it.
uint32_t cpu_class() { return 1u << static_cast<int>(kernels::isa()); }

}  // namespace

namespace {

// The sizes together are one of the gears.
Status check_gears(const om::ProgramT& program, const std::vector<int64_t>& symbols) {
  const size_t each = program.gear_symbols.size();
  if (each == 0) return ok();
  std::vector<std::string> names, got, allowed;
  for (int32_t s : program.gear_symbols) {
    if (s < 0 || static_cast<size_t>(s) >= symbols.size()) return damaged("A gear names no size.");
    names.push_back(program.symbols[static_cast<size_t>(s)]->name);
    got.push_back(format("{}", symbols[static_cast<size_t>(s)]));
  }
  for (size_t at = 0; at + each <= program.gears.size(); at += each) {
    std::vector<std::string> gear;
    for (size_t i = 0; i < each; ++i) gear.push_back(format("{}", program.gears[at + i]));
    if (gear == got) return ok();
    allowed.push_back(join(gear, ","));
  }
  return error(code::kInputMismatch, format("Sizes ({}) are {}, which is none of the gears {}.", join(names, ", "), join(got, ","), join(allowed, "; ")),
               "the model was compiled for these sizes alone", "feed one of them, or compile with a range in --input_shape");
}

// Sizes of inputs that are expressions have the value that the other sizes give them.
Status check_computed(const om::ProgramT& program, std::span<const std::vector<int64_t>> input_dims, const std::vector<int64_t>& symbols) {
  std::vector<int64_t> values;
  GE_RETURN_IF_ERROR(om::evaluate(program, symbols, values));
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    auto& port = *program.inputs[i];
    if (port.unranked || port.kind != om::ValueKind::tensor) continue;
    for (size_t k = 0; k < port.dims.size(); ++k) {
      int64_t value = values[static_cast<size_t>(port.dims[k])];
      if (value != input_dims[i][k])
        return error(code::kInputMismatch, format("Input '{}' has shape {}: axis {} is {}{}.", port.name, shape_text(input_dims[i]), k, input_dims[i][k], value == om::kUnknown ? ", and no other input says what it must be" : format(" instead of {}", value)),
                     "it follows from the sizes of other inputs", "feed sizes that go together");
    }
  }
  return ok();
}

// Sizes that nodes ask to be equal are.
Status check_demands(const om::ProgramT& program, std::span<const int64_t> symbols, std::span<const int64_t> exprs) {
  for (auto& d : program.demands) {
    const int64_t a = exprs[static_cast<size_t>(d->a)], b = exprs[static_cast<size_t>(d->b)];
    if (a == b || a == om::kUnknown || b == om::kUnknown) continue;
    std::vector<std::string> sizes;
    for (size_t k = 0; k < symbols.size(); ++k)
      if (symbols[k] != om::kUnknown && program.symbols[k]->buffer < 0) sizes.push_back(format("{}={}", program.symbols[k]->name, symbols[k]));
    const om::ExprOp op = program.exprs[static_cast<size_t>(d->a)].op();
    const bool condition = op == om::ExprOp::less || op == om::ExprOp::equal || op == om::ExprOp::select;
    return error(code::kInputMismatch, format("{}: {} for inputs of {}.", d->who, condition ? std::string("it would have to") : format("sizes {} and {} must be equal,", a, b), join(sizes, ", ")),
                 "the model does not take inputs of these sizes", "feed sizes that the model is made for (often multiples of 16 or 32)");
  }
  return ok();
}

}  // namespace

// binding_state.cc
Status bind_state_symbols(const om::ProgramT& program, const StateDims& states, std::vector<int64_t>& symbols);

Result<std::vector<int64_t>> bind_symbols(const om::ProgramT& program,
                                          std::span<const std::vector<int64_t>> input_dims, const StateDims& states) {
  std::vector<int64_t> symbols(program.symbols.size(), om::kUnknown);
  bool computed = false;   // a size is an expression over those of other inputs
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    auto& port = *program.inputs[i];
    auto& dims = input_dims[i];
    auto mismatch = [&](std::string why, std::string cause = "", std::string fix = "feed sizes that the model allows") {
      return error(code::kInputMismatch, format("Input '{}' has shape {}, the model takes {}: {}.", port.name, shape_text(dims), om::text(program, port), why), std::move(cause), std::move(fix));
    };
    if (port.unranked || port.kind != om::ValueKind::tensor) continue;
    if (dims.size() != port.dims.size())
      return mismatch(format("{} axes instead of {}", dims.size(), port.dims.size()), "the model fixes how many axes an input has", format("feed {} axes", port.dims.size()));
    for (size_t k = 0; k < dims.size(); ++k) {
      int32_t e = port.dims[k];
      if (e < 0 || static_cast<size_t>(e) >= program.exprs.size()) return damaged("An input's size is missing.");
      const om::Expr& x = program.exprs[static_cast<size_t>(e)];
      if (dims[k] < 0) return mismatch(format("axis {} is negative", k));
      if (x.op() == om::ExprOp::constant) {
        if (x.imm() != dims[k])
          return mismatch(format("axis {} is {} instead of {}, which the model fixes", k, dims[k], x.imm()),
                          "Input shape is not supported: dynamic shape detected where the model has a fixed size, its own or one that --input_shape gave",
                          format("feed {} there; for other sizes compile a model that was exported with axis {} open, and leave it open in --input_shape (-1)", x.imm(), k));
        continue;
      }
      if (x.op() != om::ExprOp::symbol) {
        computed = true;
        continue;
      }
      if (x.imm() < 0 || static_cast<size_t>(x.imm()) >= symbols.size()) return damaged("An input's size names no symbol.");
      auto& known = symbols[static_cast<size_t>(x.imm())];
      auto& s = *program.symbols[static_cast<size_t>(x.imm())];
      if (known != om::kUnknown && known != dims[k])
        return mismatch(format("axis {} ({}) is {} but was {} elsewhere", k, s.name, dims[k], known));
      const bool geared = std::find(program.gear_symbols.begin(), program.gear_symbols.end(), static_cast<int32_t>(x.imm())) != program.gear_symbols.end();
      if (!geared && (dims[k] < s.min || dims[k] > s.max))   // check_gears tells which there are
        return mismatch(format("axis {} ({}) is {}, allowed {}", k, s.name, dims[k], s.max == INT64_MAX ? format("are {} and more", s.min) : s.max == s.min ? format("is {}", s.min) : format("are {} to {}", s.min, s.max)));
      known = dims[k];
    }
  }
  GE_RETURN_IF_ERROR(bind_state_symbols(program, states, symbols));
  if (computed) GE_RETURN_IF_ERROR(check_computed(program, input_dims, symbols));
  GE_RETURN_IF_ERROR(check_gears(program, symbols));
  return symbols;
}

Result<std::shared_ptr<const Binding>> Binding::make(const om::Package& package, const om::ProgramT& program,
                                                     std::span<const int64_t> symbols, const BindOptions& options, int segment) {
  auto b = std::make_shared<Binding>();
  b->program = &program;
  b->symbols.assign(symbols.begin(), symbols.end());
  b->segment = segment;
  b->state_dims = options.states;
  b->threads = std::max(1, options.threads);
  int32_t first = 0, end = static_cast<int32_t>(program.tasks.size());
  if (!program.segments.empty()) {
    if (segment < 0 || static_cast<size_t>(segment) >= program.segments.size()) return damaged("A segment is missing.");
    first = program.segments[static_cast<size_t>(segment)]->first, end = program.segments[static_cast<size_t>(segment)]->end;
    if (first < 0 || end < first || static_cast<size_t>(end) > program.tasks.size()) return damaged("A segment leaves the tasks.");
  }
  GE_RETURN_IF_ERROR(om::evaluate(program, symbols, b->exprs));
  GE_RETURN_IF_ERROR(check_demands(program, symbols, b->exprs));
  GE_RETURN_IF_ERROR(b->choose_calls());
  GE_RETURN_IF_ERROR(b->bind_states(package));
  GE_RETURN_IF_ERROR(b->bind_buffers(package));
  for (int32_t t = first; t < end; ++t)
    if (b->chosen_[static_cast<size_t>(t)]) GE_RETURN_IF_ERROR(b->bind_task(package, t).context(format("task {} ({})", t, program.tasks[static_cast<size_t>(t)]->name)));
  for (size_t i = 0; i < b->views.size(); ++i) {
    b->views[i].dims = b->pool_.data() + b->pool_at_[i];
    b->views[i].strides = b->views[i].dims + b->views[i].rank;
  }
  const Binding* like = options.like && options.like->program == &program && options.like->segment == segment ? options.like.get() : nullptr;
  for (size_t t = 0; t < b->tasks.size(); ++t) GE_RETURN_IF_ERROR(b->prepare_task(t, like));
  GE_RETURN_IF_ERROR(b->place(package, options));
  return std::shared_ptr<const Binding>(std::move(b));
}

namespace {

bool same_operands(std::span<const View> a, std::span<const View> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const View& x, const View& y) {
    return x.dtype == y.dtype && x.rank == y.rank && std::equal(x.shape().begin(), x.shape().end(), y.shape().begin()) &&
           std::equal(x.strides, x.strides + x.rank, y.strides);
  });
}

}  // namespace

Status Binding::prepare_task(size_t t, const Binding* like) {
  auto& task = tasks[t];
  auto& name = program->tasks[static_cast<size_t>(task.task)]->name;
  if (task.kernel->executor) {
    task.work.chunks = 0;
    return ok();
  }
  kernels::Call mine = call(task);
  if (const BoundTask* other = like ? like->bound(task.task) : nullptr; other && other->call == task.call) {
    const kernels::Call theirs = like->call(*other);
    if (std::equal(mine.ints.begin(), mine.ints.end(), theirs.ints.begin(), theirs.ints.end()) && same_operands(mine.in, theirs.in) && same_operands(mine.out, theirs.out)) {
      task.work = other->work;
      return ok();
    }
    mine.state = theirs.state;
  }
  // Kernels bound what they count far below such sizes; where all that is written is empty there is nothing to do.
  auto empty = [](const View& v) { return std::find(v.shape().begin(), v.shape().end(), 0) != v.shape().end(); };
  auto odd = [&](const View& v) { return empty(v) && outsized(v.shape()); };
  if (!mine.out.empty() && std::all_of(mine.out.begin(), mine.out.end(), [&](auto& v) { return v.dtype == DType::none || empty(v); }) &&
      (std::any_of(mine.in.begin(), mine.in.end(), odd) || std::any_of(mine.out.begin(), mine.out.end(), odd))) {
    task.work.chunks = 0;
    return ok();
  }
  auto work = task.kernel->prepare(mine);
  if (!work.ok()) {
    auto& failed = *program->tasks[static_cast<size_t>(task.task)];
    const bool data = segment > 0 || program->segments.size() > 1;
    return refused_call(std::move(work).take_error(), failed, task.kernel->name, mine, !program->symbols.empty(), data);
  }
  task.work = *std::move(work);
  auto& w = task.work;
  if (w.chunks < 0 || w.scratch < 0 || w.shared < 0 || w.scratch > kMaxTensorBytes || w.shared > kMaxTensorBytes)
    return damaged(format("Task {} asks for impossible scratch.", name));
  return ok();
}

const BoundTask* Binding::bound(int32_t task) const {
  auto it = std::lower_bound(tasks.begin(), tasks.end(), task, [](auto& a, int32_t b) { return a.task < b; });
  return it != tasks.end() && it->task == task ? &*it : nullptr;
}

kernels::Call Binding::call(const BoundTask& task) const {
  kernels::Call call;
  call.in = std::span(views).subspan(static_cast<size_t>(task.view0), static_cast<size_t>(task.inputs));
  call.out = std::span(views).subspan(static_cast<size_t>(task.view0 + task.inputs), static_cast<size_t>(task.outputs));
  call.ints = std::span(ints).subspan(static_cast<size_t>(task.int0), task.call->ints.size());
  call.floats = task.call->floats;
  call.blob = std::as_bytes(std::span(task.call->blob));
  call.state = task.work.state.get();
  return call;
}

double Binding::operations(const BoundTask& task) const {
  return task.kernel->operations && task.work.chunks > 0 ? task.kernel->operations(call(task)) : 0;
}

double Binding::operations() const {
  double sum = 0;
  for (auto& t : tasks) sum += operations(t);
  return sum;
}

Binding::Life Binding::life(size_t buffer) const {
  auto& b = *program->buffers[buffer];
  // Of several segments some are bound later: what the file says holds for all.
  return touched_.empty() || (program->segments.size() > 1 && touched_[buffer].first >= 0) ? Life{b.first, b.last} : touched_[buffer];
}

// Which way each task is computed, and which buffers that leaves in use, from when to when.
Status Binding::choose_calls() {
  bool some = false;
  for (auto& task : program->tasks) {
    const om::CallT* chosen = nullptr;
    bool excluded = false;
    for (auto& a : task->alternatives) {
      if (a->cpu && !(a->cpu & cpu_class())) continue;
      if (a->condition >= static_cast<int32_t>(exprs.size())) return damaged("A condition is missing.");
      excluded = a->condition >= 0 && exprs[static_cast<size_t>(a->condition)] == 0;
      if (excluded) continue;
      chosen = a.get();
      break;
    }
    if (!chosen && excluded && !task->programs.empty()) return damaged(format("Task {} has a condition.", task->name));
    if (!chosen && !excluded) return error(code::kUnsupportedOp, format("{}: no way to compute this task on this CPU.", task->name));
    some |= !chosen;
    chosen_.push_back(chosen);
  }
  if (!some) return ok();
  touched_.resize(program->buffers.size());
  for (size_t t = 0; t < chosen_.size(); ++t) {
    if (!chosen_[t]) continue;
    for (auto* list : {&chosen_[t]->ins, &chosen_[t]->outs})
      for (auto& v : *list) {
        if (v->buffer < 0 || static_cast<size_t>(v->buffer) >= touched_.size()) continue;
        auto& x = touched_[static_cast<size_t>(v->buffer)];
        if (x.first < 0) x.first = static_cast<int32_t>(t);
        x.last = static_cast<int32_t>(t);
      }
  }
  return ok();
}

Status Binding::bind_buffers(const om::Package& package) {
  auto dims_of = [&](const om::PortT& port, std::vector<int64_t>& dims) -> Result<int64_t> {
    const int64_t element = size_of(static_cast<DType>(port.dtype));
    if (port.unranked || port.kind != om::ValueKind::tensor) return om::kUnknown;
    if (element <= 0) return damaged(format("'{}' has an element type that cannot be run.", port.name));
    bool unknown = false;
    for (int32_t e : port.dims) {
      if (e < 0 || static_cast<size_t>(e) >= exprs.size()) return damaged(format("The shape of '{}' is missing.", port.name));
      int64_t d = exprs[static_cast<size_t>(e)];
      dims.push_back(d);
      unknown |= d == om::kUnknown;
      if (d < 0 && d != om::kUnknown)
        return error(code::kRunFailed, format("'{}' would have the shape {}: a size is negative.", port.name, shape_text(dims)),
                     "an input is smaller than what slides over it or is cut from it", "feed sizes that the model is made for");
    }
    if (unknown) return om::kUnknown;
    const int64_t bytes = dense_bytes(element, dims);
    if (bytes < 0)
      return error(code::kTooLarge, format("'{}' would be too large: {}{}.", port.name, name(static_cast<DType>(port.dtype)), shape_text(dims)),
                   format("a tensor holds at most {}", bytes_text(static_cast<double>(kMaxTensorBytes))));
    return bytes;
  };
  std::vector<int64_t> in_bytes, out_bytes;
  for (auto& p : program->inputs) {
    GE_TRY(int64_t n, dims_of(*p, input_dims.emplace_back()));
    if (n == om::kUnknown && p->kind == om::ValueKind::tensor && !p->unranked) return damaged(format("The shape of '{}' is not known before the run.", p->name));
    in_bytes.push_back(n);
  }
  for (auto& p : program->outputs) {
    GE_TRY(int64_t n, dims_of(*p, output_dims.emplace_back()));
    open_outputs |= n == om::kUnknown;
    out_bytes.push_back(n);
  }
  for (size_t i = 0; i < program->buffers.size(); ++i) {
    auto& b = *program->buffers[i];
    auto number = [&](const std::vector<int64_t>& sizes) -> Result<int64_t> {
      if (b.index < 0 || static_cast<size_t>(b.index) >= sizes.size()) return damaged(format("Buffer {} names no input or output.", i));
      return sizes[static_cast<size_t>(b.index)];
    };
    int64_t bytes = 0;
    if (b.align < 1 || b.align > 1 << 20 || (b.align & (b.align - 1))) return damaged(format("Buffer {} has an odd alignment.", i));
    switch (b.kind) {
      case om::BufferKind::arena:
        if (b.bytes < 0 || static_cast<size_t>(b.bytes) >= exprs.size()) return damaged(format("Buffer {} has no size.", i));
        bytes = exprs[static_cast<size_t>(b.bytes)];
        if (!touched_.empty() && touched_[i].first < 0) bytes = 0;   // nobody's, whatever these sizes make of it
        if ((bytes < 0 && bytes != om::kUnknown) || bytes > kMaxTensorBytes) return wrong_size(*program, i, bytes);
        if (b.first < 0 || b.last < b.first || static_cast<size_t>(b.last) >= program->tasks.size())
          return damaged(format("Buffer {} has no lifetime.", i));
        break;
      case om::BufferKind::input: {
        GE_TRY(bytes, number(in_bytes));
        break;
      }
      case om::BufferKind::output: {
        GE_TRY(bytes, number(out_bytes));
        break;
      }
      case om::BufferKind::weight: {
        uint64_t end;
        if (__builtin_add_overflow(b.weight_offset, b.weight_bytes, &end) || end > package.weights.size() || b.weight_offset % om::kWeightAlign)
          return damaged(format("Buffer {} lies outside of the weights.", i));
        bytes = static_cast<int64_t>(b.weight_bytes);
        break;
      }
      case om::BufferKind::pool:
        bytes = b.bytes >= 0 && static_cast<size_t>(b.bytes) < exprs.size() ? exprs[static_cast<size_t>(b.bytes)] : om::kUnknown;
        break;
      case om::BufferKind::state:
        if (b.index < 0 || static_cast<size_t>(b.index) >= states.size()) return damaged(format("Buffer {} names no state.", i));
        bytes = states[static_cast<size_t>(b.index)].bytes;
        break;
      default: return error(code::kUnsupportedOp, format("Buffer {} is of a kind that this version cannot run.", i));
    }
    if (b.value != om::ValueKind::tensor) bytes = om::kUnknown;
    buffer_bytes.push_back(bytes);
  }
  return ok();
}

bool Binding::starts_here(const om::BufferT& b) const {
  if (program->segments.size() < 2) return true;
  auto& s = *program->segments[static_cast<size_t>(segment)];
  return b.first >= s.first && b.first < s.end;
}

Status Binding::bind_view(const om::ViewT& v, bool written, bool executor, const std::string& where) {
  View view;
  BoundView bound;
  pool_at_.push_back(pool_.size());
  if (v.buffer < 0) {
    views.push_back(view);
    placed.push_back(bound);
    return ok();
  }
  auto expr = [&](int32_t e) { return e >= 0 && static_cast<size_t>(e) < exprs.size() ? exprs[static_cast<size_t>(e)] : om::kUnknown; };
  if (static_cast<size_t>(v.buffer) >= program->buffers.size()) return damaged(where + ": an operand names no buffer.");
  auto kind = program->buffers[static_cast<size_t>(v.buffer)]->kind;
  if (written && (kind == om::BufferKind::input || kind == om::BufferKind::weight))
    return damaged(where + ": an operand would be written that is read-only.");
  view.dtype = static_cast<DType>(v.dtype);
  int64_t element = v.dtype < kDTypeCount ? size_of(view.dtype) : 0;
  if (element <= 0) return damaged(where + ": an operand has no element type.");
  int64_t room = buffer_bytes[static_cast<size_t>(v.buffer)];
  if (executor && (room == om::kUnknown || kind == om::BufferKind::pool)) {
    bound.buffer = v.buffer;
    bound.open = true;
    views.push_back(view);
    placed.push_back(bound);
    return ok();
  }
  if (room == om::kUnknown) return damaged(where + format(": an operand's buffer ({}) has no size yet.", v.buffer));
  if (v.dims.size() > static_cast<size_t>(kMaxRank) || (!v.strides.empty() && v.strides.size() != v.dims.size()))
    return damaged(where + ": an operand has a wrong rank.");
  view.rank = static_cast<int32_t>(v.dims.size());
  int64_t offset = v.offset < 0 ? 0 : expr(v.offset);
  size_t at = pool_.size();
  for (int32_t e : v.dims) pool_.push_back(expr(e));
  bool empty = false;
  for (size_t i = 0; i < v.dims.size(); ++i) {
    if (pool_[at + i] == om::kUnknown) return damaged(where + ": a size is unknown.");
    if (pool_[at + i] < 0)
      return error(code::kRunFailed, format("{}: a size is {}.", where, pool_[at + i]), "sizes that the data give do not fit together");
    empty |= pool_[at + i] == 0;
  }
  // Where there are no elements nothing is reached, and sizes beside the 0 may be such that their product is no number.
  if (empty && outsized({pool_.data() + at, v.dims.size()})) {
    pool_.resize(at + 2 * v.dims.size(), 0);
  } else if (v.strides.empty()) {
    auto dense = dense_strides_checked(std::span(pool_).subspan(at, v.dims.size()));
    if (dense.size() != v.dims.size()) return damaged(where + ": an operand is too large.");
    pool_.insert(pool_.end(), dense.begin(), dense.end());
  } else {
    for (int32_t e : v.strides) pool_.push_back(expr(e));
  }
  // The span of elements reached: [low, high].
  int64_t low = offset, high = offset;
  for (size_t i = 0; i < v.dims.size() && !empty; ++i) {
    int64_t reach, stride = pool_[at + v.dims.size() + i];
    int64_t& side = stride < 0 ? low : high;
    if (stride == om::kUnknown || __builtin_mul_overflow(stride, pool_[at + i] - 1, &reach) || __builtin_add_overflow(side, reach, &side))
      return damaged(where + ": an operand is too large.");
  }
  int64_t end;
  if (offset == om::kUnknown) return damaged(where + ": an operand's place is unknown.");
  if (empty) offset = 0;
  else if (low < 0 || __builtin_mul_overflow(high, element, &end) || end > room - element)
    return unfit(*program, where, format("an operand (buffer {}) leaves its buffer", v.buffer));
  if (kind == om::BufferKind::state && !empty) {
    auto dims = std::span(pool_).subspan(at, v.dims.size()), strides = std::span(pool_).subspan(at + v.dims.size(), v.dims.size());
    auto& s = states[static_cast<size_t>(program->buffers[static_cast<size_t>(v.buffer)]->index)];
    if (!within_rows(s, offset * element, dims, strides, element)) return damaged(where + ": an operand leaves what its state holds.");
  }
  bound.buffer = v.buffer;
  bound.byte_offset = offset * element;
  views.push_back(view);
  placed.push_back(bound);
  return ok();
}

Status Binding::bind_task(const om::Package& package, int32_t index) {
  auto& task = *program->tasks[static_cast<size_t>(index)];
  const om::CallT* chosen = chosen_[static_cast<size_t>(index)];
  if (chosen->kernel < 0 || static_cast<size_t>(chosen->kernel) >= package.model.kernels.size()) return damaged("A kernel is missing.");
  auto& kernel_name = package.model.kernels[static_cast<size_t>(chosen->kernel)];
  BoundTask t;
  t.task = index;
  t.call = chosen;
  t.kernel = kernels::find(kernel_name);
  if (!t.kernel)
    return error(code::kUnsupportedOp, format("Kernel '{}' is not in this version.", kernel_name), "the .om file was made by another version", "compile the model again");
  t.view0 = static_cast<int32_t>(views.size());
  t.inputs = static_cast<int32_t>(chosen->ins.size());
  t.outputs = static_cast<int32_t>(chosen->outs.size());
  for (auto& v : chosen->ins) GE_RETURN_IF_ERROR(bind_view(*v, false, t.kernel->executor, task.name));
  for (auto& v : chosen->outs) GE_RETURN_IF_ERROR(bind_view(*v, true, t.kernel->executor, task.name));
  t.int0 = static_cast<int32_t>(ints.size());
  for (int32_t e : chosen->ints) {
    const bool given = e >= 0 && static_cast<size_t>(e) < exprs.size() && (exprs[static_cast<size_t>(e)] != om::kUnknown || program->exprs[static_cast<size_t>(e)].op() == om::ExprOp::constant);
    if (!given) return damaged("A parameter is missing.");
    ints.push_back(exprs[static_cast<size_t>(e)]);
  }
  tasks.push_back(std::move(t));
  return ok();
}

// Buffers that stay from run to run and from binding to binding lie at the arena's start, in places that depend on no
// size. The memory of a Frame does not stay.
void Binding::place_kept(const om::Package& package) {
  constexpr int64_t kPage = 4096;
  const bool stays = std::any_of(tasks.begin(), tasks.end(), [](auto& t) { return t.work.once; }) && is_plain(package, *program);
  for (auto& t : tasks) {
    auto at = [&](int32_t i) { return placed[static_cast<size_t>(t.view0 + i)].buffer; };
    auto is = [&](int32_t i, om::BufferKind kind) { return at(i) >= 0 && program->buffers[static_cast<size_t>(at(i))]->kind == kind; };
    for (int32_t i = 0; i < t.inputs; ++i) t.work.once &= stays && is(i, om::BufferKind::weight);
    for (int32_t i = t.inputs; i < t.inputs + t.outputs; ++i) t.work.once &= is(i, om::BufferKind::arena);
    for (int32_t i = t.inputs; t.work.once && i < t.inputs + t.outputs; ++i) {
      auto b = static_cast<size_t>(at(i));
      if (buffer_offset[b] >= 0) continue;
      buffer_offset[b] = kept;
      kept += (buffer_bytes[b] + kPage - 1) / kPage * kPage;
    }
  }
}

Status Binding::place(const om::Package& package, const BindOptions& options) {
  auto start = std::chrono::steady_clock::now();
  const om::PlanT* stored = nullptr;
  for (auto& p : program->plans)
    if (segment == 0 && p->symbols == symbols && p->offsets.size() == program->buffers.size()) stored = p.get();
  std::vector<int64_t*> targets;
  buffer_offset.assign(program->buffers.size(), -1);
  place_kept(package);
  // What lives on after the segment only has to stay clear of the rest of it.
  int32_t last_task = program->segments.size() < 2 ? INT32_MAX : program->segments[static_cast<size_t>(segment)]->end - 1;
  for (size_t i = 0; i < program->buffers.size(); ++i) {
    auto& b = *program->buffers[i];
    if (b.kind != om::BufferKind::arena || !starts_here(b) || buffer_offset[i] >= 0) continue;
    if (buffer_bytes[i] == om::kUnknown) return damaged(format("Buffer {} has no size yet.", i));
    const Life alive = life(i);
    if (alive.first < 0) continue;
    arena::Interval x{alive.first, std::min(alive.last, last_task), buffer_bytes[i], b.align, -1};
    if (!program->reuse) x.first = 0, x.last = static_cast<int32_t>(program->tasks.size());
    if (stored) {
      x.fixed = stored->offsets[i] - kept;
      if (x.fixed < 0 || x.fixed > kMaxTensorBytes || x.fixed % b.align) return damaged(format("Buffer {} has no place in the plan.", i));
    }
    intervals.push_back(x);
    targets.push_back(&buffer_offset[i]);
  }
  for (auto& t : tasks) {
    int64_t scratch = (t.work.scratch + 63) / 64 * 64;
    t.work.scratch = scratch;
    int64_t total = scratch * threads;
    scratch_peak = std::max(scratch_peak, total + t.work.shared);
    if (t.work.shared) {
      intervals.push_back({t.task, t.task, t.work.shared, 64, -1});
      targets.push_back(&t.shared_offset);
    }
    if (total) {
      intervals.push_back({t.task, t.task, total, 64, -1});
      targets.push_back(&t.scratch_offset);
    }
  }
  auto same = [](auto& a, auto& b) { return std::tie(a.first, a.last, a.size, a.align, a.fixed) == std::tie(b.first, b.last, b.size, b.align, b.fixed); };
  auto* like = options.like.get();
  if (like && like->program == program && like->segment == segment && like->kept == kept && std::equal(intervals.begin(), intervals.end(), like->intervals.begin(), like->intervals.end(), same)) {
    offsets = like->offsets, arena = like->arena, lower_bound = like->lower_bound, proved = like->proved;
    for (size_t i = 0; i < intervals.size(); ++i) *targets[i] = kept + offsets[i];
    return ok();
  }
  arena::Options plan_options = options.plan;
  if (!program->reuse) plan_options.strategy = arena::Strategy::none;
  arena::Plan plan = arena::plan(intervals, plan_options);
  if (Verdict sound = arena::validate(intervals, plan.offset, plan.arena); !sound) return damaged("The memory plan is wrong: " + sound.why + ".");
  for (size_t i = 0; i < intervals.size(); ++i) *targets[i] = kept + plan.offset[i];
  offsets = std::move(plan.offset);
  arena = kept + plan.arena;
  lower_bound = kept + plan.lower_bound;
  proved = plan.proved;
  plan_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return ok();
}

std::unique_ptr<om::PlanT> Binding::plan() const {
  auto p = std::make_unique<om::PlanT>();
  p->symbols = symbols;
  p->offsets = buffer_offset;
  for (size_t i = 0; i < buffer_offset.size(); ++i)
    if (buffer_offset[i] >= 0) p->arena = std::max(p->arena, buffer_offset[i] + buffer_bytes[i]);
  p->lower_bound = lower_bound;
  p->proved = proved;
  return p;
}

bool is_plain(const om::Package& package, const om::ProgramT& program) {
  if (program.segments.size() > 1) return false;
  auto tensor = [](auto& port) { return port->kind == om::ValueKind::tensor && !port->unranked; };
  if (!std::all_of(program.inputs.begin(), program.inputs.end(), tensor) || !std::all_of(program.outputs.begin(), program.outputs.end(), tensor)) return false;
  if (std::any_of(program.symbols.begin(), program.symbols.end(), [](auto& s) { return s->buffer >= 0; })) return false;
  for (auto& b : program.buffers)
    if (b->kind == om::BufferKind::pool) return false;
  for (auto& t : program.tasks)
    for (auto& a : t->alternatives) {
      auto* kernel = kernels::find(package.model.kernels[static_cast<size_t>(a->kernel)]);
      if (!t->programs.empty() || (kernel && kernel->executor)) return false;
    }
  return true;
}

}  // namespace ge::runtime
