#include "lower/emit.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>

#include "base/text.h"
#include "lower/expressions.h"
#include "tensor/pages.h"

namespace ge::lower {
namespace {

using ir::ValueId;
using plan::StorageKind;

class Emitter {
 public:
  Emitter(const ir::Graph& g, const plan::Placement& placement, Lowered& lowered, const EmitOptions& options, Shared& shared)
      : g_(g), placement_(placement), lowered_(lowered), options_(options), shared_(shared), package_(shared.package), exprs_(p_), buffer_of_(placement.storages().size(), -1) {}

  Status run(size_t program) {
    number_ports();
    symbols();
    state_symbols();
    gears();
    ports();
    for (auto& t : lowered_.tasks) task(t);
    int first = 0;
    for (int end : lowered_.segments) {
      auto segment = std::make_unique<om::SegmentT>();
      segment->first = first;
      segment->end = first = end;
      p_.segments.push_back(std::move(segment));
    }
    p_.reuse = options_.reuse;
    demands();
    sizes_from_data();
    for (auto& s : p_.symbols)
      if (!sourced_.count(s->name))
        return node_error(code::kUnsupportedOp, s->name.substr(0, s->name.rfind('.')), format("Size '{}' depends on data, and no operator gives it its value.", s->name), "",
                          "make what it is computed from a constant, or give the inputs' shapes with --input_shape");
    tensors_ = tensors();
    package_.model.programs[program] = std::make_unique<om::ProgramT>(std::move(p_));
    return ok();
  }
  std::vector<std::string> take_tensors() { return std::move(tensors_); }

 private:
  // The name of each buffer's value; of an operator's workspace, the operator.
  std::vector<std::string> tensors() const {
    std::vector<std::string> out(p_.buffers.size());
    for (size_t s = 0; s < buffer_of_.size(); ++s) {
      if (buffer_of_[s] < 0) continue;
      auto& storage = placement_.storages()[s];
      auto& name = out[static_cast<size_t>(buffer_of_[s])];
      if (storage.value) name = g_.value(storage.value).name;
      else if (lowered_.first[s] < 0) continue;
      else if (auto node = lowered_.tasks[static_cast<size_t>(lowered_.first[s])].node) name = "workspace of " + g_.node(node).name;
      else name = "workspace of states";
    }
    return out;
  }

  void gears() {
    for (auto& name : g_.gears.symbols) p_.gear_symbols.push_back(exprs_.symbol(name));
    for (auto& sizes : g_.gears.sizes) p_.gears.insert(p_.gears.end(), sizes.begin(), sizes.end());
  }

  // What inference took for equal.
  void demands() {
    for (auto& d : g_.facts.demands()) {
      auto made = std::make_unique<om::DemandT>();
      made->a = exprs_.add(d.a);
      made->b = exprs_.add(d.b);
      made->who = d.who;
      p_.demands.push_back(std::move(made));
    }
  }

  // Symbols whose values tasks decide; those that no expression asked for stay out.
  void sizes_from_data() {
    std::vector<int> writer(placement_.storages().size(), -1);
    for (size_t i = 0; i < lowered_.tasks.size(); ++i)
      for (auto& o : lowered_.tasks[i].out)
        if (o.storage >= 0) writer[static_cast<size_t>(o.storage)] = static_cast<int>(i);
    for (auto& symbol : p_.symbols) {
      auto it = lowered_.sources.find(symbol->name);
      if (symbol->input >= 0 || symbol->state >= 0 || it == lowered_.sources.end()) continue;
      auto& from = it->second;
      symbol->buffer = buffer_of_[static_cast<size_t>(from.storage)];
      symbol->element = from.element;
      symbol->axis = from.axis;
      symbol->task = writer[static_cast<size_t>(from.storage)];
      sourced_.insert(symbol->name);
      auto info = g_.symbols.find(symbol->name);
      if (info != g_.symbols.end()) symbol->min = info->second.min, symbol->max = info->second.max;
    }
  }

