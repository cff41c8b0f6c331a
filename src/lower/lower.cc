#include "lower/lower.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/hash.h"
#include "base/text.h"
#include "kernels/kernel.h"
#include "lower/expressions.h"
#include "ops/op.h"

namespace ge::lower {
namespace {

using ir::NodeId;
using ir::ValueId;
using ops::Arg;
using ops::Strided;

struct Operand {
  int storage = -1;         // -1: absent
  DType dtype = DType::none;
  Strided view;
};

struct Task {
  NodeId node;
  const kernels::Kernel* kernel = nullptr;
  std::vector<Operand> in, out;
  ops::CallSpec spec;
  bool needed = false;
};

bool same_view(const Strided& a, const Strided& b) {
  return a.offset == b.offset && a.dims == b.dims && a.strides == b.strides;
}

class Lowering {
 public:
  Lowering(const ir::Graph& g, const LowerOptions& o, LowerReport& r)
      : g_(g), options_(o), report_(r), placement_(g, {.views = o.reuse}) {}
  Result<om::Package> run();

 private:
  Status lower_node(NodeId id);
  Result<std::vector<ops::CallSpec>> calls_of(ops::LowerContext& c, NodeId id);
  Status add_task(NodeId id, ops::CallSpec spec, ops::LowerContext& c, const std::vector<int>& temps);
  void keep_needed();
  void lifetimes();
  void in_place();
  Status emit(om::Package& package);
  std::unique_ptr<om::ViewT> emit_view(const Operand& o, const std::vector<int>& buffer_of, ExpressionList& exprs);
  int weight_storage(const Tensor& t);