  // Inputs and outputs of states are no ports: the others move up.
  void number_ports() {
    input_port_.assign(g_.inputs.size(), 0);
    output_port_.assign(g_.outputs.size(), 0);
    for (auto& s : g_.states) {
      if (s.input >= 0) input_port_[static_cast<size_t>(s.input)] = -1;
      if (s.output >= 0) output_port_[static_cast<size_t>(s.output)] = -1;
    }
    for (auto* list : {&input_port_, &output_port_})
      for (int next = 0; int& p : *list)
        if (p >= 0) p = next++;
  }

  // Symbols in the order of the inputs' axes, each with the first axis that gives its value.
  void symbols() {
    for (size_t i = 0; i < g_.inputs.size(); ++i) {
      auto& type = g_.value(g_.inputs[i]).type;
      if (type.kind != ir::TypeKind::tensor || input_port_[i] < 0) continue;
      for (size_t k = 0; k < type.dims.size(); ++k)
        if (auto* symbol = first_met(type.dims[k])) symbol->input = input_port_[i], symbol->axis = static_cast<int>(k);
    }
  }

  // Those that only what a state holds gives.
  void state_symbols() {
    for (size_t i = 0; i < g_.states.size(); ++i) {
      if (g_.states[i].input < 0) continue;
      auto& dims = g_.value(g_.inputs[static_cast<size_t>(g_.states[i].input)]).type.dims;
      for (size_t k = 0; k < dims.size(); ++k)
        if (auto* symbol = first_met(dims[k])) symbol->state = static_cast<int>(i), symbol->axis = static_cast<int>(k);
    }
  }

  // The symbol of an input's size, when it is met for the first time.
  om::SymbolT* first_met(const Dim& d) {
    if (d.known()) return nullptr;
    auto name = d.symbol_name();
    if (name.empty()) return nullptr;   // an expression over sizes that other inputs give
    if (!sourced_.insert(std::string(name)).second) return nullptr;
    auto* symbol = p_.symbols[static_cast<size_t>(exprs_.symbol(name))].get();
    auto it = g_.symbols.find(name);
    if (it != g_.symbols.end()) symbol->min = it->second.min, symbol->max = it->second.max;
    return symbol;
  }

  std::unique_ptr<om::PortT> port(const std::string& name, const ir::Type& type, int buffer) {
    auto x = std::make_unique<om::PortT>();
    x->name = name;
    x->dtype = static_cast<uint8_t>(type.dtype);
    x->kind = static_cast<om::ValueKind>(type.kind);
    x->unranked = !type.ranked;
    // Of a sequence's elements only the type is kept: their sizes are their own.
    if (type.kind == ir::TypeKind::tensor)
      for (auto& d : type.dims) x->dims.push_back(exprs_.add(d));
    x->buffer = buffer;
    return x;
  }

  void ports() {
    std::vector<int> output_buffer(g_.outputs.size(), -1);
    for (size_t s = 0; s < buffer_of_.size(); ++s) {
      auto& x = placement_.storages()[s];
      if (x.kind != StorageKind::input && x.kind != StorageKind::output && x.kind != StorageKind::state) continue;
      buffer(s);
      if (x.kind == StorageKind::output) output_buffer[static_cast<size_t>(x.index)] = buffer_of_[s];
    }
    for (auto& [output, s] : lowered_.passed) output_buffer[static_cast<size_t>(output)] = buffer_of_[static_cast<size_t>(s)];
    for (size_t i = 0; i < g_.inputs.size(); ++i) {
      ValueId v = g_.inputs[i];
      if (input_port_[i] >= 0) p_.inputs.push_back(port(g_.value(v).name, g_.value(v).type, buffer_of_[static_cast<size_t>(placement_.at(v).storage)]));
    }
    for (size_t i = 0; i < g_.outputs.size(); ++i)
      if (output_port_[i] >= 0) p_.outputs.push_back(port(g_.output_names[i], g_.value(g_.outputs[i]).type, output_buffer[i]));
    for (auto& [output, input] : lowered_.updates)
      p_.outputs[static_cast<size_t>(output_port_[static_cast<size_t>(output)])]->updates = input_port_[static_cast<size_t>(input)];
    states();
  }

  void states() {
    for (size_t i = 0; i < g_.states.size(); ++i) {
      auto& s = g_.states[i];
      auto& place = placement_.states()[i];
      auto list = [&](const std::vector<Dim>& dims) {
        std::vector<int32_t> out;
        for (auto& d : dims) out.push_back(exprs_.add(d));
        return out;
      };
      auto port = std::make_unique<om::StatePortT>();
      port->state = static_cast<int>(package_.model.states.size());
      port->name = s.name;
      port->capacity = list(place.capacity);
      if (s.input >= 0) port->in = list(g_.value(g_.inputs[static_cast<size_t>(s.input)]).type.dims);
      if (s.output >= 0 && place.update != plan::StateUpdate::kept) port->out = list(g_.value(g_.outputs[static_cast<size_t>(s.output)]).type.dims);
      auto state = std::make_unique<om::StateT>();
      state->name = s.name;
      state->dtype = static_cast<uint8_t>(placement_.storages()[static_cast<size_t>(place.storage)].dtype);
      for (auto& d : place.capacity) state->dims.push_back(d.known() ? d.value() : -1);
      state->axis = s.axis;
      package_.model.states.push_back(std::move(state));
      p_.states.push_back(std::move(port));
    }
  }

  // The buffer of a storage, made when it is first met; equal weights share one.
  void buffer(size_t s) {
    if (buffer_of_[s] >= 0) return;
    auto& storage = placement_.storages()[s];
    if (storage.kind == StorageKind::weight) return weight(s);
    auto b = std::make_unique<om::BufferT>();
    if (storage.kind == StorageKind::arena) {
      b->kind = om::BufferKind::arena;
      b->bytes = exprs_.add(storage.elements * Dim(size_of(storage.dtype)));
      b->first = lowered_.first[s];
      b->last = lowered_.last[s];
    } else if (storage.kind == StorageKind::pool) {
      auto& type = g_.value(storage.value).type;
      b->kind = om::BufferKind::pool;
      if (type.kind == ir::TypeKind::tensor && type.ranked) b->bytes = exprs_.add(storage.elements * Dim(size_of(storage.dtype)));
      b->first = lowered_.first[s];
      b->last = lowered_.last[s];
    } else if (storage.kind == StorageKind::state) {
      b->kind = om::BufferKind::state;
      b->bytes = exprs_.add(storage.elements * Dim(size_of(storage.dtype)));
      b->index = storage.index;
    } else {
      bool input = storage.kind == StorageKind::input;
      b->kind = input ? om::BufferKind::input : om::BufferKind::output;
      b->index = (input ? input_port_ : output_port_)[static_cast<size_t>(storage.index)];
    }
    if (storage.value) b->value = static_cast<om::ValueKind>(g_.value(storage.value).type.kind);
    buffer_of_[s] = static_cast<int>(p_.buffers.size());
    p_.buffers.push_back(std::move(b));
  }

  void weight(size_t s) {
    StoredWeight w;
    if (auto packed = lowered_.packed.find(static_cast<int>(s)); packed != lowered_.packed.end()) {
      w = packed->second;
    } else {
      ValueId v = placement_.storages()[s].value;
      const Tensor t = *g_.value(v).constant;   // a reference to its memory
      w = shared_.store(t);
      rest(t);
      if (options_.read_last) options_.read_last(v);
    }
    auto [at, fresh] = weight_buffer_.emplace(std::pair(w.offset, w.bytes), static_cast<int>(p_.buffers.size()));
    buffer_of_[s] = at->second;
    if (!fresh) return;
    auto b = std::make_unique<om::BufferT>();
    b->kind = om::BufferKind::weight;
    b->weight_offset = w.offset;
    b->weight_bytes = w.bytes;
    p_.buffers.push_back(std::move(b));
  }

  std::unique_ptr<om::ViewT> view(const Operand& o) {
    auto v = std::make_unique<om::ViewT>();
    if (o.storage < 0) return v;
    buffer(static_cast<size_t>(o.storage));
    v->buffer = buffer_of_[static_cast<size_t>(o.storage)];
    v->dtype = static_cast<uint8_t>(o.dtype);
    if (!o.ranked) return v;
    // Of what has no elements only the sizes count; steps over the others may be more than 64 bits hold.
    const bool empty = std::any_of(o.view.dims.begin(), o.view.dims.end(), [](const Dim& d) { return d.is(0); });
    if (!empty && !o.view.offset.is(0)) v->offset = exprs_.add(o.view.offset);
    for (auto& d : o.view.dims) v->dims.push_back(exprs_.add(d));
    if (!empty && !o.view.is_dense())
      for (auto& d : o.view.strides) v->strides.push_back(exprs_.add(d));
    return v;
  }