  const ir::Graph& g_;
  const LowerOptions& options_;
  LowerReport& report_;
  plan::Placement placement_;
  std::vector<Task> tasks_;
  std::vector<int> first_, last_;
  std::vector<Tensor> packed_;               // weights made by lowering
  std::map<int, size_t> packed_of_;          // storage -> packed_
  std::multimap<uint64_t, int> weight_by_hash_;
  std::set<std::string> reference_;
};

int Lowering::weight_storage(const Tensor& t) {
  uint64_t h = hash64(t.raw(), static_cast<uint64_t>(t.dtype()));
  auto [a, b] = weight_by_hash_.equal_range(h);
  for (auto it = a; it != b; ++it)
    if (packed_[packed_of_[it->second]].same_bytes(t)) return it->second;
  int s = placement_.add_storage({plan::StorageKind::weight, -1, {}, t.dtype(), t.count()});
  packed_of_[s] = packed_.size();
  packed_.push_back(t);
  weight_by_hash_.emplace(h, s);
  return s;
}

Result<std::vector<ops::CallSpec>> Lowering::calls_of(ops::LowerContext& c, NodeId id) {
  auto& n = g_.node(id);
  bool known = !n.outputs.empty();
  for (ValueId v : n.outputs) known &= !v || g_.value(v).content.has_value();
  if (known) {
    for (size_t i = 0; i < n.outputs.size(); ++i)
      if (n.outputs[i]) c.call("move.elements", {}, {c.out(static_cast<int>(i))}, *g_.value(n.outputs[i]).content);
    return std::move(c.calls);
  }
  auto* def = ops::find(n.op);
  GE_CHECK(def, "an op without definition reached lowering: " + n.op);
  if (options_.reference && def->reference) {
    GE_RETURN_IF_ERROR(def->reference(c));
    return std::move(c.calls);
  }
  if (def->lower) GE_RETURN_IF_ERROR(def->lower(c));
  if (!c.calls.empty()) return std::move(c.calls);
  GE_TRY(bool done, ops::lower_as_vector(c, *def));
  if (!done) {
    if (!def->reference) return c.fail("there is no way to run it with these types");
    GE_RETURN_IF_ERROR(def->reference(c));
  }
  return std::move(c.calls);
}

Status Lowering::lower_node(NodeId id) {
  auto& n = g_.node(id);
  if (placement_.is_view(id)) return ok();
  ops::LowerContext c(g_, n, [&](ValueId v) { return placement_.at(v).view; });
  auto calls = calls_of(c, id);
  if (!calls.ok()) {
    Error e = std::move(calls).take_error();
    if (e.node.empty()) e.node = n.name;
    return e;
  }
  std::vector<int> temps;
  for (auto& t : c.temps)
    temps.push_back(placement_.add_storage({plan::StorageKind::arena, -1, {}, t.dtype, product(t.dims)}));
  for (auto& spec : *calls) GE_RETURN_IF_ERROR(add_task(id, std::move(spec), c, temps));
  return ok();
}

Status Lowering::add_task(NodeId id, ops::CallSpec spec, ops::LowerContext& c, const std::vector<int>& temps) {
  Task t;
  t.node = id;
  t.kernel = kernels::find(spec.kernel);
  GE_CHECK(t.kernel, "unknown kernel " + spec.kernel);
  auto resolve = [&](const Arg& a) {
    Operand o;
    switch (a.kind) {
      case Arg::Kind::none: break;
      case Arg::Kind::value: {
        ValueId v{a.index};
        o.storage = placement_.at(v).storage;
        o.dtype = g_.value(v).type.dtype;
        o.view = placement_.at(v).view;
        break;
      }
      case Arg::Kind::temp:
        o.storage = temps[static_cast<size_t>(a.index)];
        o.dtype = c.temps[static_cast<size_t>(a.index)].dtype;
        o.view = Strided::dense(c.temps[static_cast<size_t>(a.index)].dims);
        break;
      case Arg::Kind::constant: {
        auto& tensor = c.constants[static_cast<size_t>(a.index)];
        o.storage = weight_storage(tensor);
        o.dtype = tensor.dtype();
        o.view = Strided::dense(std::vector<Dim>(tensor.dims().begin(), tensor.dims().end()));
        break;
      }
    }
    if (a.view) o.view = *a.view;
    return o;
  };
  for (auto& a : spec.in) t.in.push_back(resolve(a));
  for (auto& a : spec.out) t.out.push_back(resolve(a));
  // A copy onto itself: the part was made in place.
  if (spec.kernel == "move.copy" && t.in[0].storage == t.out[0].storage && same_view(t.in[0].view, t.out[0].view)) return ok();
  if (spec.kernel.starts_with("ref.")) reference_.insert(g_.node(id).op);
  t.spec = std::move(spec);
  tasks_.push_back(std::move(t));
  return ok();
}

// A task is needed when something reads, directly or not, what it writes.
void Lowering::keep_needed() {
  std::vector<bool> wanted(placement_.storages().size());
  for (size_t s = 0; s < wanted.size(); ++s) wanted[s] = placement_.storages()[s].kind == plan::StorageKind::output;
  for (size_t i = tasks_.size(); i-- > 0;) {
    auto& t = tasks_[i];
    for (auto& o : t.out) t.needed |= o.storage >= 0 && wanted[static_cast<size_t>(o.storage)];
    if (!t.needed) continue;
    for (auto& o : t.in)
      if (o.storage >= 0) wanted[static_cast<size_t>(o.storage)] = true;
  }
  std::erase_if(tasks_, [](auto& t) { return !t.needed; });
}

void Lowering::lifetimes() {
  first_.assign(placement_.storages().size(), -1);
  last_.assign(placement_.storages().size(), -1);
  for (size_t i = 0; i < tasks_.size(); ++i) {
    for (auto* list : {&tasks_[i].in, &tasks_[i].out})
      for (auto& o : *list) {
        if (o.storage < 0) continue;
        auto s = static_cast<size_t>(o.storage);
        if (first_[s] < 0) first_[s] = static_cast<int>(i);
        last_[s] = static_cast<int>(i);
      }
  }
}

// The first output takes over an input that ends here, where the kernel allows it and both are seen
// alike; no other operand of the task may be in that memory, unless the kernel allows it for that one too.
void Lowering::in_place() {
  for (size_t i = 0; i < tasks_.size(); ++i) {
    auto& t = tasks_[i];
    if (t.out.size() != 1 || !t.kernel->in_place || t.out[0].storage < 0) continue;
    int to = t.out[0].storage;
    auto kind = [&](int s) { return placement_.storages()[static_cast<size_t>(s)].kind; };
    if (first_[static_cast<size_t>(to)] != static_cast<int>(i) || (kind(to) != plan::StorageKind::arena && kind(to) != plan::StorageKind::output)) continue;
    for (size_t k = 0; k < t.in.size() && k < 32; ++k) {
      int from = t.in[k].storage;
      if (!(t.kernel->in_place >> k & 1) || from < 0 || from == to || kind(from) != plan::StorageKind::arena || last_[static_cast<size_t>(from)] != static_cast<int>(i)) continue;
      auto bytes = [&](int s) {
        auto& x = placement_.storages()[static_cast<size_t>(s)];
        return x.elements * Dim(size_of(x.dtype));
      };
      bool alike = size_of(t.in[k].dtype) == size_of(t.out[0].dtype) && bytes(from) == bytes(to);
      // Other operands in the same memory must be ones that the kernel reads element by element too.
      for (size_t j = 0; j < t.in.size(); ++j)
        alike &= t.in[j].storage != from || (j < 32 && (t.kernel->in_place >> j & 1) && same_view(t.in[j].view, t.out[0].view));
      if (!alike) continue;
      placement_.merge(from, to);
      for (auto& task : tasks_)
        for (auto* list : {&task.in, &task.out})
          for (auto& o : *list)
            if (o.storage == from) o.storage = to;
      first_[static_cast<size_t>(to)] = first_[static_cast<size_t>(from)];
      first_[static_cast<size_t>(from)] = last_[static_cast<size_t>(from)] = -1;
      break;
    }
  }
}

std::unique_ptr<om::ViewT> Lowering::emit_view(const Operand& o, const std::vector<int>& buffer_of, ExpressionList& exprs) {
  auto v = std::make_unique<om::ViewT>();
  if (o.storage < 0) return v;
  v->buffer = buffer_of[static_cast<size_t>(o.storage)];
  v->dtype = static_cast<uint8_t>(o.dtype);
  if (!o.view.offset.is(0)) v->offset = exprs.add(o.view.offset);
  for (auto& d : o.view.dims) v->dims.push_back(exprs.add(d));
  if (!o.view.is_dense())
    for (auto& d : o.view.strides) v->strides.push_back(exprs.add(d));
  return v;
}

Status Lowering::emit(om::Package& package) {
  auto program = std::make_unique<om::ProgramT>();
  om::ProgramT& p = *program;
  ExpressionList exprs(p);
  std::set<std::string> sourced;
  auto port = [&](const std::string& name, const ir::Type& type, int buffer) {
    auto x = std::make_unique<om::PortT>();
    x->name = name;
    x->dtype = static_cast<uint8_t>(type.dtype);
    for (auto& d : type.dims) x->dims.push_back(exprs.add(d));
    x->buffer = buffer;
    return x;
  };
  // Symbols first, in the order of the inputs' axes.
  for (size_t i = 0; i < g_.inputs.size(); ++i) {
    auto& dims = g_.value(g_.inputs[i]).type.dims;
    for (size_t k = 0; k < dims.size(); ++k) {
      auto name = dims[k].symbol_name();
      if (dims[k].known()) continue;
      GE_CHECK(!name.empty(), "a size of an input is an expression");
      if (!sourced.insert(std::string(name)).second) continue;
      auto& symbol = *p.symbols[static_cast<size_t>(exprs.symbol(name))];
      symbol.input = static_cast<int>(i);
      symbol.axis = static_cast<int>(k);
      auto it = g_.symbols.find(name);
      if (it != g_.symbols.end()) symbol.min = it->second.min, symbol.max = it->second.max;
    }
  }
  std::vector<int> buffer_of(placement_.storages().size(), -1);
  std::vector<std::byte> weights;
  std::multimap<uint64_t, int> by_hash;
  auto buffer = [&](size_t s) {
    if (buffer_of[s] >= 0) return;
    auto& storage = placement_.storages()[s];
    auto b = std::make_unique<om::BufferT>();
    if (storage.kind == plan::StorageKind::weight) {
      auto packed = packed_of_.find(static_cast<int>(s));
      const Tensor& t = packed != packed_of_.end() ? packed_[packed->second] : *g_.value(storage.value).constant;
      uint64_t h = hash64(t.raw(), static_cast<uint64_t>(t.dtype()));
      auto [lo, hi] = by_hash.equal_range(h);
      for (auto it = lo; it != hi; ++it) {
        auto& old = *p.buffers[static_cast<size_t>(it->second)];
        if (old.weight_bytes == t.bytes() && std::memcmp(weights.data() + old.weight_offset, t.data(), t.bytes()) == 0) {
          buffer_of[s] = it->second;
          return;
        }
      }
      b->kind = om::BufferKind::weight;
      b->weight_offset = (weights.size() + om::kWeightAlign - 1) / om::kWeightAlign * om::kWeightAlign;
      b->weight_bytes = t.bytes();
      weights.resize(b->weight_offset);
      weights.insert(weights.end(), t.raw().begin(), t.raw().end());
      by_hash.emplace(h, static_cast<int>(p.buffers.size()));
    } else if (storage.kind == plan::StorageKind::arena) {
      b->kind = om::BufferKind::arena;
      b->bytes = exprs.add(storage.elements * Dim(size_of(storage.dtype)));
      b->first = first_[s];
      b->last = last_[s];
    } else {
      b->kind = storage.kind == plan::StorageKind::input ? om::BufferKind::input : om::BufferKind::output;
      b->index = storage.index;
    }
    buffer_of[s] = static_cast<int>(p.buffers.size());
    p.buffers.push_back(std::move(b));
  };
  for (size_t s = 0; s < buffer_of.size(); ++s) {
    auto kind = placement_.storages()[s].kind;
    if (kind == plan::StorageKind::input || kind == plan::StorageKind::output) buffer(s);
  }
  for (size_t i = 0; i < g_.inputs.size(); ++i) {
    auto& v = g_.value(g_.inputs[i]);
    p.inputs.push_back(port(v.name, v.type, buffer_of[static_cast<size_t>(placement_.at(g_.inputs[i]).storage)]));
  }
  for (size_t i = 0; i < g_.outputs.size(); ++i) {
    int at = -1;
    for (size_t s = 0; s < buffer_of.size(); ++s) {
      auto& x = placement_.storages()[s];
      if (x.kind == plan::StorageKind::output && x.index == static_cast<int>(i) && buffer_of[s] >= 0) at = buffer_of[s];
    }
    p.outputs.push_back(port(g_.output_names[i], g_.value(g_.outputs[i]).type, at));
  }
  std::map<std::string, int> kernel_index;
  for (auto& t : tasks_) {
    auto task = std::make_unique<om::TaskT>();
    auto call = std::make_unique<om::CallT>();
    if (t.node) {
      auto& n = g_.node(t.node);
      task->name = n.name;
      task->op = n.op;
      task->origins = n.origin;
    } else {
      task->name = "output";
    }
    task->unit = static_cast<uint8_t>(t.kernel->unit);
    task->lane = t.kernel->unit == kernels::Unit::cube ? 0 : 1;
    auto [it, fresh] = kernel_index.emplace(t.spec.kernel, static_cast<int>(package.model.kernels.size()));
    if (fresh) package.model.kernels.push_back(t.spec.kernel);
    call->kernel = it->second;
    for (auto* list : {&t.in, &t.out})
      for (auto& o : *list) {
        if (o.storage >= 0) buffer(static_cast<size_t>(o.storage));
        (list == &t.in ? call->ins : call->outs).push_back(emit_view(o, buffer_of, exprs));
      }
    for (auto& d : t.spec.ints) call->ints.push_back(exprs.add(d));
    call->floats = t.spec.floats;
    auto* bytes = reinterpret_cast<const uint8_t*>(t.spec.blob.data());
    call->blob.assign(bytes, bytes + t.spec.blob.size());
    task->alternatives.push_back(std::move(call));
    p.tasks.push_back(std::move(task));
  }
  auto segment = std::make_unique<om::SegmentT>();
  segment->first = 0;
  segment->end = static_cast<int>(p.tasks.size());
  p.segments.push_back(std::move(segment));
  p.reuse = options_.reuse;
  for (size_t i = 0; i < p.symbols.size(); ++i)
    if (!sourced.count(p.symbols[i]->name))
      return error(code::kUnsupportedOp, format("Size '{}' depends on data.", p.symbols[i]->name),
                   "an operator whose output size is known only after it ran", "not supported yet");
  report_.weights = static_cast<int64_t>(weights.size());
  report_.tasks = static_cast<int>(p.tasks.size());
  auto held = std::make_shared<std::vector<std::byte>>(std::move(weights));
  package.weights = *held;
  package.keep = held;
  auto entry = std::make_unique<om::EntryT>();
  entry->name = "main";
  entry->program = static_cast<int>(package.model.programs.size());
  package.model.entries.push_back(std::move(entry));
  package.model.programs.push_back(std::move(program));
  package.model.name = g_.name;
  return ok();
}

Result<om::Package> Lowering::run() {
  std::vector<std::string> failures;
  Error first_failure;
  for (NodeId id : g_.order()) {
    auto s = lower_node(id);
    if (s.ok()) continue;
    if (failures.empty()) first_failure = s.error();
    failures.push_back(format("{} ({}): {}", g_.node(id).name, g_.node(id).op, s.error().message));
  }
  if (failures.size() > 1) first_failure.message += "\nall of them:\n  " + join(failures, "\n  ");
  if (!failures.empty()) return first_failure;
  for (auto& [index, v] : placement_.copies()) {
    Task t;
    t.kernel = kernels::find("move.copy");
    GE_CHECK(t.kernel, "no move.copy");
    t.spec.kernel = "move.copy";
    auto& type = g_.value(v).type;
    int s = placement_.add_storage({plan::StorageKind::output, index, v, type.dtype, product(type.dims)});
    t.in.push_back({placement_.at(v).storage, type.dtype, placement_.at(v).view});
    t.out.push_back({s, type.dtype, Strided::dense(type.dims)});
    tasks_.push_back(std::move(t));
  }
  keep_needed();
  lifetimes();
  if (options_.reuse) in_place();
  om::Package package;
  GE_RETURN_IF_ERROR(emit(package));
  report_.aliases = placement_.counts;
  report_.reference_ops.assign(reference_.begin(), reference_.end());
  return package;
}

}  // namespace

Result<om::Package> lower(const ir::Graph& g, const LowerOptions& options, LowerReport& report) {
  return Lowering(g, options, report).run();
}

}  // namespace ge::lower