  void task(const Task& t) {
    auto task = std::make_unique<om::TaskT>();
    task->name = t.node ? g_.node(t.node).name : "output";
    if (t.node) {
      task->op = g_.node(t.node).op;
      task->origins = g_.node(t.node).origin;
    }
    task->unit = static_cast<uint8_t>(t.kernel->unit);
    auto [it, fresh] = shared_.kernels.emplace(t.spec.kernel, static_cast<int>(package_.model.kernels.size()));
    if (fresh) package_.model.kernels.push_back(t.spec.kernel);
    auto call = std::make_unique<om::CallT>();
    call->kernel = it->second;
    if (t.condition >= 0) {
      condition_.resize(lowered_.conditions.size(), -1);
      int& e = condition_[static_cast<size_t>(t.condition)];
      call->condition = e = e >= 0 ? e : exprs_.add(lowered_.conditions[static_cast<size_t>(t.condition)]);
    }
    for (auto& o : t.in) call->ins.push_back(view(o));
    for (auto& o : t.out) call->outs.push_back(view(o));
    for (auto& d : t.spec.ints) call->ints.push_back(exprs_.add(d));
    call->floats = t.spec.floats;
    auto* bytes = reinterpret_cast<const uint8_t*>(t.spec.blob.data());
    call->blob.assign(bytes, bytes + t.spec.blob.size());
    task->alternatives.push_back(std::move(call));
    task->programs = t.programs;
    p_.tasks.push_back(std::move(task));
  }

  const ir::Graph& g_;
  const plan::Placement& placement_;
  Lowered& lowered_;
  const EmitOptions& options_;
  Shared& shared_;
  om::Package& package_;
  om::ProgramT p_;
  ExpressionList exprs_;
  std::vector<int> input_port_, output_port_;   // of the graph's inputs and outputs: their ports, or -1
  std::vector<int> buffer_of_;               // storage -> buffer
  std::map<std::pair<uint64_t, uint64_t>, int> weight_buffer_;   // by place in the weights
  std::vector<int> condition_;               // of Lowered::conditions: their expressions
  std::vector<std::string> tensors_;
  std::set<std::string> sourced_;            // symbols that an input or a task gives
};

Tensor numbers_of(const Tensor& strings, Shared& shared) {
  Tensor t(DType::u32, strings.dims());
  for (size_t i = 0; i < strings.strings().size(); ++i) {
    auto& s = strings.strings()[i];
    auto& texts = shared.package.model.texts;
    auto [it, fresh] = shared.texts.emplace(s, static_cast<uint32_t>(s.empty() ? 0 : texts.size() + 1));
    if (fresh && !s.empty()) texts.push_back(s);
    t.as<uint32_t>()[i] = it->second;
  }
  return t;
}

}  // namespace

StoredWeight Shared::store(const Tensor& given) {
  const bool strings = given.dtype() == DType::string;
  const Tensor t = strings ? numbers_of(given, *this) : given;
  const uint64_t h = content_hash(t);
  auto [low, high] = by_hash.equal_range(h);
  for (auto it = low; it != high; ++it)
    if (it->second.bytes == t.bytes() && std::memcmp(weights.data() + it->second.offset, t.data(), t.bytes()) == 0) return {it->second.offset, it->second.bytes, given.dtype()};
  StoredWeight w{weights.append(t.raw(), om::kWeightAlign), t.bytes(), given.dtype()};
  by_hash.emplace(h, w);
  return w;
}

Status emit(const ir::Graph& g, const plan::Placement& placement, Lowered& lowered, const EmitOptions& options, Shared& shared,
            size_t program, std::vector<std::string>& tensors) {
  Emitter e(g, placement, lowered, options, shared);
  GE_RETURN_IF_ERROR(e.run(program));
  tensors = e.take_tensors();
  return ok();
}

}  // namespace ge::lower
